"""Records the groups of a binlog file as `mtsd plan` does, and prints how fast as JSON.

`python -m benchmarks.processes.group_recording FILE [RECORD]`: without a RECORD it records several
times, and the fastest counts.
"""

import argparse
import gc
import json
import sys
import time
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from mtsd.binlog.bytes.framing import FileFramer
from mtsd.binlog.groups.grouper import Grouper
from mtsd.model.position import FIRST_EVENT, Position
from mtsd.spark.plan.group_record import GroupRecorder

_RUNS: Final = 4
_PIECE: Final = 1 << 20
_EVENTS: Final = 4096


def main() -> None:
    """Record, and print the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.processes.group_recording")
    parser.add_argument("file", type=Path)
    parser.add_argument("record", type=Path, nargs="?")
    args = parser.parse_args()
    gc.set_threshold(200_000, 50, 100)
    if args.record:
        rates = [record(args.file, args.record)]
    else:
        with TemporaryDirectory() as folder:
            rates = [record(args.file, Path(folder, "groups.parquet")) for _ in range(_RUNS)]
    json.dump({"rate": max(rates)}, sys.stdout)


def record(file: Path, path: Path) -> float:
    """Record a file; return groups a second of CPU, reading and writing included."""
    began = time.process_time()
    framer = FileFramer()
    grouper = Grouper(
        start=Position(file.name, FIRST_EVENT),
        next_number=1,
        hold_bytes=1 << 20,
        chunk_bytes=1 << 20,
        checksums=False,
    )
    with GroupRecorder(path) as recorder, file.open("rb") as opened:
        while piece := opened.read(_PIECE):
            events = framer.feed(piece)
            while some := list(islice(events, _EVENTS)):
                recorder.add(grouper.groups(some))
    return recorder.groups / (time.process_time() - began)


if __name__ == "__main__":
    main()

"""A soak: `python -m tests.soak --minutes 60` prints a line for each sample, and the verdict.

Memory, descriptors, tasks, threads and the intervals of the GTID set have to be flat under a load
of everything, and both servers equal at its end. Exit status 1 if something has grown by more than
its bound, which is said: see `ALLOWED`. Samples of a replica that is behind are not judged: what
waits to be applied is in memory. Exit status 2 if most of them are such.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from mtsd.cli.arguments import seconds
from tests.soak.run import KEEPS_UP_S, Sample, growths, soak


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line; wrong words end the process with status 2."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    add = parser.add_argument
    add("--minutes", type=seconds(0.01, 1e6), default=60.0)
    add("--every", type=seconds(0.1, 3600), default=10.0, help="seconds between two samples")
    add("--rate", type=seconds(0, 1e6), default=200.0, help="transactions/s; 0: all that go")
    return parser.parse_args(words)


def main() -> int:
    """Run it."""
    args = arguments()
    samples: list[Sample] = []
    with tempfile.TemporaryDirectory(prefix="mtsd-soak-") as folder:
        for sample in soak(Path(folder), args.minutes * 60, args.every, args.rate or None):
            samples.append(sample)
            print(*(f"{name}={value}" for name, value in asdict(sample).items()), flush=True)
    judged = sum(sample.keeps_up for sample in samples)
    print(f"judged: {judged} of {len(samples)} samples, at most {KEEPS_UP_S:g} s behind")
    if judged <= len(samples) / 2:
        print("no verdict: the replica did not keep up; take another --rate, or a quiet machine")
        return 2
    found = growths(samples)
    for name, growth in found.items():
        print(name, growth)
    return any(growth.is_too_much for growth in found.values())


if __name__ == "__main__":
    sys.exit(main())

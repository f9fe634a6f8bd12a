"""A soak: `python -m tests.soak --minutes 60` prints a line for each sample, and the verdict.

Memory, descriptors, tasks, threads and the intervals of the GTID set have to be flat under a load
of everything, and both servers equal at its end. Exit status 1 if something has grown by more than
its bound, which is said: see `ALLOWED`.
"""

import argparse
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from tests.soak.run import Sample, growths, soak


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--every", type=float, default=10.0, help="seconds between two samples")
    parser.add_argument("--rate", type=float, default=200.0, help="transactions/s; 0: all that go")
    args = parser.parse_args()
    samples: list[Sample] = []
    with tempfile.TemporaryDirectory(prefix="mtsd-soak-") as folder:
        for sample in soak(Path(folder), args.minutes * 60, args.every, args.rate or None):
            samples.append(sample)
            print(*(f"{name}={value}" for name, value in asdict(sample).items()), flush=True)
    found = growths(samples)
    for name, growth in found.items():
        print(name, growth)
    return any(growth.is_too_much for growth in found.values())


if __name__ == "__main__":
    sys.exit(main())

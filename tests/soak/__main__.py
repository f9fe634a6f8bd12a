"""A soak: `python -m tests.soak --minutes 60` prints a line for each sample, and what has grown.

Memory, descriptors, tasks, threads and the intervals of the GTID set have to be flat under a load
of everything, and both servers equal at its end. Exit status 1 if something has grown.
"""

import argparse
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from tests.soak.growth import grown
from tests.soak.run import ALLOWED, Sample, soak


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
    growing = [
        name
        for name, allowed in ALLOWED.items()
        if grown([float(getattr(sample, name)) for sample in samples], allowed)
    ]
    print(f"has grown: {', '.join(growing)}" if growing else "nothing has grown")
    return bool(growing)


if __name__ == "__main__":
    sys.exit(main())

"""Switches: `python -m tests.switches --times 100 --kills 10` prints the pauses, and a verdict.

An application writes about 1,000 transactions a second while `mtsd switchover` lets it go from one
server to the other and back, so many times. Beside these, so many switches are killed at each act,
and put back, or gone on with where the application was let in already. In the end nothing may be
lost or twice, and both servers have the same rows: exit status 1 if not.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from mtsd.cli.arguments import whole
from tests.switches.run import MOST_ACTS, Wanted, switches


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(prog="python -m tests.switches", description=__doc__)
    parser.add_argument("--times", type=whole(0), default=100, help="switches that are not killed")
    parser.add_argument(
        "--kills", type=whole(0), default=0, help=f"of each act; there are {MOST_ACTS}"
    )
    parser.add_argument(
        "--source", choices=("9.7", "11.8"), default="9.7", help="MySQL or MariaDB; to MySQL 9.7"
    )
    args = parser.parse_args()
    wanted = Wanted(args.times, args.kills)
    with tempfile.TemporaryDirectory(prefix="mtsd-switches-") as folder:
        tally = switches(Path(folder), args.source, wanted, lambda line: print(line, flush=True))
    for line in tally.lines():
        print(line)
    return bool(tally.wrong)


if __name__ == "__main__":
    sys.exit(main())

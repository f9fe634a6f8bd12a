"""Runs the servers' own test suites: `python -m tests.firehose --tests 'alter*,view*'`.

One line a test; findings are indented under it. Ends with how many of each there were.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.firehose.run import Firehose, Result
from tests.firehose.suites import FOLDERS, MARIADB, provide_suites


def main() -> int:
    """Run what the command line asks for; returns 1 if there is a finding."""
    parser = argparse.ArgumentParser(prog="python -m tests.firehose", description=__doc__)
    parser.add_argument("--family", choices=("mysql", "mariadb"), default="mysql")
    parser.add_argument("--series", choices=FOLDERS, default=MARIADB, help="of MariaDB")
    parser.add_argument("--suite", default="main")
    parser.add_argument("--format", choices=("ROW", "STATEMENT", "MIXED"), default="ROW")
    parser.add_argument("--tests", default="*", help="patterns of names, separated by commas")
    parser.add_argument("--gtids", action="store_true", help="gtid_mode = ON (MySQL)")
    asked = parser.parse_args()
    suites = provide_suites(asked.family, asked.series)
    tests = suites.tests(asked.suite, tuple(asked.tests.split(",")))
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="firehose-") as folder:
        firehose = Firehose(suites, Path(folder), asked.format, gtids=asked.gtids)
        for result in firehose.run(tests):
            counts.update(_counted(result))
            print(_line(result), flush=True)
            for finding in result.findings:
                print(f"    {finding}", flush=True)
    print(", ".join(f"{count} {what}" for what, count in counts.items()))
    return 1 if counts["with findings"] else 0


def _counted(result: Result) -> list[str]:
    if result.left_out:
        return ["left out"]
    counted = ["run"]
    counted += ["ended early"] * bool(result.ended)
    counted += ["replica stopped"] * bool(result.native)
    counted += ["mtsd stopped"] * bool(result.mtsd)
    counted += ["with findings"] * bool(result.findings)
    return counted


def _line(result: Result) -> str:
    notes = [
        f"{what} {text[:600]}"
        for what, text in (
            ("left out:", result.left_out),
            ("ended", result.ended),
            ("| replica:", result.native),
            ("| mtsd:", result.mtsd),
        )
        if text
    ]
    return f"{result.name}: {'FINDING ' * bool(result.findings)}{' '.join(notes) or 'equal'}"


if __name__ == "__main__":
    sys.exit(main())

"""`mtsd binlog`, run in this process."""

import argparse
from pathlib import Path

from mtsd.cli import binlog


def mtsd_binlog(*arguments: str | Path) -> int:
    """Run the command with these arguments; returns its exit status."""
    parser = argparse.ArgumentParser()
    binlog.register(parser.add_subparsers())
    args = parser.parse_args(["binlog", *map(str, arguments)])
    status: int = args.run(args)
    return status

"""The command `mtsd`."""

import argparse
from collections.abc import Callable, Sequence

from mtsd import __version__
from mtsd.cli import binlog, check, config, position, resolve, run, skip, status
from mtsd.model.build import COMPILED

_EXAMPLE = """\
example:
  mtsd run --config config.toml
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit status, 2 on bad usage."""
    parser = argparse.ArgumentParser(
        prog="mtsd",
        description="A MySQL replica outside the server.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    version = f"mtsd {__version__}{' (compiled)' if COMPILED else ''}"
    parser.add_argument("--version", action="version", version=version)
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in (run, check, status, position, resolve, skip, binlog, config):
        command.register(subparsers)
    args = parser.parse_args(arguments)
    function: Callable[[argparse.Namespace], int] = args.run
    return function(args)

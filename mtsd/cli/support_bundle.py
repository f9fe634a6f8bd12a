"""`mtsd support-bundle`: a file for the person who helps, without secrets."""

import argparse
import asyncio
import os
import time
from pathlib import Path

from mtsd.cli.arguments import Subparsers, add_configuration, load_configuration, named_path
from mtsd.cli.complaint import complain
from mtsd.cli.output import print_line
from mtsd.model.outcome.exit_status import ExitStatus
from mtsd.operations.support.bundle import LogSource, gather, pack

_EXAMPLE = """\
example:
  mtsd support-bundle --config /etc/mtsd/config.toml
  mtsd support-bundle --config config.toml --log mtsd.log --output /tmp/bundle.tar.gz

Settings, status, metrics, check, position tables, variables of both servers, versions and the end
of the log, in a compressed tar that only you can read. Passwords are replaced; names, and what has
stopped the replica, are not: look through it before you give it away. Nothing is changed, and a
daemon may be running.
exit status: 0 written, also if a part could not be had; 1 it cannot be written; 2 bad usage or
configuration
"""


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "support-bundle",
        description="Gather what a person who helps asks for first, without passwords.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_configuration(parser)
    parser.add_argument(
        "--output",
        type=named_path,
        metavar="FILE",
        help="a file that is not there yet (default: mtsd-support-TIME.tar.gz in this folder)",
    )
    parser.add_argument(
        "--log", type=named_path, metavar="FILE", help="the log, if it is in a file"
    )
    parser.add_argument(
        "--unit",
        default="mtsd",
        help="else the systemd unit in whose journal it is (default: %(default)s)",
    )
    parser.set_defaults(run=_bundle)


def _bundle(args: argparse.Namespace) -> int:
    loaded = load_configuration(args)
    name = time.strftime("mtsd-support-%Y%m%dT%H%M%SZ", time.gmtime())
    output: Path = args.output or Path(f"{name}.tar.gz")
    parts = asyncio.run(gather(loaded, LogSource(args.log, args.unit)))
    try:
        with os.fdopen(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(pack(parts, name))
    except OSError as error:
        return complain(f"{output} cannot be written: {error.strerror}", ExitStatus.FAILED)
    for part, text in parts.items():
        if text.startswith("could not be had"):
            print_line(f"{part} {text.strip()}")
    print_line(f"written: {output}")
    return ExitStatus.DONE

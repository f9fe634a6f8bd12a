"""`mtsd check`: everything that could fail later, now."""

import argparse
import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from mtsd.cli.arguments import Subparsers, add_configuration, load_configuration
from mtsd.cli.output import json_of, print_json, print_line
from mtsd.model.outcome.exit_status import ExitStatus
from mtsd.operations.check.checking import check
from mtsd.operations.check.grants import statements
from mtsd.operations.check.lines.line import Level, Line

_EXAMPLE = """\
example:
  mtsd check --config /etc/mtsd/config.toml
  mtsd check --config config.toml --grants

exit status: 0 no errors, perhaps warnings; 2 bad usage or configuration; 3 errors: mtsd run would
not start, or would stop sooner or later
"""


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "check",
        description="Check both servers for everything that could fail later. Nothing is"
        " changed on either; a daemon may be running.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_configuration(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print a JSON object of all lines")
    form.add_argument(
        "--grants",
        action="store_true",
        help="print the GRANT statements for both users instead; no server is queried",
    )
    parser.set_defaults(run=_check)


def _check(args: argparse.Namespace) -> int:
    settings = load_configuration(args).settings
    if args.grants:
        for statement in statements(settings):
            print_line(statement)
        return ExitStatus.DONE
    lines = asyncio.run(check(settings))
    if args.json:
        print_json(json_of(document(lines), indent=2))
    else:
        for text in texts(lines):
            print_line(text)
    wrong = any(line.level is Level.ERROR for line in lines)
    return ExitStatus.NEEDS_PERSON if wrong else ExitStatus.DONE


def document(lines: Sequence[Line]) -> dict[str, object]:
    """Return what --json prints."""
    return {
        "errors": sum(line.level is Level.ERROR for line in lines),
        "warnings": sum(line.level is Level.WARNING for line in lines),
        "lines": [asdict(line) for line in lines],
    }


def texts(lines: Sequence[Line]) -> Iterator[str]:
    """Return human-readable lines."""
    width = max((len(line.subject) for line in lines), default=0)
    for line in lines:
        remedy = f"; {line.remedy}" if line.remedy else ""
        yield f"{line.level:<7}  {line.subject:<{width}}  {line.found}{remedy}"

"""`mtsd resolve`: what a person says of a group in doubt."""

import argparse
import asyncio

from mtsd.cli.arguments import Subparsers, add_configuration, load_configuration
from mtsd.cli.complaint import complain
from mtsd.model.errors import MtsdError
from mtsd.model.exit_status import ExitStatus
from mtsd.operations.resolve import list_in_doubt, resolve
from mtsd.target.position_tables import InDoubt

_EXCERPT = 200
_EXAMPLE = """\
example:
  mtsd resolve --config config.toml
  mtsd resolve --config config.toml --group 4711 --applied

A group that commits by itself, such as DDL, was cut off, and nothing in the target tells whether
it happened. Look at the target, and say so here; the next start of mtsd goes by it. The daemon has
to be stopped. exit status: 0; 3 where it is refused
"""


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "resolve",
        help="settle a group in doubt",
        description="List the groups in doubt, or say of one whether it was applied.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_configuration(parser)
    parser.add_argument("--group", type=int, metavar="N", help="the number of the group")
    said = parser.add_mutually_exclusive_group()
    said.add_argument("--applied", action="store_true", help="it happened: go on after it")
    said.add_argument("--not-applied", action="store_true", help="it did not: apply it again")
    parser.set_defaults(run=_resolve)


def _resolve(args: argparse.Namespace) -> int:
    said = args.applied or args.not_applied
    if said != (args.group is not None):
        return complain(
            "--group N goes with --applied or --not-applied; without all three, the groups in"
            " doubt are listed",
            ExitStatus.BAD_USAGE,
        )
    settings = load_configuration(args).settings
    try:
        if not said:
            found = asyncio.run(list_in_doubt(settings))
            for doubt in found:
                print(_line(doubt))
            if not found:
                print("nothing is in doubt")
            return ExitStatus.DONE
        doubt = asyncio.run(resolve(settings, args.group, applied=args.applied))
    except MtsdError as error:
        return complain(error, ExitStatus.NEEDS_PERSON)
    how = "applied" if args.applied else "not applied, and to be applied again"
    print(f"group {doubt.number} counts as {how} from the next start on")
    return ExitStatus.DONE


def _line(doubt: InDoubt) -> str:
    text = " ".join(doubt.statement.decode("utf-8", "replace").split())
    said = f" (said to be {doubt.resolution})" if doubt.resolution else ""
    return (
        f"group {doubt.number}{said}: {doubt.kind}, ending at {doubt.end}, databases"
        f" {doubt.databases or 'none'}: {text[:_EXCERPT]}"
    )

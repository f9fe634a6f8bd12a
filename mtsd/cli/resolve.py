"""`mtsd resolve`: what a person says about an in-doubt group."""

import argparse
import asyncio

from mtsd.apply.position.in_doubt_table import InDoubt
from mtsd.cli.arguments import Subparsers, add_configuration, load_configuration, whole
from mtsd.cli.complaint import complain
from mtsd.cli.output import print_line
from mtsd.model.errors import MtsdError
from mtsd.model.outcome.exit_status import ExitStatus
from mtsd.operations.resolve import list_in_doubt, resolve

_EXCERPT = 200
_EXAMPLE = """\
example:
  mtsd resolve --config config.toml
  mtsd resolve --config config.toml --group 4711 --applied

A group that commits implicitly, such as DDL, was interrupted, and nothing on the target shows
whether it was applied. Look at the target, and state the outcome here; the next start of mtsd
follows it. Without arguments the groups are listed, also while the daemon is running; to settle one
it has to be stopped.
exit status: 0 done; 2 bad usage or configuration; 3 refused, or a server cannot be asked
"""


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "resolve",
        description="List the in-doubt groups, or say whether one of them was applied.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_configuration(parser)
    parser.add_argument("--group", type=whole(1), metavar="N", help="the number of the group")
    answer = parser.add_mutually_exclusive_group()
    answer.add_argument("--applied", action="store_true", help="it was applied: continue after it")
    answer.add_argument("--not-applied", action="store_true", help="it was not: apply it again")
    parser.set_defaults(run=_resolve)


def _resolve(args: argparse.Namespace) -> int:
    answered = args.applied or args.not_applied
    if answered != (args.group is not None):
        return complain(
            "--group N requires --applied or --not-applied; without any of them, the in-doubt"
            " groups are listed",
            ExitStatus.BAD_USAGE,
        )
    settings = load_configuration(args).settings
    try:
        if not answered:
            doubts = asyncio.run(list_in_doubt(settings))
            for doubt in doubts:
                print_line(_line(doubt))
            if not doubts:
                print_line("no group is in doubt")
            return ExitStatus.DONE
        doubt = asyncio.run(resolve(settings, args.group, applied=args.applied))
    except MtsdError as error:
        return complain(error, ExitStatus.NEEDS_PERSON)
    how = "applied" if args.applied else "not applied, and will be applied again"
    print_line(f"group {doubt.number} counts as {how} from the next start on")
    return ExitStatus.DONE


def _line(doubt: InDoubt) -> str:
    text = " ".join(doubt.statement.decode("utf-8", "replace").split())
    resolution = f" (said to be {doubt.resolution})" if doubt.resolution else ""
    return (
        f"group {doubt.number}{resolution}: {doubt.kind}{doubt.end.as_ending}, databases"
        f" {doubt.databases or 'none'}: {text[:_EXCERPT]}"
    )

"""`mtsd skip`: get past the one group that can never be applied."""

import argparse
import asyncio
import getpass
import socket
from collections.abc import Iterator

from mtsd.cli.arguments import Subparsers, add_configuration, load_configuration, whole
from mtsd.cli.complaint import complain
from mtsd.cli.output import print_line, report
from mtsd.config import Settings
from mtsd.config.start import FilePosition, parse_start
from mtsd.model.errors import MtsdError
from mtsd.model.gtid import Gtid, GtidSet
from mtsd.model.outcome.exit_status import ExitStatus
from mtsd.model.position import Position
from mtsd.operations.skip import Failures, Skipped, Wanted, list_failures, skip

_EXAMPLE = """\
example:
  mtsd skip --config config.toml
  mtsd skip --config config.toml --group 4711 --reason "row 7 of shop.t is gone, TICKET-12"
  mtsd skip --config config.toml --position binlog.000042:1507 --reason "as agreed" --who ann
  mtsd skip --config config.toml --gtid 3e11fa47-71ca-11e1-9e33-c80aa9429562:23 --reason "as agreed"

A group (a transaction of the source) stopped the replica and is never to be applied: from now on it
counts as executed without being applied, and who skipped it and why is recorded on the target
(slave_skipped_group). Only the group that stopped the replica can be skipped; without arguments,
that group and previously skipped ones are listed, also while the daemon is running. To skip one it
has to be stopped. Later groups that depend on it may fail: compare the servers.
exit status: 0 done; 2 bad usage or configuration; 3 refused, or a server cannot be asked
"""


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "skip",
        description="Skip the one group that stopped the replica, without applying it.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_configuration(parser)
    wanted = parser.add_mutually_exclusive_group()
    wanted.add_argument("--group", type=whole(1), metavar="N", help="its number")
    wanted.add_argument(
        "--position",
        type=_position,
        metavar="FILE:POS",
        help="where it ends in the source's binlog",
    )
    wanted.add_argument("--gtid", type=_gtid, metavar="GTID", help="its GTID on the source")
    parser.add_argument("--reason", metavar="TEXT", help="why; recorded with it")
    parser.add_argument(
        "--who",
        metavar="NAME",
        help="who skips it; recorded with it; default: the system's user@host",
    )
    parser.set_defaults(run=_skip)


def _position(text: str) -> Position:
    try:
        start = parse_start(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if not isinstance(start, FilePosition):
        raise argparse.ArgumentTypeError("FILE:POS is needed")
    return Position(start.file, start.pos)


def _gtid(text: str) -> Gtid:
    try:
        gtids = GtidSet.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    places = gtids.places()
    if len(places) == 1 and not list(gtids.intervals()):
        return places[0]
    if places or len(gtids) != 1:
        raise argparse.ArgumentTypeError("one GTID is needed, UUID:N or DOMAIN-SERVER-N")
    ((uuid, tag, number, _),) = gtids.intervals()
    return Gtid(uuid, number, tag)


def _skip(args: argparse.Namespace) -> int:
    wanted = Wanted(args.gtid, args.position, args.group)
    chosen = wanted != Wanted()
    reason = " ".join((args.reason or "").split())
    if chosen and not reason:
        return complain(
            "--reason TEXT is missing: it is recorded why a group is skipped", ExitStatus.BAD_USAGE
        )
    if not chosen and (reason or args.who is not None):
        return complain(
            "--reason and --who require one of --group, --position and --gtid; without all of them,"
            " the group that stopped the replica and the skipped ones are listed",
            ExitStatus.BAD_USAGE,
        )
    settings = load_configuration(args).settings
    try:
        if not chosen:
            for line in _listed(asyncio.run(list_failures(settings))):
                print_line(line)
            return ExitStatus.DONE
        return _do(settings, wanted, args.who or _user(), reason)
    except MtsdError as error:
        return complain(error, ExitStatus.NEEDS_PERSON)


def _do(settings: Settings, wanted: Wanted, who: str, reason: str) -> int:
    done = asyncio.run(skip(settings, wanted, who=who, why=reason))
    if done.former is not None:
        former = done.former
        print_line(
            f"{done.group}, was already skipped by {former.who} at"
            f" {former.time.isoformat()}: {former.why}"
        )
        return ExitStatus.DONE
    print_line(f"{done.group}, is skipped: the next start continues after it")
    if done.may_be_applied:
        report(_warning(done))
    return ExitStatus.DONE


def _warning(done: Skipped) -> str:
    databases = ", ".join(done.group.databases) or "not known"
    return (
        f"warning: the group is of kind {done.may_be_applied} and was interrupted: a part of"
        f" it, or all, may have been applied. Compare its databases with the source: {databases}"
    )


def _listed(failures: Failures) -> Iterator[str]:
    stopped = failures.stopped
    if stopped is None:
        yield "no group is on record as having stopped the replica"
    else:
        yield (
            f"stopped at {stopped.time.isoformat()} by {stopped.group}, databases"
            f" {', '.join(stopped.group.databases) or 'not known'}: {stopped.message}"
        )
    for skipped in failures.skipped:
        yield (
            f"skipped at {skipped.time.isoformat()} by {skipped.who}: {skipped.group}:"
            f" {skipped.why}"
        )


def _user() -> str:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = "unknown"
    return f"{user}@{socket.gethostname()}"

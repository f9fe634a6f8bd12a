"""`mtsd position`: the position on the target: show it, or change it deliberately."""

import argparse
import asyncio
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path

from mtsd.cli.arguments import (
    Subparsers,
    add_configuration,
    load_configuration,
    named_path,
)
from mtsd.cli.complaint import complain
from mtsd.cli.output import print_line, report
from mtsd.config import Settings
from mtsd.config.start import Start, parse_start
from mtsd.control.status import Status
from mtsd.model.errors import MtsdError
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.outcome.exit_status import ExitStatus
from mtsd.operations.adopt import adopt_position
from mtsd.operations.copies.beginning import Copies, OnTarget
from mtsd.operations.copies.reading import read_copied
from mtsd.operations.position import Meant, Moved, reset_position, set_position
from mtsd.operations.stored_status import read_stored
from mtsd.replica.guards.executed_beyond import WORD
from mtsd.replica.recovery.verdict import Verdict
from mtsd.source.continuation import shown

_EXAMPLE = """\
example:
  mtsd position show --config config.toml
  mtsd position set binlog.000042:157 --config config.toml
  mtsd position set gtid:3e11fa47-71ca-11e1-9e33-c80aa9429562:1-77 --config config.toml
  mtsd position set --from dump.sql --dry-run --config config.toml
  mtsd position reset --config config.toml
  mtsd position adopt --config config.toml

All but show require the daemon to be stopped.

set and reset change nothing but the position: what lies between the old and the new one is applied
again, or never. set says what that is, and asks for --back or --forward where a channel has begun.
If a group is in doubt, both refuse, and --drop-doubt makes them forget it; what a split transaction
has left prepared is committed or rolled back before.

set --from takes the place out of a copy: COPY is a dump by mysqldump or mariadb-dump, mydumper's
metadata, MySQL Shell's @.json, xtrabackup_binlog_info, what SHOW REPLICA STATUS\\G prints, a folder
with one of these, or - for standard input; the words clone and replica mean what the target itself
was cloned from, and the place that its own replica has stopped at.

adopt is for position tables that were copied to another server together with the data: they go on
as a replica of its own.

exit status: 0 done; 2 bad usage or configuration; 3 refused, or a server cannot be asked
"""


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "position",
        description="Show or change the position on the target.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    _action(actions, "show", "show what the position tables say; nothing is locked", _show)
    change = _action(actions, "set", "continue from another place", _set, " binlog.000042:157")
    where = change.add_mutually_exclusive_group(required=True)
    where.add_argument(
        "place",
        nargs="?",
        type=_place,
        metavar="PLACE",
        help='as [source] start: "FILE:POS", "gtid:SET", "earliest" or "latest"',
    )
    where.add_argument(
        "--from",
        dest="copy",
        type=named_path,
        metavar="COPY",
        help="after a copy: its FILE or folder, - for standard input, clone, or replica",
    )
    change.add_argument("--dry-run", action="store_true", help="only say what would be done")
    change.add_argument(
        "--back", action="store_true", help="although transactions are applied again"
    )
    change.add_argument(
        "--forward", action="store_true", help="although transactions are never applied"
    )
    change.add_argument(
        WORD,
        dest="despite_executed",
        action="store_true",
        help="although the target has executed transactions after it, by GTID: their changes are"
        " not there, so they are applied",
    )
    change.add_argument(
        "--although-missing",
        action="store_true",
        help="with --from: although the target has none of a database's tables",
    )
    reset = _action(actions, "reset", "forget it: the next start begins at [source] start", _reset)
    _action(actions, "adopt", "go on as a replica of its own with tables that were copied", _adopt)
    for action in (change, reset):
        action.add_argument(
            "--drop-doubt",
            action="store_true",
            help="even if a group is in doubt: it may or may not have been applied (one that was"
            " split is settled first, as a start would)",
        )


def _action(
    actions: Subparsers,
    name: str,
    summary: str,
    run: Callable[[argparse.Namespace], int],
    arguments: str = "",
) -> argparse.ArgumentParser:
    action = actions.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=f"example:\n  mtsd position {name}{arguments} --config config.toml\n\n"
        "mtsd position --help says more.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_configuration(action)
    action.set_defaults(run=run)
    return action


def _place(text: str) -> Start:
    try:
        start = parse_start(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if start is None:
        raise argparse.ArgumentTypeError("a place is needed")
    return start


def _set(args: argparse.Namespace) -> int:
    settings = load_configuration(args).settings
    if args.although_missing and args.copy is None:
        return complain("--although-missing is for --from COPY", ExitStatus.BAD_USAGE)
    meant = Meant(
        args.back, args.forward, args.despite_executed, args.drop_doubt, args.although_missing
    )
    try:
        place = args.place if args.copy is None else _copies(args.copy)
    except MtsdError as error:
        return complain(error, ExitStatus.NEEDS_PERSON)
    return _change(set_position(settings, place, meant, dry_run=args.dry_run), args.dry_run)


def _copies(named: Path) -> Copies:
    if str(named) in {each.value for each in OnTarget}:
        return OnTarget(str(named))
    return read_copied(named)


def _reset(args: argparse.Namespace) -> int:
    settings = load_configuration(args).settings
    return _change(reset_position(settings, drop_doubt=args.drop_doubt))


def _adopt(args: argparse.Namespace) -> int:
    settings = load_configuration(args).settings
    try:
        adopted = asyncio.run(adopt_position(settings))
    except MtsdError as error:
        return complain(error, ExitStatus.NEEDS_PERSON)
    _report_settled(adopted.settled)
    home = adopted.home
    where = f"at home on {home.uuid} ({home.place}), " if home is not None else ""
    print_line(f"was  {where}a replica with the UUID {adopted.former_uuid}")
    now = adopted.now
    print_line(f"now  at home on {now.uuid} ({now.place}), a replica with {adopted.daemon_uuid}")
    return ExitStatus.DONE


def _report_settled(settled: Iterable[tuple[int, Verdict]]) -> None:
    for number, verdict in settled:
        done = "committed" if verdict is Verdict.APPLIED else "rolled back"
        print_line(f"group {number}, which was split, is {done}: what was left of it is settled")


def _change(change: Coroutine[None, None, Moved], dry_run: bool = False) -> int:
    try:
        moved = asyncio.run(change)
    except MtsdError as error:
        return complain(error, ExitStatus.NEEDS_PERSON)
    _report_settled(moved.settled)
    for xid in moved.prepared:
        report(
            f"warning: {xid} was prepared on the target, and no record says so any more: unless the"
            f" source completes it, its locks stay until XA COMMIT {xid} or XA ROLLBACK {xid}"
        )
    if moved.copy is not None:
        print_line(f"from {moved.copy.copied}")
        if moved.copy.unseen:
            report("warning: the source shows its user no tables: is the copy on the target?")
        if moved.copy.missing:
            report(
                f"warning: the target lacks {moved.copy.missing}: newer than the copy, or has the"
                " load not ended? What was not loaded does not come by itself"
            )
    print_line(f"was  {_text(moved.before)}")
    print_line(f"{'then' if dry_run else 'now '} {_text(moved.after)}")
    if moved.by.back:
        print_line(f"back by {moved.by.back}, which are applied again")
    if moved.by.forward:
        print_line(f"forward by {moved.by.forward}, which mtsd does not apply")
    if moved.kept:
        print_line(f"with what mtsd has applied before: {shown(moved.kept)}")
    if moved.by.unknown:
        print_line(f"by how much is not known: {moved.by.unknown}")
    return ExitStatus.DONE


def _show(args: argparse.Namespace) -> int:
    settings: Settings = load_configuration(args).settings
    try:
        status = asyncio.run(read_stored(settings))
    except MtsdError as error:
        return complain(error, ExitStatus.NEEDS_PERSON)
    for line in _lines(status):
        print_line(line)
    return ExitStatus.DONE


def _lines(status: Status) -> list[str]:
    place = str(status.executed)
    if not place and not status.executed.gtid:
        return ["none yet: the next start begins at [source] start"]
    texts = [f"executed  {place or 'what the GTIDs say'}"]
    if status.executed.gtid:
        texts.append(f"GTIDs     {status.executed.gtid}")
    past = sum(worker.groups for worker in status.workers)
    if past:
        texts.append("beyond    some groups too: the next start fills the gaps between them")
    if status.in_doubt:
        numbers = ", ".join(str(group.number) for group in status.in_doubt)
        texts.append(f"in doubt  group {numbers}")
    return texts


def _text(mark: LowWaterMark | None) -> str:
    if mark is None:
        return "none: the next start begins at [source] start"
    by = f", GTIDs {mark.gtids}" if mark.gtids else ""
    return f"{mark.position}{by}"

"""`mtsd binlog`: the groups, the events or the rows of binary log files."""

import argparse
import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from mtsd.cli.arguments import (
    Subparsers,
    add_configuration,
    load_configuration,
    named,
    named_path,
    refuse_settings,
    whole,
)
from mtsd.cli.complaint import complain
from mtsd.cli.listing.columns import Columns
from mtsd.cli.listing.event_listing import SHORT, EventLine, event_lines
from mtsd.cli.listing.group_selection import (
    GroupPlace,
    NothingFoundError,
    SelectedGroups,
    Selection,
    events_within,
    group_at,
    groups_of,
    wanted_gtids,
    wanted_table,
)
from mtsd.cli.listing.listed_files import ListedFile, files_of_source, local_files
from mtsd.cli.listing.row_listing import RowListing, UndecodedRows
from mtsd.cli.listing.shown_values import LONGEST
from mtsd.cli.output import (
    OutputError,
    flush,
    json_of,
    print_json,
    print_line,
    printable,
    report,
)
from mtsd.config import Settings
from mtsd.model.errors import BinlogError, MtsdError
from mtsd.model.group import Group, GroupKind
from mtsd.model.outcome.exit_status import ExitStatus
from mtsd.model.position import Position, parse_position
from mtsd.operations.group_place import place_of_group

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_EXAMPLE = """\
example:
  mtsd binlog /var/lib/mysql/binlog.000042
  mtsd binlog --events --json binlog.000042 binlog.000043 | jq .type
  mtsd binlog --rows binlog.000042 | grep 'update shop.orders'
  mtsd binlog --config config.toml binlog.000042
  mtsd binlog --rows --gtid 3e11fa47-71ca-11e1-9e33-c80aa9429562:23 --config config.toml
  mtsd binlog --rows --group 4711 --config config.toml
  mtsd binlog --rows --from binlog.000042:1507 --table shop.orders --limit 3 binlog.000042

exit status: 0 all read; 1 the GTID, position or group is in none of the files; 2 bad usage or
configuration, or a file cannot be opened; 3 a file is damaged or has unknown contents, or a server
cannot be asked
"""

Parsed = TypeVar("Parsed")


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "binlog",
        description="List the groups of binary log files: for each its end position, number"
        " (counted from the beginning of the first file), kind, commit time on the source (UTC),"
        " size in bytes, last_committed, sequence_number, GTID and databases. With --rows, every"
        " event, and below each row event its rows. Columns have their names, and ENUM and SET"
        " their members, if the source logs them (binlog_row_metadata = FULL), otherwise @1, @2 and"
        " so on, and numbers. A column that is not in the log (binlog_row_image) is not listed."
        " What the log does not tell enough about is listed in hex with a note, TIMESTAMP in UTC."
        " What is longer than 1,000 characters is cut off; --json has all of it.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "files",
        nargs="*",
        type=named_path,
        metavar="FILE",
        help="a binary log file; with --config, or without any, those of the source",
    )
    add_configuration(parser, default="with FILE, only if it is given; else as everywhere")
    selection = parser.add_argument_group(
        "selection", "Only what fulfils all of these; events between groups are not listed then."
    )
    add = selection.add_argument
    add(
        "--gtid",
        type=_as(wanted_gtids),
        metavar="SET",
        help="the groups with these GTIDs; only the files that have them are read",
    )
    add(
        "--group",
        type=whole(1),
        metavar="N",
        help="the one that messages call group N; of the source",
    )
    add("--position", type=_as(_place), metavar="FILE:POS", help="the group that ends there")
    add(
        "--from",
        type=_as(_place),
        dest="after",
        metavar="FILE:POS",
        help="groups from there on, the first of which may have begun before",
    )
    add(
        "--to",
        type=_as(_place),
        dest="before",
        metavar="FILE:POS",
        help="groups that begin before it",
    )
    add(
        "--table",
        type=_as(wanted_table),
        action="append",
        default=[],
        metavar="DB.TABLE",
        help="groups that change it, of their rows only its own; may be repeated",
    )
    add(
        "--database",
        type=named,
        action="append",
        default=[],
        metavar="DB",
        help="groups that change it; may be repeated",
    )
    add("--limit", type=whole(1), metavar="N", help="at most N groups")
    parser.add_argument("--events", action="store_true", help="list every event, not the groups")
    parser.add_argument("--rows", action="store_true", help="list every event, and all rows")
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    parser.set_defaults(run=run)


def _as(parse: Callable[[str], Parsed]) -> Callable[[str], Parsed]:
    def parsed(text: str) -> Parsed:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"{text[:80]!r}: {error}") from None

    return parsed


def _place(text: str) -> Position:
    place = parse_position(text)
    if place is None:
        raise ValueError("FILE:POS is needed, with the name of the file alone")
    return place


def run(args: argparse.Namespace) -> int:
    """List the files and return the exit status."""
    try:
        if args.files and args.config is None:
            refuse_settings(args)
            files: Sequence[ListedFile] = local_files(args.files)
            selection = _selection(args, None)
        else:
            settings = load_configuration(args).settings
            files = files_of_source(settings, args.files)
            selection = _selection(args, settings)
        shown = _Shown(files, selection)
        if args.rows:
            _list_rows(shown, as_json=args.json)
        elif args.events:
            _list_events(shown, as_json=args.json)
        else:
            _list_groups(shown, as_json=args.json)
    except (BrokenPipeError, OutputError):
        raise
    except OSError as error:
        return complain(error, ExitStatus.BAD_USAGE)
    except NothingFoundError as error:
        return complain(error, ExitStatus.FAILED)
    except MtsdError as error:
        flush()
        return complain(error, ExitStatus.NEEDS_PERSON)
    return ExitStatus.DONE


def _selection(args: argparse.Namespace, settings: Settings | None) -> Selection:
    """Return what is to be listed of the files, which are the source's if there are `settings`."""
    selection = Selection(
        gtids=args.gtid,
        after=args.after,
        before=args.before,
        end=args.position,
        tables=frozenset(args.table),
        databases=frozenset(args.database),
        limit=args.limit,
    )
    if args.group is None:
        return selection
    if settings is None:
        message = (
            "--group needs the source's binary log (--config, and no FILE of this machine): numbers"
            " count a channel's groups, which the position on the target is needed for"
        )
        raise SystemExit(complain(message, ExitStatus.BAD_USAGE))
    place = asyncio.run(place_of_group(settings, args.group))
    if isinstance(place, Position):
        return replace(selection, end=place)
    return replace(selection, number=args.group, mark=place)


class _Shown:
    """What is listed of files."""

    def __init__(self, files: Sequence[ListedFile], selection: Selection) -> None:
        self._selection = selection
        self._all = selection == Selection()
        self.files = files if self._all else selection.reads(files)
        self.position_width = max((len(f"{file.name}:{file.size}") for file in files), default=0)

    def groups(self) -> Iterator[tuple[Group, int | None]]:
        """Yield the groups, and their numbers, if they are counted."""
        if not self._all:
            for file, place in self._places():
                group = place.group
                if group is None:
                    group = group_at(file, place)
                    yield group, None
                else:
                    yield group, group.number or None
            return
        number = 1
        for file in self.files:
            for group, _, _ in groups_of(file, number):
                yield group, group.number
                number = group.number + 1

    def lines(self) -> Iterator[Iterator[EventLine]]:
        """Yield the lines of one file, or selected group, after another."""
        if self._all:
            for file in self.files:
                yield event_lines(file.name, file.events())
            return
        for file, place in self._places():
            lines = event_lines(
                file.name,
                events_within(file, place),
                start=place.begin,
                description=place.description,
            )
            yield self._selection.lines(lines)

    def _places(self) -> Iterator[tuple[ListedFile, GroupPlace]]:
        groups = SelectedGroups(self._selection)
        for file in self.files:
            for place in groups.of(file):
                yield file, place
            if groups.ended:
                return
        if not groups.found and self._selection.named:
            raise NothingFoundError(f"{self._selection.named} is not in {self._names()}")
        if not groups.found:
            report(f"no group of {self._names()} fulfils all that was asked for")
        if groups.found and groups.left:
            report(f"warning: {groups.left} is in none of them")

    def _names(self) -> str:
        names = list(dict.fromkeys((self.files[0].name, self.files[-1].name) if self.files else ()))
        return " to ".join(names) or "any file"


def _list_groups(shown: _Shown, *, as_json: bool) -> None:
    kind = max(len(kind.value) for kind in GroupKind)
    table = Columns(
        {
            "POSITION": shown.position_width,
            "NUMBER": 6,
            "KIND": kind,
            "COMMIT TIME": 26,
            "BYTES": 7,
            "LC": 5,
            "SEQ": 5,
            "GTID": 44,
            "DATABASES": 9,
        },
        right={"NUMBER", "BYTES", "LC", "SEQ"},
    )
    for group, number in shown.groups():
        if as_json:
            print_json(_json_group(group, number))
        else:
            table.print(_group_cells(group, number))


def _list_events(shown: _Shown, *, as_json: bool) -> None:
    table = _event_table(shown)
    for lines in shown.lines():
        for line in lines:
            _list_event(line, table, SHORT, as_json=as_json)


def _list_event(line: EventLine, table: Columns, longest: int, *, as_json: bool) -> None:
    if as_json:
        print_json(json_of(line.as_json()))
    else:
        table.print(_event_cells(line, longest))


def _list_rows(shown: _Shown, *, as_json: bool) -> None:
    """List events and rows. Raises BinlogError at the end if not all could be decoded."""
    table = _event_table(shown)
    first: UndecodedRows | None = None
    count = 0
    for lines in shown.lines():
        listing = RowListing()
        for line in lines:
            _list_event(line, table, LONGEST, as_json=as_json)
            for row in listing.below(line):
                if as_json:
                    print_json(row.as_json())
                else:
                    for text in row.text():
                        print_line(text)
                if isinstance(row, UndecodedRows):
                    count += 1
                    first = first or row
    if first is not None:
        place = Position(first.line.file, first.offset)
        raise BinlogError(
            f"{count} row events could not be decoded, the first one ends at {place}: {first.note}"
        )


def _event_table(shown: _Shown) -> Columns:
    return Columns(
        {"POSITION": shown.position_width, "TYPE": 25, "BYTES": 7, "WHAT": 4}, right={"BYTES"}
    )


def _group_cells(group: Group, number: int | None) -> tuple[str, ...]:
    databases = ",".join(group.databases)
    remarks = ["alone"] if group.alone else []
    if group.xid is not None:
        remarks.append(f"xid {group.xid}")
    if group.unsupported:
        remarks.append(f"not applied: {group.unsupported}")
    return (
        str(group.end),
        "-" if number is None else str(number),
        group.kind.value,
        (_EPOCH + timedelta(microseconds=group.commit_time)).strftime("%Y-%m-%d %H:%M:%S.%f"),
        str(group.size),
        str(group.last_committed),
        str(group.sequence_number),
        str(group.gtid or "-"),
        (printable(databases) or "-") + (f" ({', '.join(remarks)})" if remarks else ""),
    )


def _json_group(group: Group, number: int | None) -> str:
    return json_of(
        {
            "file": group.end.file,
            "pos": group.end.offset,
            "number": number,
            "kind": group.kind.value,
            "gtid": str(group.gtid) if group.gtid else None,
            "databases": group.databases,
            "alone": group.alone,
            "xid": str(group.xid) if group.xid is not None else None,
            "size": group.size,
            "last_committed": group.last_committed,
            "sequence_number": group.sequence_number,
            "commit_time": group.commit_time,
            "unsupported": group.unsupported or None,
        }
    )


def _event_cells(line: EventLine, longest: int = SHORT) -> tuple[str, ...]:
    position = f"{line.file}:{line.offset}" if line.offset else f"{line.file}:-"
    return position, "  " * line.inner + line.type, str(line.size), line.summary(longest)

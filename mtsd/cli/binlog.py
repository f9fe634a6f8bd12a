"""`mtsd binlog`: the groups, the events or the rows of binary log files."""

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path

from mtsd.binlog.format_description import is_of_relay_log
from mtsd.binlog.grouper import Grouper
from mtsd.cli.arguments import Subparsers, add_configuration
from mtsd.cli.complaint import complain
from mtsd.cli.event_listing import SHORT, EventLine, event_lines
from mtsd.cli.listed_files import ListedFile, files_of_source, local_files
from mtsd.cli.printable import printable
from mtsd.cli.row_listing import RowListing, UndecodedRows
from mtsd.cli.shown_values import LONGEST, json_of
from mtsd.model.errors import BinlogError, MtsdError
from mtsd.model.exit_status import ExitStatus
from mtsd.model.group import Group, GroupClosed, GroupKind
from mtsd.model.position import FIRST_EVENT, Position

_PIECE = 1 << 20
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_EXAMPLE = """\
example:
  mtsd binlog /var/lib/mysql/binlog.000042
  mtsd binlog --events --json binlog.000042 binlog.000043 | jq .type
  mtsd binlog --rows binlog.000042 | grep 'update shop.orders'
  mtsd binlog --config config.toml binlog.000042

exit status: 0 all read, 2 a file cannot be opened, 3 a file is damaged or has unknown contents
"""


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "binlog",
        help="list the groups, events or rows of binary log files",
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
        type=Path,
        metavar="FILE",
        help="a binary log file; with --config the name of one on the source, or none for all",
    )
    add_configuration(parser, default="default: none, FILEs are on this machine")
    parser.add_argument("--events", action="store_true", help="list every event, not the groups")
    parser.add_argument("--rows", action="store_true", help="list every event, and all rows")
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """List the files and return the exit status."""
    if args.config is None and not args.files:
        return complain("name a FILE, or the source with --config", ExitStatus.BAD_USAGE)
    try:
        if args.config is None:
            files: Sequence[ListedFile] = local_files(args.files)
        else:
            files = files_of_source(args)
        if args.rows:
            _list_rows(files, as_json=args.json)
        elif args.events:
            _list_events(files, as_json=args.json)
        else:
            _list_groups(files, as_json=args.json)
    except BrokenPipeError:
        raise
    except OSError as error:
        return complain(error, ExitStatus.BAD_USAGE)
    except MtsdError as error:
        sys.stdout.flush()
        return complain(error, ExitStatus.NEEDS_PERSON)
    return ExitStatus.DONE


def _list_groups(files: Sequence[ListedFile], *, as_json: bool) -> None:
    kind = max(len(kind.value) for kind in GroupKind)
    table = _Table(
        {
            "POSITION": _position_width(files),
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
    for group in _groups(files):
        if as_json:
            print(_json_group(group))
        else:
            print(table.line(_group_cells(group)))


def _list_events(files: Sequence[ListedFile], *, as_json: bool) -> None:
    table = _event_table(files)
    for file in files:
        for line in event_lines(file.name, file.events()):
            print(json_of(line.as_json()) if as_json else table.line(_event_cells(line)))


def _list_rows(files: Sequence[ListedFile], *, as_json: bool) -> None:
    """List events and rows. Raises BinlogError at the end if not all could be decoded."""
    table = _event_table(files)
    first: UndecodedRows | None = None
    count = 0
    for file in files:
        listing = RowListing()
        for line in event_lines(file.name, file.events()):
            print(json_of(line.as_json()) if as_json else table.line(_event_cells(line, LONGEST)))
            for row in listing.below(line):
                if as_json:
                    print(row.as_json())
                else:
                    for text in row.text():
                        print(text)
                if isinstance(row, UndecodedRows):
                    count += 1
                    first = first or row
    if first is not None:
        place = Position(first.line.file, first.offset)
        raise BinlogError(
            f"{count} row events could not be decoded, the first one ends at {place}: {first.note}"
        )


def _event_table(files: Sequence[ListedFile]) -> "_Table":
    return _Table(
        {"POSITION": _position_width(files), "TYPE": 25, "BYTES": 7, "WHAT": 4}, right={"BYTES"}
    )


def _groups(files: Iterable[ListedFile]) -> Iterator[Group]:
    number = 1
    for file in files:
        events = file.events()
        first = next(events, b"")
        in_place = not is_of_relay_log(first)
        # Only a group's summary is listed, so nothing has to be held.
        grouper = Grouper(
            start=Position(file.name, FIRST_EVENT),
            next_number=number,
            hold_bytes=_PIECE,
            chunk_bytes=_PIECE,
            checksums=False,
            in_place=in_place,
        )
        for event in chain((first,) if first else (), events):
            for item in grouper.groups((event,)):
                if isinstance(item, Group):
                    yield item
                elif isinstance(item, GroupClosed):
                    yield item.group
        number = grouper.next_number


def _group_cells(group: Group) -> tuple[str, ...]:
    databases = ",".join(group.databases)
    remarks = ["alone"] if group.alone else []
    if group.xid is not None:
        remarks.append(f"xid {group.xid}")
    if group.unsupported:
        remarks.append(f"not applied: {group.unsupported}")
    return (
        str(group.end),
        str(group.number),
        group.kind.value,
        (_EPOCH + timedelta(microseconds=group.commit_time)).strftime("%Y-%m-%d %H:%M:%S.%f"),
        str(group.size),
        str(group.last_committed),
        str(group.sequence_number),
        str(group.gtid or "-"),
        (printable(databases) or "-") + (f" ({', '.join(remarks)})" if remarks else ""),
    )


def _json_group(group: Group) -> str:
    return json_of(
        {
            "file": group.end.file,
            "pos": group.end.offset,
            "number": group.number,
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


def _position_width(files: Sequence[ListedFile]) -> int:
    return max((len(f"{file.name}:{file.size}") for file in files), default=0)


class _Table:
    """Aligned lines of cells, printed as they come: columns grow, and never shrink.

    `widths` are the minimum widths, by title; the columns in `right` are right-aligned.
    """

    def __init__(self, widths: Mapping[str, int], *, right: AbstractSet[str]) -> None:
        self._titles: tuple[str, ...] | None = tuple(widths)
        self._right = [title in right for title in widths]
        self._widths = list(widths.values())

    def line(self, cells: tuple[str, ...]) -> str:
        """Return a line, preceded by the line of titles the first time."""
        self._widths = [
            max(width, len(cell)) for width, cell in zip(self._widths, cells, strict=True)
        ]
        titles, self._titles = self._titles, None
        joined = self._joined(cells)
        return joined if titles is None else f"{self._joined(titles)}\n{joined}"

    def _joined(self, cells: tuple[str, ...]) -> str:
        return "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(cells, self._widths, self._right, strict=True)
        ).rstrip()

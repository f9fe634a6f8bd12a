"""Which groups of binary log files are listed: by place, GTID, number, table or database."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.events.dialect import MYSQL
from mtsd.binlog.events.event_reader import EventReader
from mtsd.binlog.events.format_description import CHECKSUM_CRC32, is_of_relay_log
from mtsd.binlog.events.rows import RowsHeader
from mtsd.binlog.events.table_map import TableMap, parse_table_map
from mtsd.binlog.files.group_boundaries import QUERY
from mtsd.binlog.groups.grouper import Grouper
from mtsd.binlog.sql.changed_tables import Extent, changed
from mtsd.binlog.sql.table_names import Table
from mtsd.cli.listing.event_listing import EventLine
from mtsd.cli.listing.listed_files import ListedFile
from mtsd.model.errors import BinlogError, MtsdError
from mtsd.model.group import Group, GroupChunk, GroupClosed
from mtsd.model.gtid import Gtid, GtidSet
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.position import FIRST_EVENT, Position
from mtsd.model.step import Rows, Statement, Step

_PIECE: Final = 1 << 20
_FORMAT_DESCRIPTION: Final = EventType.FORMAT_DESCRIPTION_EVENT.value
_TABLE_MAP: Final = EventType.TABLE_MAP_EVENT.value
_AFTER_GROUPS: Final = frozenset({
    EventType.ROTATE_EVENT.value, EventType.STOP_EVENT.value, _FORMAT_DESCRIPTION,
    EventType.MARIADB_BINLOG_CHECKPOINT_EVENT.value,
})  # fmt: skip
"""They are in no group, and may come after the last one."""
_OF_MARIADB: Final = re.compile(r"^([0-9]+-[0-9]+)-([0-9]+)$")
_UNKNOWN: Final = frozenset({Extent.SOME, Extent.IN_DATABASE, Extent.UNKNOWN})


class NothingFoundError(MtsdError):
    """What was named, and can be in one place only, is in none of the files."""


@dataclass(frozen=True, slots=True)
class Selection:
    """All of its conditions have to hold; nothing is selected by what is None or empty.

    `after` and `before`: groups that end after the one place, and begin before the other. `end` is
    where the group ends. `number` counts from a channel's low-water mark `mark`. `limit` is the
    most groups that are listed.
    """

    gtids: GtidSet | None = None
    after: Position | None = None
    before: Position | None = None
    end: Position | None = None
    number: int | None = None
    mark: LowWaterMark | None = None
    tables: frozenset[Table] = frozenset()
    databases: frozenset[str] = frozenset()
    limit: int | None = None

    @property
    def by_head(self) -> bool:
        """Whether place and first event of a group tell whether it is selected."""
        return self.number is None and not self.tables and not self.databases

    @property
    def named(self) -> str:
        """What can only be in one place, for a message; "" if there is no such condition."""
        if self.number is not None:
            return f"group {self.number}"
        if self.end is not None:
            return f"a group that ends at {self.end}"
        return f"a group with GTID {self.gtids}" if self.gtids is not None else ""

    def reads(self, files: Sequence[ListedFile]) -> Sequence[ListedFile]:
        """Return those of the files, which are consecutive, that may have a selected group.

        Raises NothingFoundError for a place in a file that is not there.
        """
        names = [file.name for file in files]
        first, last = 0, len(files)
        counted_from = None if self.mark is None else self.mark.position
        for place in (self.after, self.before, self.end, counted_from):
            if place is not None and place.file not in names:
                raise NothingFoundError(f"there is no binary log file {place.file} among them")
        if self.after is not None:
            first = names.index(self.after.file)
        if self.mark is not None:
            first = names.index(self.mark.position.file)
        if self.before is not None:
            last = names.index(self.before.file) + 1
        if self.end is not None:
            first = names.index(self.end.file)
            last = first + 1
        chosen = files[first:last]
        return chosen if self.gtids is None else list(_with_gtids(chosen, self.gtids))

    def is_past(self, place: Position) -> bool:
        """Return whether no selected group begins at a place or after it, in its file."""
        ends = [each for each in (self.before, self.end) if each is not None]
        return any(place.file == end.file and place.offset >= end.offset for end in ends)

    def is_at(self, begin: Position, end: Position, gtid: Gtid | None) -> bool:
        """Return whether the group that is there, in one file, has a selected place and GTID."""
        if self.end is not None and end != self.end:
            return False
        after = self.after
        if after is not None and end.file == after.file and end.offset <= after.offset:
            return False
        if self.is_past(begin):
            return False
        return self.gtids is None or (gtid is not None and gtid in self.gtids)

    def selects(self, group: Group, tables: "TouchedTables", number: int) -> bool:
        """Return whether a group is selected; `number` is its number in the channel, or 0."""
        if self.number is not None and number != self.number:
            return False
        if not self.is_at(Position(group.end.file, group.begin), group.end, group.gtid):
            return False
        if self.databases and self.databases.isdisjoint(group.databases):
            return False
        return not self.tables or tables.has_one_of(self.tables)

    def lines(self, lines: Iterable[EventLine]) -> Iterator[EventLine]:
        """Yield the lines of a selected group without rows of other tables."""
        others: set[int] = set()
        for line in lines:
            match line.decoded:
                case TableMap() as found:
                    others.discard(found.table_id)
                    if not self._lists(found):
                        others.add(found.table_id)
                        continue
                case RowsHeader() as rows if rows.table_id in others:
                    continue
                case _:
                    pass
            yield line

    def _lists(self, table: TableMap) -> bool:
        if self.databases and table.database not in self.databases:
            return False
        return not self.tables or (table.database, table.table) in self.tables


class GroupPlace(NamedTuple):
    """Where a selected group is in its file, and that file's format description.

    `group` is None where only its GTID has been looked at.
    """

    begin: int
    end: int
    description: bytes
    group: Group | None


def wanted_gtids(text: str) -> GtidSet:
    """Parse a set of GTIDs, in which one of a MariaDB is only itself. Raises ValueError."""
    if not text.strip():
        raise ValueError("a GTID set is needed")
    parts = "".join(text.split()).split(",")
    return GtidSet.parse(",".join(_OF_MARIADB.sub(r"\1:\2", part) for part in parts))


def wanted_table(text: str) -> Table:
    """Parse "database.table", where each may be in backquotes. Raises ValueError."""
    database, dot, table = (part.strip("`") for part in text.partition("."))
    if not (database and dot and table):
        raise ValueError("DATABASE.TABLE is needed")
    return database, table


class TouchedTables:
    """The tables that the steps of one group change, as far as they tell."""

    def __init__(self) -> None:
        self._tables: set[Table] = set()
        self._databases: set[str] = set()
        """Of which it may have changed any table."""

    def add(self, steps: Iterable[Step]) -> None:
        """Note what steps change."""
        for step in steps:
            if isinstance(step, Rows):
                for event in step.events:
                    if event[4] == _TABLE_MAP:
                        table = parse_table_map(event)
                        self._tables.add((table.database, table.table))
            elif isinstance(step, Statement):
                self._add_statement(step)

    def _add_statement(self, step: Statement) -> None:
        query = step.query
        changes = changed(query.text, query.table_map_for_update)
        default = query.database
        self._tables.update((database or default, table) for database, table in changes.tables)
        if changes.extent is Extent.DATABASE:
            self._databases.add(changes.database or default)
        elif changes.extent in _UNKNOWN:
            # Rather one too many than one that is passed over.
            self._databases.update((default, *(query.updated_databases or ())))

    def has_one_of(self, tables: frozenset[Table]) -> bool:
        """Return whether one of these is, or may be, among them."""
        return bool(self._tables & tables) or any(name in self._databases for name, _ in tables)


def groups_of(
    file: ListedFile, first_number: int = 1
) -> Iterator[tuple[Group, TouchedTables, bytes]]:
    """Yield the groups of a file, what they change, and the format description before them.

    One of more than a megabyte has no steps.
    """
    description = b""
    grouper: Grouper | None = None
    tables = TouchedTables()
    for event in file.events():
        if event[4] == _FORMAT_DESCRIPTION:
            description = event
        if grouper is None:
            in_place = not is_of_relay_log(event)
            grouper = _grouper(Position(file.name, FIRST_EVENT), first_number, in_place=in_place)
        for item in grouper.groups((event,)):
            if isinstance(item, GroupChunk):
                tables.add(item.steps)
            elif isinstance(item, Group | GroupClosed):
                group = item if isinstance(item, Group) else item.group
                tables.add(group.steps)
                yield group, tables, description
                tables = TouchedTables()


def group_at(file: ListedFile, place: "GroupPlace") -> Group:
    """Return the group at a place. Raises BinlogError."""
    # That events are where they say has been seen on the way there, except in a relay log.
    begin = Position(file.name, place.begin)
    grouper = _grouper(begin, description=place.description, in_place=False)
    for item in grouper.groups(tuple(events_within(file, place))):
        if isinstance(item, Group):
            return item
        if isinstance(item, GroupClosed):
            return item.group
    raise BinlogError("a transaction without its end", begin)


def _grouper(
    start: Position, number: int = 1, *, description: bytes = b"", in_place: bool
) -> Grouper:
    # Only summaries are needed, so nothing has to be held.
    return Grouper(
        start=start, next_number=number, hold_bytes=_PIECE, chunk_bytes=_PIECE, checksums=False,
        description=description, in_place=in_place,
    )  # fmt: skip


class SelectedGroups:
    """Finds the selected groups of files, one after another; `found` counts them."""

    def __init__(self, selection: Selection) -> None:
        self._selection = selection
        self.left = selection.gtids
        """What of the GTIDs has not been found yet; None if any will do."""
        self._number = 0 if selection.mark is None else selection.mark.number
        self.found = 0

    @property
    def ended(self) -> bool:
        """Whether nothing more can be found."""
        selection = self._selection
        if selection.limit is not None and self.found >= selection.limit:
            return True
        one = selection.number is not None or selection.end is not None
        return (one and self.found > 0) or (self.left is not None and not self.left)

    def of(self, file: ListedFile) -> Iterator[GroupPlace]:
        """Yield those of a file, in order."""
        by_head = self._selection.by_head
        for place in self._by_head(file) if by_head else self._by_contents(file):
            self.found += 1
            yield place
            if self.ended:
                return

    def _by_contents(self, file: ListedFile) -> Iterator[GroupPlace]:
        mark = self._selection.mark
        for group, tables, description in groups_of(file):
            begin = Position(file.name, group.begin)
            if self._selection.is_past(begin):
                return
            if mark is not None and (file.name != mark.position.file or begin >= mark.position):
                self._number += 1
            if self._selection.selects(group, tables, self._number):
                self._is_found(group.gtid)
                numbered = replace(group, number=self._number if mark is not None else 0)
                yield GroupPlace(group.begin, group.end.offset, description, numbered)

    def _by_head(self, file: ListedFile) -> Iterator[GroupPlace]:
        """Look only at the events that groups begin with: a large file takes a second or two."""
        dialect = MYSQL
        telling = dialect.heads | _AFTER_GROUPS | {QUERY}
        checksum = 0
        description = b""
        at = FIRST_EVENT
        begin: int | None = None
        gtid: Gtid | None = None
        for raw in file.events():
            code = raw[4]
            if code not in telling:
                at += len(raw)
                continue
            if begin is not None:
                yield from self._if_selected(file, GroupPlace(begin, at, description, None), gtid)
                begin = None
            if self._selection.is_past(Position(file.name, at)):
                return
            if code in dialect.heads:
                begin, gtid = at, dialect.parse_head(raw[: len(raw) - checksum]).gtid
                # From here on, every group has one.
                telling -= {QUERY}
            elif code == QUERY:
                yield from self._by_contents(file)
                return
            elif code == _FORMAT_DESCRIPTION or code in dialect.encrypted:
                place = Position(file.name, at)
                reader = EventReader(place, description=description, in_place=False)
                reader.read(raw)
                if reader.description is not None:
                    description, dialect = reader.raw_description, reader.dialect
                    telling |= dialect.heads | dialect.encrypted
                    checksum = 4 * (reader.description.checksum_algorithm == CHECKSUM_CRC32)
            at += len(raw)
        if begin is not None:
            yield from self._if_selected(file, GroupPlace(begin, at, description, None), gtid)

    def _if_selected(
        self, file: ListedFile, place: GroupPlace, gtid: Gtid | None
    ) -> Iterator[GroupPlace]:
        begin, end = Position(file.name, place.begin), Position(file.name, place.end)
        if self._selection.is_at(begin, end, gtid):
            self._is_found(gtid)
            yield place

    def _is_found(self, gtid: Gtid | None) -> None:
        if self.left is not None and gtid is not None:
            one = GtidSet()
            one.add(gtid)
            self.left = self.left.minus(one)


def _with_gtids(files: Sequence[ListedFile], wanted: GtidSet) -> Iterator[ListedFile]:
    """Yield the files that the beginnings of the files say have them, or that say nothing."""
    chosen: list[ListedFile] = []
    left = wanted
    for file in reversed(files):
        before = previous_gtids(file)
        here = left if before is None else left.minus(before)
        if here:
            chosen.append(file)
        if before is not None:
            left = left.minus(here)
            if not left:
                break
    yield from reversed(chosen)


def previous_gtids(file: ListedFile) -> GtidSet | None:
    """Return what was executed before a file began; None if it does not say."""
    reader = EventReader(Position(file.name, FIRST_EVENT), in_place=False)
    with closing(file.events()) as events:
        for raw in events:
            event = reader.read(raw)
            code = raw[4]
            if code in reader.dialect.previous_gtids:
                return reader.dialect.previous_gtids[code](event)
            if code in reader.dialect.heads or reader.offset > _PIECE:
                break
    return None


def events_within(file: ListedFile, place: GroupPlace) -> Iterator[bytes]:
    """Yield the events of a group."""
    left = place.end - place.begin
    with closing(file.events(place.begin)) as events:
        for raw in events:
            if left <= 0:
                return
            left -= len(raw)
            yield raw

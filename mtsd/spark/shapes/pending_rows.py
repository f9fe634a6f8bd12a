"""Row events of groups, kept until there are enough to decode together."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

import numpy as np

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.events.rows import DUMMY_TABLE_ID
from mtsd.binlog.events.table_map import TableMap, parse_table_map
from mtsd.binlog.files.range_parts import GroupPart
from mtsd.model.errors import BinlogError, NotSupportedError
from mtsd.model.position import Position
from mtsd.model.step import Rows
from mtsd.spark.arrays.lockstep import Places
from mtsd.spark.arrays.plain_groups import PlainGroups
from mtsd.spark.arrays.row_batches import (
    DamagedEventError,
    RowBatch,
    RowBatches,
    UnsupportedEventError,
)

_TABLE_MAP: Final[int] = EventType.TABLE_MAP_EVENT.value
_DUMMY: Final = DUMMY_TABLE_ID.to_bytes(6, "little")
_MANY_BYTES: Final = 8 << 20
_MANY_EVENTS: Final = 1 << 16
_MANY_GROUPS: Final = 1 << 15
_MANY_TABLES: Final = 4096

Choose = Callable[[TableMap], RowBatches | None]
"""Returns the decoder of a table's rows; None if they are only counted."""


class TableRows(NamedTuple):
    """Rows of one table and kind.

    For each row: the index of its group, its index in the group, and a number that increases with
    the event that contains it.
    """

    table: TableMap
    decoder: RowBatches
    batch: RowBatch
    groups: Places
    rows: Places
    events: Places


class PartColumns:
    """Parts of groups in order, as columns: where the group of each begins and ends, and so on.

    `times` are those of commits; `closes` tells whether a part is the last one of its group.
    """

    __slots__ = ("begins", "closes", "ends", "gtids", "times")

    def __init__(self) -> None:
        self.begins: list[int] = []
        self.ends: list[int] = []
        self.gtids: list[str | None] = []
        self.times: list[int] = []
        self.closes: list[bool] = []

    def __len__(self) -> int:
        return len(self.begins)

    def add(self, part: GroupPart) -> None:
        """Add a part."""
        self.begins.append(part.begin)
        self.ends.append(part.end)
        self.gtids.append(None if part.gtid is None else str(part.gtid))
        self.times.append(part.commit_time)
        self.closes.append(part.group is not None)

    def add_all(self, groups: PlainGroups) -> None:
        """Add whole groups."""
        self.begins += groups.begins.tolist()
        self.ends += groups.ends.tolist()
        self.gtids += groups.gtids()
        self.times += groups.commit_times.tolist()
        self.closes += [True] * len(groups)


class TakenRows(NamedTuple):
    """What was pending: parts of groups in order, the row count of each, and the wanted rows."""

    parts: PartColumns
    counts: Places
    tables: list[TableRows]


@dataclass(slots=True)
class _Table:
    table: TableMap
    decoder: RowBatches
    is_wanted: bool
    events: list[bytes] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    counted: "_Table | None" = None
    """Where its events of kinds that are not wanted go, whose rows are only counted."""


class PendingRows:
    """Collects the row events of parts of groups; `file` is used for positions in errors.

    Groups without any wanted row are left out, unless `counts_all` is set. `mariadb`: they are of
    a MariaDB. Of `kinds` of row events, by type, all are wanted if it is None.
    """

    def __init__(
        self,
        choose: Choose,
        file: str,
        *,
        counts_all: bool = False,
        mariadb: bool = False,
        kinds: Collection[int] | None = None,
    ) -> None:
        self._choose = choose
        self._file = file
        self._tables: dict[bytes, _Table] = {}
        """By the whole content of a table map except the table's id."""
        self._maps: dict[bytes, _Table] = {}
        """By table id, for the group that is being read."""
        self._parts = PartColumns()
        self._part_of: list[int] = []
        """The part that each event belongs to."""
        self._size = 0
        self._counts_all = counts_all
        self._mariadb = mariadb
        self._kinds = kinds
        self._is_inside = False
        """Whether the group of the last part has not ended."""
        self._passed = 0
        """Rows of the first group that have already been taken."""

    @property
    def is_full(self) -> bool:
        """Whether there is enough to take."""
        return (
            self._size > _MANY_BYTES
            or len(self._part_of) > _MANY_EVENTS
            or len(self._parts) > _MANY_GROUPS
        )

    def add(self, part: GroupPart) -> list[TableMap]:
        """Add a part; return the tables whose maps it contains. Raises BinlogError."""
        maps, kinds = self._maps, self._kinds
        found: list[TableMap] = []
        events: list[tuple[_Table, bytes]] = []
        for step in part.steps:
            if not isinstance(step, Rows):
                continue
            for event in step.events:
                table_id = event[19:25]
                if event[4] == _TABLE_MAP:
                    table = maps[table_id] = self._table(event, part.begin)
                    found.append(table.table)
                    continue
                table_of = maps.get(table_id)
                if table_of is not None:
                    if kinds is not None and event[4] not in kinds:
                        table_of = _counted(table_of)
                    events.append((table_of, event))
                elif table_id != _DUMMY:
                    raise self._error(BinlogError("a row event without its table map"), part.begin)
        is_whole = part.group is not None and not self._is_inside
        self._is_inside = part.group is None
        if part.group is not None:
            maps.clear()
        if self._counts_all or not is_whole or any(table.is_wanted for table, _ in events):
            self._keep(part, events)
        return found

    def add_all(self, groups: PlainGroups) -> None:
        """Add whole groups of rows. Raises BinlogError."""
        first_of = np.full(len(groups.tables), len(groups), np.int64)
        np.minimum.at(first_of, groups.table_of, groups.of)
        # Of groups that were left out, tables are not asked for.
        tables = {
            number: self._table(groups.tables[number], int(groups.begins[place]))
            for number, place in enumerate(first_of.tolist())
            if place < len(groups)
        }
        wanted_tables = [number for number, table in tables.items() if table.is_wanted]
        is_wanted = np.isin(groups.table_of, wanted_tables)
        if self._kinds is not None:
            is_wanted &= np.isin(groups.kinds(), [*self._kinds])
        if not self._counts_all:
            has_wanted = np.zeros(len(groups), np.bool_)
            has_wanted[groups.of[is_wanted]] = True
            is_wanted = is_wanted[has_wanted[groups.of]]
            groups = groups.only(has_wanted)
        first = len(self._part_of)
        self._part_of += (groups.of + len(self._parts)).tolist()
        self._parts.add_all(groups)
        self._size += int((groups.stops - groups.rows).sum())
        for number, table in tables.items():
            is_of = groups.table_of == number
            _take(groups, table, np.flatnonzero(is_of & is_wanted), first)
            others = np.flatnonzero(is_of & ~is_wanted)
            if len(others):
                _take(groups, _counted(table) if table.is_wanted else table, others, first)

    def _keep(self, part: GroupPart, events: list[tuple[_Table, bytes]]) -> None:
        number = len(self._parts)
        self._parts.add(part)
        for table, event in events:
            table.numbers.append(len(self._part_of))
            table.events.append(event)
            self._part_of.append(number)
            self._size += len(event)

    def take(self) -> TakenRows:
        """Decode and return what is pending.

        Raises BinlogError and NotSupportedError with the position of the group.
        """
        parts, self._parts = self._parts, PartColumns()
        part_of = np.array(self._part_of, np.int64)
        self._part_of = []
        self._size = 0
        counts = np.zeros(len(part_of), np.int64)
        decoded: list[tuple[_Table, Places, RowBatch]] = []
        for table in self._with_events():
            numbers = np.array(table.numbers, np.int64)
            events, table.events, table.numbers = table.events, [], []
            for batch in self._decoded(table, events, numbers, part_of, parts):
                of = numbers[batch.events]
                counts += np.bincount(of, minlength=len(counts))
                decoded.append((table, of, batch))
        if len(self._tables) > _MANY_TABLES:
            self._tables = {
                key: table for key, table in self._tables.items() if table in self._maps.values()
            }
        by_part = np.zeros(len(parts), np.int64)
        np.add.at(by_part, part_of, counts)
        bases = self._bases(parts, by_part)
        # Rows before the event in its part, and rows of its group before the part.
        before = np.cumsum(counts) - counts
        part_before = np.cumsum(by_part) - by_part
        first = before - part_before[part_of] + bases[part_of]
        rows = [
            TableRows(table.table, table.decoder, batch, part_of[of], first[of] + batch.rows, of)
            for table, of, batch in decoded
            if table.is_wanted
        ]
        return TakenRows(parts, by_part, rows)

    def _with_events(self) -> Iterator[_Table]:
        for table in self._tables.values():
            if table.events:
                yield table
            if table.counted is not None and table.counted.events:
                yield table.counted

    def _bases(self, parts: PartColumns, counts: Places) -> Places:
        """Return how many rows of its group precede each part."""
        closes = np.array(parts.closes, np.bool_)
        before = np.cumsum(counts) - counts
        is_first = np.concatenate(([True], closes[:-1]))[: len(closes)]
        first = np.maximum.accumulate(np.where(is_first, np.arange(len(closes)), 0))
        bases = before - before[first]
        bases[first == 0] += self._passed
        self._passed = 0 if not len(bases) or closes[-1] else int(bases[-1] + counts[-1])
        return bases

    def _decoded(
        self,
        table: _Table,
        events: list[bytes],
        numbers: Places,
        part_of: Places,
        parts: PartColumns,
    ) -> Iterator[RowBatch]:
        try:
            yield from table.decoder.batches(events)
        except (DamagedEventError, UnsupportedEventError) as error:
            raise self._error(error, parts.begins[part_of[numbers[error.event]]]) from error

    def _error(
        self, error: BinlogError | NotSupportedError, begin: int
    ) -> BinlogError | NotSupportedError:
        if isinstance(error, NotSupportedError):
            return NotSupportedError(f"{error} (after {self._file}:{begin})")
        return BinlogError(error.message, Position(self._file, begin))

    def _table(self, event: bytes, begin: int) -> _Table:
        key = event[25:]
        found = self._tables.get(key)
        if found is None:
            table = parse_table_map(event, mariadb=self._mariadb)
            try:
                decoder = self._choose(table)
            except (BinlogError, NotSupportedError) as error:
                raise self._error(error, begin) from error
            is_wanted = decoder is not None
            found = _Table(table, decoder or _counter(table), is_wanted)
            self._tables[key] = found
        return found


def _take(groups: PlainGroups, table: _Table, chosen: Places, first: int) -> None:
    """Give row events to a table; the first one of the groups has the number `first`."""
    table.numbers += (chosen + first).tolist()
    table.events += groups.events(chosen)


def _counted(table: _Table) -> _Table:
    if table.counted is None:
        table.counted = _Table(table.table, _counter(table.table), is_wanted=False)
    return table.counted


def _counter(table: TableMap) -> RowBatches:
    """Return a decoder that only counts rows, by the columns' types alone."""
    return RowBatches(replace(table, optional=b""), wanted=())


def no_rows(_table: TableMap) -> None:
    """Choose no table, so that rows are only counted."""

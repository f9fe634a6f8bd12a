"""The row events of a large transaction, split into those of several branches (P3 of WL#4648).

The keys that count are the target's, as for the row policy (`mtsd.apply.tables.table_keys`): rows
that have one in common stay together. Where the rows of a table do not tell, it goes to one branch
as a whole, with all tables that foreign keys join to it.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from mtsd.apply.tables.key_definitions import KeyDefinitions, TableName
from mtsd.apply.tables.table_keys import BY_THEMSELVES, ByRow, families_of, keys_of
from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.bytes.header import HEADER_SIZE
from mtsd.binlog.events.rows import NO_FOREIGN_KEY_CHECKS, STMT_END, USE_SQL_FOREIGN_KEY
from mtsd.binlog.events.table_map import TableMap, parse_table_map
from mtsd.binlog.values.row_cutting import CutRows, RowCutter
from mtsd.model.names import folded
from mtsd.schedule.batches.row_branches import JoinedRows, NotSplitError, RowBranches

_TABLE_MAP: Final[int] = EventType.TABLE_MAP_EVENT.value
_NOT_STMT_END: Final = 0xFF & ~STMT_END
_DOES_NOT_CASCADE: Final = NO_FOREIGN_KEY_CHECKS | USE_SQL_FOREIGN_KEY
_ENGINE: Final = "innodb"
"""Of the tables that branches can change."""
_WITHOUT_TRANSACTIONS: Final = BY_THEMSELVES - {_ENGINE, "rocksdb"}
_EVENT_BYTES: Final = 32_768
"""Rows of consecutive events are put together up to this size: each event costs the server."""
RANGE_BYTES: Final = 1 << 18
"""More is not applied faster: see `RowSplitter`."""
_BITS: Final = (1 << 64) - 1
_GOLDEN: Final = 0x9E3779B97F4A7C15
"""2 ** 64 divided by the golden ratio."""


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """A table map: `cutter` is None if the table goes to one branch as a whole.

    `family` stands for all tables that foreign keys join to it. If it `loses_errors`, the target
    changes rows of other tables with its rows, and may not say that it could not.
    """

    event: bytes
    name: TableName
    family: int
    cutter: RowCutter | None
    has_transactions: bool
    loses_errors: bool


class RowSplitter:
    """Splits one transaction into `count` branches, given what is `known` of the target's keys.

    `fold_case`: names of databases and tables are in lower case on the target. `as_sql` is as for
    `keys_of`; `loses_cascade_errors` as for `ServerTraits`. Unless `strict`, a row that is missing
    is no error. With `by_table`, each table goes to one branch as a whole, with all that foreign
    keys join to it (P2), and may be one without transactions. About `range_bytes` of rows with
    consecutive numbers as keys stay together: sessions that insert into the same page of an index
    hinder each other. Those in `whole` go to one branch each, too.
    """

    def __init__(
        self,
        known: KeyDefinitions,
        count: int,
        *,
        fold_case: bool = False,
        as_sql: bool = False,
        by_table: bool = False,
        loses_cascade_errors: bool = False,
        strict: bool = True,
        range_bytes: int = RANGE_BYTES,
        mariadb: bool = False,
        whole: Collection[TableName] = (),
    ) -> None:
        self._mariadb = mariadb
        self._whole = whole
        self._known = known
        self._range_bytes = range_bytes
        # Rows in BINLOG statements lose none.
        self._loses_errors = as_sql and loses_cascade_errors
        self._by_table = by_table
        self._fold_case = fold_case
        self._as_sql = as_sql
        self._families = families_of(known.foreign_keys)
        self._strict = strict
        self._branches = RowBranches(count, forgets=strict)
        self._parts = [_Part() for _ in range(count)]
        self._tables: dict[bytes, _Table] = {}
        """By the bytes after the header of a Table_map event."""
        self._by_id: dict[bytes, _Table] = {}
        self._by_row: set[int] = set()
        """Families of which rows have been split."""
        self._as_whole: set[int] = set()
        """Families that are in one branch."""
        self._shifts: dict[TableName, int] = {}
        """By table, as the power of two, how many numbers are a range that stays together."""
        self._flags = b""
        self._ended = True
        self._all_engines = False

    def learn(self, known: KeyDefinitions) -> None:
        """Go on with keys of more databases."""
        self._known = known
        self._families = families_of(known.foreign_keys)

    def lacks(self, events: Iterable[bytes]) -> frozenset[str]:
        """Return the databases of table maps among events whose keys are not known."""
        without = set()
        for event in events:
            if event[4] == _TABLE_MAP and event[HEADER_SIZE:] not in self._tables:
                without.add(self._folded(parse_table_map(event).database))
        return frozenset(without - self._known.databases)

    def by_engine(self, events: Iterable[bytes]) -> tuple[list[bytes], list[bytes]]:
        """Return the events of tables with transactions, and those of the others.

        Only after this, `split` accepts the latter.
        Raises NotSplitError, BinlogError.
        """
        events_by_engine: tuple[list[bytes], list[bytes]] = [], []
        self._all_engines = True
        for event in events:
            if event[4] == _TABLE_MAP:
                self._see(event)
            events_by_engine[not self._of(event).has_transactions].append(event)
        self._by_id.clear()
        return events_by_engine

    def look_through(self, events: Sequence[bytes]) -> None:
        """Find out what connects the rows of the transaction, given all its events.

        Without this, `split` decides by what has come so far. Raises NotSplitError, BinlogError.
        """
        joined = JoinedRows()
        for event in events:
            if event[4] == _TABLE_MAP:
                self._see(event)
                continue
            table = self._of(event)
            if table.family in self._as_whole or joined.is_full:
                continue
            cut = table.cutter.cut(event) if table.cutter is not None else None
            if cut is None or table.cutter is None:
                self._as_whole.add(table.family)
                continue
            references = cut.references
            for place, keys in enumerate(self._ranges(table, cut)):
                if len(keys) > 1 or not table.cutter.by_one_key:
                    joined.add(keys, references[place] if references else ())
        joined.connect_references()
        self._branches = RowBranches(len(self._parts), joined, forgets=self._strict)
        self._by_id.clear()

    @property
    def divides(self) -> bool:
        """Whether several branches get rows of what was looked through, as far as is known."""
        families = {table.family for table in self._tables.values()}
        return len(families) > 1 or not families <= self._as_whole

    @property
    def divided(self) -> frozenset[TableName]:
        """The tables whose rows go to several branches."""
        tables = self._tables.values()
        return frozenset(each.name for each in tables if each.family in self._by_row)

    def split(self, events: Sequence[bytes]) -> list[tuple[bytes, ...]]:
        """Return the events of each branch for the next ones of the transaction.

        Each begins with its table maps, and its last event ends a statement. The lengths in the
        headers of row events are of no account. Raises NotSplitError, BinlogError.
        """
        parts = self._parts
        for event in events:
            if event[4] == _TABLE_MAP:
                self._see(event)
                continue
            if event[25:27] != self._flags:
                self._begin_statements(event)
            self._ended = bool(event[25] & STMT_END)
            table = self._of(event)
            if not (table.has_transactions or self._all_engines):
                raise NotSplitError("it changes a table without transactions")
            if table.loses_errors and not event[25] & _DOES_NOT_CASCADE:
                raise NotSplitError(
                    "foreign keys cascade from its rows, and the target does not tell of a lock"
                    " wait in a cascade that was too long (innodb_native_foreign_keys = OFF)"
                )
            cut = None
            if table.cutter is not None and table.family not in self._as_whole:
                cut = table.cutter.cut(event)
            if cut is None or table.cutter is None:
                if table.family in self._by_row:
                    raise NotSplitError("not all rows of a table show what they depend on")
                self._as_whole.add(table.family)
                branch = self._branches.place((table.family,), size=len(event))
                parts[branch].add(table.event, event, len(event), [])
                continue
            self._by_row.add(table.family)
            branches = self._branches
            by_one_key = table.cutter.by_one_key
            own: list[list[bytes]] = [[] for _ in parts]
            start = cut.rows_at
            references = cut.references
            rows_keys = self._ranges(table, cut)
            for place, end in enumerate(cut.ends):
                size = end - start
                keys = rows_keys[place]
                if by_one_key:
                    branch = branches.place_by_key(keys, size=size)
                else:
                    used = references[place] if references else ()
                    branch = branches.place(keys, used, size=size)
                own[branch].append(event[start:end])
                start = end
            for part, rows in zip(parts, own, strict=True):
                if rows:
                    part.add(table.event, event, cut.rows_at, rows)
        return [part.taken() for part in parts]

    def _ranges(self, table: _Table, cut: CutRows) -> list[list[int]]:
        """Return the keys of rows; ranges of them where a key is a number."""
        rows = cut.rows
        if table.cutter is None or not table.cutter.by_number or not rows:
            return rows
        shift = self._shifts.get(table.name, -1)
        if shift < 0:
            size = max(1, (cut.ends[-1] - cut.rows_at) // len(rows))
            shift = self._shifts[table.name] = (self._range_bytes // size).bit_length()
        count = len(self._parts)
        return [[_spread(key >> shift, count) for key in keys] for keys in rows]

    def _begin_statements(self, event: bytes) -> None:
        """Begin statements of their own where the flags change, which hold for a whole one."""
        flags = self._flags
        self._flags = event[25:27]
        if (
            flags
            and flags[0] & _NOT_STMT_END == event[25] & _NOT_STMT_END
            and (flags[1] == event[26])
        ):
            return
        if not self._ended:
            raise NotSplitError("a statement of it has changed rows in several ways, as a cascade")
        for part in self._parts:
            part.end_statement()

    def _see(self, event: bytes) -> None:
        body = event[HEADER_SIZE:]
        table = self._tables.get(body)
        if table is None:
            table = self._tables[body] = self._table(event)
        table_id = body[:6]
        before = self._by_id.get(table_id)
        if before is not None and before is not table:
            # Another definition of it.
            for part in self._parts:
                part.end_statement()
        self._by_id[table_id] = table

    def _of(self, event: bytes) -> _Table:
        table = self._by_id.get(event[HEADER_SIZE : HEADER_SIZE + 6])
        if table is None:
            raise NotSplitError("a row event has no table map")
        return table

    def _table(self, event: bytes) -> _Table:
        described = parse_table_map(event, mariadb=self._mariadb)
        name = self._folded(described.database), self._folded(described.table)
        known = self._known.tables.get(name)
        shown = ".".join(name)
        if known is None:
            raise NotSplitError(f"{shown} is not on the target, or its keys are not shown")
        has_transactions = known.engine == _ENGINE
        if not (has_transactions or (self._by_table and known.engine in _WITHOUT_TRANSACTIONS)):
            raise NotSplitError(f"{shown} has the storage engine {known.engine}")
        if known.triggers:
            raise NotSplitError(f"{shown} has triggers")
        family = hash(("family", min(self._families.get(name, frozenset({name})))))
        cutter = None
        if not self._by_table and name not in self._whole:
            cutter = self._cutter(described, name)
        loses_errors = self._loses_errors and any(
            each.parent == name and (each.cascades_deletes or each.cascades_updates)
            for each in self._known.foreign_keys
        )
        return _Table(event, name, family, cutter, has_transactions, loses_errors)

    def _cutter(self, table: TableMap, name: TableName) -> RowCutter | None:
        foreign_keys = [
            each for each in self._known.foreign_keys if name in {each.table, each.parent}
        ]
        keys = keys_of(table, name, self._known.tables, foreign_keys, as_sql=self._as_sql)
        if not isinstance(keys, ByRow):
            return None
        # What every row has comes first.
        first = sorted(keys.keys, key=lambda key: (key.refers, not key.always))
        return RowCutter(keys.formats, first)

    def _folded(self, name: str) -> str:
        return folded(name) if self._fold_case else name


def _spread(number: int, count: int) -> int:
    """Return a key for a number, which is one of `count` branches modulo `count`.

    The branch follows from all bits of the number: keys may be multiples of anything.
    Consecutive ones are spread evenly (Fibonacci hashing).
    """
    return number * count + ((number * _GOLDEN & _BITS) * count >> 64)


class _Part:
    """The events of one branch that are being put together."""

    def __init__(self) -> None:
        self._events: list[bytes] = []
        self._known: dict[bytes, bytes] = {}
        """By table id, the table maps of the current statement."""
        self._head = b""
        """Of the event that rows are being added to: everything before them."""
        self._rows: list[bytes] = []
        self._size = 0

    def add(self, table_map: bytes, event: bytes, rows_at: int, rows: Sequence[bytes]) -> None:
        """Add rows of an event whose head ends at `rows_at`."""
        if (
            self._size > _EVENT_BYTES
            or not rows
            or self._head[4:5] != event[4:5]
            or self._head[HEADER_SIZE:25] != event[HEADER_SIZE:25]
            or self._head[27:] != event[27:rows_at]
        ):
            self._put()
            table_id = event[HEADER_SIZE : HEADER_SIZE + 6]
            if self._known.get(table_id) is not table_map:
                self._known[table_id] = table_map
                self._events.append(table_map)
            self._head = event[:25] + bytes((event[25] & _NOT_STMT_END,)) + event[26:rows_at]
        self._rows.extend(rows)
        self._size += sum(map(len, rows))
        if not rows:
            self._put()

    def end_statement(self) -> None:
        """Let what comes next be another statement."""
        self._put()
        if self._known:
            last = self._events[-1]
            self._events[-1] = last[:25] + bytes((last[25] | STMT_END,)) + last[26:]
            self._known = {}

    def taken(self) -> tuple[bytes, ...]:
        """Return the events so far, and begin anew."""
        self.end_statement()
        events, self._events = tuple(self._events), []
        return events

    def _put(self) -> None:
        if self._head:
            self._events.append(b"".join((self._head, *self._rows)))
        self._head = b""
        self._rows = []
        self._size = 0

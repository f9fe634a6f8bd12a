"""Finds plain transactions in the bytes of a log, all at once: GTID, BEGIN, rows and Xid.

That is what nearly every transaction is. Their events are looked at in columns, so that a
transaction of one row costs about as much as a row does. What does not have exactly this form is
left to `mtsd.binlog.groups.grouper`, and so is what is damaged:

    events   G B T R X  G B T R R X  G Q  G B T R X
    found    -------------------------    ---------    plain
                                     ---               not plain: a definition
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.events.dialect import Dialect
from mtsd.binlog.events.gtid_event import uuid_text
from mtsd.binlog.events.mariadb_gtid_event import DDL, PREPARED_XA, STANDALONE
from mtsd.spark.arrays.joint_checksums import are_sound
from mtsd.spark.arrays.lockstep import PADDING, Buffer, Bytes, Flags, Places

_OTHER, _HEAD, _BEGIN, _TABLE_MAP, _ROWS, _XID, _PASSED = range(7)
"""What an event is."""
_CHECKSUM: Final = 4
_AT_END: Final = 13
"""Where a header says where its event ends."""
_AT_TABLE: Final = 19
_LOW: Final = 0xFFFFFFFF
_BEGIN_SIZE: Final = 19 + 13 + len(b"\0BEGIN") + _CHECKSUM
"""Without its status variables and its database name."""
_XID_SIZE: Final = 19 + 8 + _CHECKSUM
_LEAST: Final = {_TABLE_MAP: 19 + 8 + _CHECKSUM, _ROWS: 19 + 8 + _CHECKSUM}
_WITHOUT_TIME: Final = 19 + 42 + _CHECKSUM
"""A GTID event with a logical clock and nothing after it."""
_MARIADB_GTID: Final = 19 + 19 + _CHECKSUM
_ANONYMOUS: Final[int] = EventType.ANONYMOUS_GTID_LOG_EVENT.value
_FEW: Final = 16
"""So many transactions between others are not worth columns."""


@dataclass(frozen=True, slots=True)
class PlainGroups:
    """Consecutive transactions, as columns; `begins` and `ends` are their offsets in the file.

    The events are in `data`. Each transaction has its GTID event at `heads`. Row events begin at
    `rows` and end, without checksums, at `stops`; each is part `of` a transaction, and has a table
    map in `tables` (`table_of`). Both count from 0. GTIDs consist of UUIDs and numbers (MySQL), or
    of domains, servers and numbers.
    """

    data: bytes
    begins: Places
    ends: Places
    commit_times: Places
    heads: Places
    tables: Sequence[bytes]
    rows: Places
    stops: Places
    of: Places
    table_of: Places
    has_uuids: bool

    def __len__(self) -> int:
        return len(self.begins)

    def only(self, kept: Flags) -> "PlainGroups":
        """Return those of the transactions that are kept."""
        if kept.all():
            return self
        events = kept[self.of]
        return replace(
            self,
            begins=self.begins[kept],
            ends=self.ends[kept],
            commit_times=self.commit_times[kept],
            heads=self.heads[kept],
            rows=self.rows[events],
            stops=self.stops[events],
            of=(np.cumsum(kept) - 1)[self.of[events]],
            table_of=self.table_of[events],
        )

    def kinds(self) -> Bytes:
        """Return the type of each row event."""
        kinds: Bytes = np.frombuffer(self.data, np.uint8)[self.rows + 4]
        return kinds

    def events(self, chosen: Places) -> list[bytes]:
        """Return the row events with these numbers."""
        data = self.data
        begins, ends = self.rows[chosen].tolist(), self.stops[chosen].tolist()
        return [data[begin:end] for begin, end in zip(begins, ends, strict=True)]

    def gtids(self) -> list[str | None]:
        """Return the GTID of each transaction, None if it has none."""
        if not len(self):
            return []
        if self.has_uuids:
            return self._mysql_gtids()
        return [
            f"{domain}-{server}-{number}"
            for domain, server, number in zip(
                self._numbers("<u4", 27), self._numbers("<u4", 5), self._numbers("<u8", 19),
                strict=True,
            )
        ]  # fmt: skip

    def _mysql_gtids(self) -> list[str | None]:
        numbers = self._numbers("<i8", 36)
        if len(set(self._numbers("<u8", 20))) == len(set(self._numbers("<u8", 28))) == 1:
            # It is rare that a stretch has transactions of several servers.
            place = int(self.heads[0])
            origin = uuid_text(self.data[place + 20 : place + 36])
            return [f"{origin}:{number}" if number else None for number in numbers]
        return [
            f"{uuid_text(self.data[place + 20 : place + 36])}:{number}" if number else None
            for place, number in zip(self.heads.tolist(), numbers, strict=True)
        ]

    def _numbers(self, kind: str, after: int) -> list[int]:
        """Return the numbers at so many bytes after the beginning of each transaction."""
        size = np.dtype(kind).itemsize
        places = self.heads + after
        view = np.ndarray((len(self.data) - size + 1,), kind, self.data, 0, (1,))
        found: list[int] = view[places].tolist()
        return found


class PlainFinder:
    """Finds them in events that end with checksums, of servers that speak `dialect`.

    Fewer than `least` of them between others are left to the grouper as well.
    """

    def __init__(self, dialect: Dialect, least: int = _FEW) -> None:
        self._least = least
        self._has_uuids = EventType.GTID_LOG_EVENT.value in dialect.heads
        self._unplaced = dialect.unplaced
        kinds = np.zeros(256, np.uint8)
        kinds[[*dialect.passed_over - dialect.between_groups]] = _PASSED
        kinds[[*dialect.rows]] = _ROWS
        kinds[EventType.TABLE_MAP_EVENT.value] = _TABLE_MAP
        kinds[EventType.XID_EVENT.value] = _XID
        if self._has_uuids:
            kinds[EventType.QUERY_EVENT.value] = _BEGIN
        kinds[[*dialect.heads]] = _HEAD
        self._kinds = kinds
        self._tagged: int = EventType.GTID_TAGGED_LOG_EVENT.value

    def split(
        self, data: bytes, places: Sequence[int], at: int
    ) -> Iterator[tuple[int, int, PlainGroups | None]]:
        """Yield stretches of events, which are all of them: the first one, the one after, the rest.

        `places` are where events begin in `data`, and where the last one ends; byte 0 is byte `at`
        of the file. With None, nothing is known of a stretch.
        """
        count = len(places) - 1
        found = _Events(self._kinds, data, np.array(places, np.int64), at)
        if not len(found.heads):
            yield 0, count, None
            return
        plain = self._plain(found)
        done = 0
        for first, last in _runs(plain, self._least):
            begin = int(found.heads[first])
            end = int(found.heads[last]) if last < len(found.heads) else count
            bounds = found.starts[begin : end + 1]
            if not are_sound(data, bounds):
                continue
            if done < begin:
                yield done, begin, None
            yield begin, end, self._groups(found, first, last, begin, end)
            done = end
        if done < count:
            yield done, count, None

    def _plain(self, found: "_Events") -> Flags:
        """Tell which transactions, by their number, have the expected form and are whole."""
        heads, kinds, sizes, starts = found.heads, found.kinds, found.sizes, found.starts
        ends = found.buffer.numbers("<u4", starts[:-1] + _AT_END)
        placed = ends == ((found.at + starts[1:]) & _LOW)
        if self._unplaced:
            placed |= (ends == 0) & (kinds != _XID) & (kinds != _HEAD)
        wrong = ~placed | (kinds == _OTHER)
        for kind, least in _LEAST.items():
            wrong |= (kinds == kind) & (sizes < least)
        wrong |= (kinds == _XID) & (sizes != _XID_SIZE)
        wrong |= kinds == _BEGIN
        if self._has_uuids:
            # Only right after its GTID.
            wrong[found.begins_at] = ~placed[found.begins_at] | ~_are_begins(found)
            wrong[heads] |= self._are_no_mysql_heads(found)
        else:
            wrong[heads] |= _are_no_mariadb_heads(found)
        plain: Flags = (
            (found.per_transaction(wrong) == 0)
            & (kinds[found.last] == _XID)
            & (found.per_transaction(kinds == _XID) == 1)
            & (found.per_transaction(kinds == _ROWS) > 0)
            & found.has_tables
            # The grouper counts what is passed over right before a transaction as a part of it.
            & ((heads == 0) | (kinds[heads - 1] != _PASSED))
        )
        return plain

    def _are_no_mysql_heads(self, found: "_Events") -> Flags:
        at, buffer = found.starts[found.heads], found.buffer
        sizes = found.sizes[found.heads]
        types = buffer.data[at + 4]
        numbers = buffer.numbers("<i8", at + 36)
        wrong: Flags = (sizes < _WITHOUT_TIME) | (types == self._tagged)
        wrong |= np.where(types == _ANONYMOUS, numbers != 0, numbers < 1)
        wrong |= buffer.data[at + 44] != 2  # a logical clock of the only kind that there is
        return wrong

    def _groups(self, found: "_Events", first: int, last: int, begin: int, end: int) -> PlainGroups:
        bounds = np.append(found.heads, len(found.kinds))[first : last + 1]
        starts = found.starts[bounds]
        at = starts[:-1]
        rows = np.flatnonzero(found.kinds[begin:end] == _ROWS) + begin
        tables, table_of = found.tables_of(rows)
        return PlainGroups(
            found.data,
            at + found.at,
            starts[1:] + found.at,
            self._times(found, at, found.sizes[bounds[:-1]]),
            at,
            tables,
            found.starts[rows],
            found.starts[rows + 1] - _CHECKSUM,
            found.of[rows] - first,
            table_of,
            self._has_uuids,
        )

    def _times(self, found: "_Events", at: Places, sizes: Places) -> Places:
        seconds = found.buffer.numbers("<u4", at).astype(np.int64) * 1_000_000
        if not self._has_uuids:
            return seconds
        has_time = sizes >= _WITHOUT_TIME + 7
        # The last bit says that another time follows.
        times = found.buffer.numbers("<i8", np.where(has_time, at + 61, 0)) & ((1 << 55) - 1)
        return np.where(has_time & (times != 0), times, seconds)


class _Events:
    """Events in a buffer, and the transactions that their heads begin."""

    def __init__(self, kinds: Bytes, data: bytes, starts: Places, at: int) -> None:
        self.data = data
        self.at = at
        self.starts = starts
        """Where each begins, and where the last one ends."""
        self.buffer = Buffer(data + bytes(PADDING))
        self.kinds = kinds[self.buffer.data[starts[:-1] + 4]]
        self.sizes = np.diff(starts)
        self.heads = np.flatnonzero(self.kinds == _HEAD)
        """The first event of each transaction."""
        if not len(self.heads):
            return
        self.last = np.append(self.heads[1:], len(self.kinds)) - 1
        """The last event of each."""
        self.of = np.cumsum(self.kinds == _HEAD) - 1
        """The transaction of each event; -1 for what comes before the first one."""
        self.begins_at = np.minimum(self.heads + 1, len(self.kinds) - 1)
        self._bodies: dict[bytes, int] = {}
        self._body_of = np.zeros(len(self.kinds), np.int64)
        self.has_tables = self._has_tables()

    def per_transaction(self, flags: Flags) -> Places:
        """Return in how many events of each transaction something is so."""
        first = int(self.heads[0])
        return np.add.reduceat(flags[first:], self.heads - first, dtype=np.int64)

    def _has_tables(self) -> Flags:
        """Find the table map of each row event; tell which transactions have those of all."""
        maps = np.flatnonzero(self.kinds == _TABLE_MAP)
        rows = np.flatnonzero(self.kinds == _ROWS)
        complete = np.ones(len(self.heads), np.bool_)
        if not len(maps):
            return ~complete
        self._number(maps)
        ids = self.buffer.numbers("<u8", self.starts[:-1] + _AT_TABLE) & ((1 << 48) - 1)
        _, dense = np.unique(ids, return_inverse=True)
        key = self.of * (int(dense.max()) + 1) + dense.reshape(-1)
        order = np.argsort(key[maps], kind="stable")
        keys = key[maps][order]
        place = np.searchsorted(keys, key[rows], side="right") - 1
        hit = (place >= 0) & (keys[place] == key[rows]) & (self.of[rows] >= 0)
        named = maps[order][place]
        # The last one with this id has to come before the rows, as in a server's log.
        hit &= named < rows
        self._body_of[rows] = self._body_of[named]
        complete[self.of[rows[~hit & (self.of[rows] >= 0)]]] = False
        return complete

    def _number(self, maps: Places) -> None:
        """Give each table map the number of those with the same content."""
        bodies = self._bodies
        data = self.data
        self._body_of[maps] = [
            bodies.setdefault(data[start + 19 : stop], len(bodies))
            for start, stop in zip(
                self.starts[maps].tolist(),
                (self.starts[maps + 1] - _CHECKSUM).tolist(),
                strict=True,
            )
        ]

    def tables_of(self, rows: Places) -> tuple[list[bytes], Places]:
        """Return the table maps of row events, without checksums, and the index of each one's."""
        used, table_of = np.unique(self._body_of[rows], return_inverse=True)
        bodies = list(self._bodies)
        header = bytes((0, 0, 0, 0, EventType.TABLE_MAP_EVENT.value)) + bytes(14)
        return [header + bodies[number] for number in used.tolist()], table_of.reshape(-1)


def _are_begins(found: _Events) -> Flags:
    at, buffer = found.starts[found.begins_at], found.buffer
    sizes = found.sizes[found.begins_at]
    is_query = (found.kinds[found.begins_at] == _BEGIN) & (sizes >= _BEGIN_SIZE)
    expected = _BEGIN_SIZE + buffer.numbers("<u2", at + 30).astype(np.int64) + buffer.data[at + 27]
    text = at + sizes - _CHECKSUM - len(b"BEGIN")
    is_text = (buffer.numbers("<u4", text) == int.from_bytes(b"BEGI", "little")) & (
        buffer.data[text + 4] == ord("N")
    )
    found_there: Flags = is_query & (sizes == expected) & is_text
    return found_there


def _are_no_mariadb_heads(found: _Events) -> Flags:
    at = found.starts[found.heads]
    wrong: Flags = found.sizes[found.heads] < _MARIADB_GTID
    # A transaction, and neither a definition nor a part of XA.
    flags = found.buffer.data[at + 31] & (STANDALONE | DDL | PREPARED_XA | PREPARED_XA << 1)
    wrong |= (flags != 0) | (found.buffer.numbers("<u8", at + 19) == 0)
    return wrong


def _runs(plain: Flags, least: int) -> Iterator[tuple[int, int]]:
    """Yield where runs of at least so many plain transactions begin and end."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], plain.view(np.int8), [0]))))
    for first, last in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        if last - first >= least:
            yield first, last

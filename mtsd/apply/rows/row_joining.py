"""Row events of several groups as few larger ones: a server applies these in less time.

Groups that are to commit together keep their order only where they may conflict: by their keys, or
by the source's logical clock. Each row event gets a layer: behind those of the event before it in
its group, and of the earlier groups that its group may conflict with. Events of one layer are
independent, so those that change the same table in the same way are one event.
"""

from bisect import bisect_right
from collections.abc import Hashable, Sequence
from typing import Final

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.events.rows import DUMMY_TABLE_ID, UPDATE_KINDS, VERSION_1_KINDS
from mtsd.binlog.values.row_keys import table_id_of
from mtsd.model.group import Group
from mtsd.model.step import Rows

_TABLE_MAP: Final[int] = EventType.TABLE_MAP_EVENT.value
_WIDE: Final = 251
"""From so many columns on, their number takes more than one byte."""
LARGEST: Final = 1 << 16
"""Bytes of a joined event, at most: larger ones are not applied faster."""


class AlikeRows:
    """What row events have in common that can be one event; of the same there is one object.

    That is the table, `origin` (from the time to the server id), and `rest` (from the extra data to
    the bitmaps), after which the rows begin. The time counts because columns that only the target
    has may have it as their default.
    """

    __slots__ = ("is_update", "origin", "rest", "rows_at", "table")

    def __init__(self, table: "MappedTable", kind: int, origin: bytes, rest: bytes) -> None:
        self.table = table
        self.is_update = kind in UPDATE_KINDS
        self.origin = origin
        self.rest = rest
        self.rows_at = 27 + len(rest)


class MappedTable:
    """A table by its table map: all groups of a file have the same event (see `Grouper`)."""

    __slots__ = ("_heads", "_latest", "event", "table_id")

    def __init__(self, event: bytes, table_id: int) -> None:
        self.event = event
        self.table_id = table_id
        self._heads: dict[tuple[bytes, bytes], AlikeRows] = {}
        self._latest: dict[int, AlikeRows] = {}
        """By event type."""

    def head(self, event: bytes) -> AlikeRows | None:
        """Return what a row event of this table has in common with others.

        None if it is wide, or its row takes no bytes: of two of these, nothing would be left but
        one (`mtsd.binlog.events.rows.is_row_of_no_bytes`).
        """
        kind = event[4]
        latest = self._latest.get(kind)
        if (
            latest is not None
            and event[27 : latest.rows_at] == latest.rest
            and event[:9] == latest.origin
        ):
            return latest
        at = 27 if kind in VERSION_1_KINDS else 27 + event[27] + (event[28] << 8)
        width = event[at]
        if width >= _WIDE:
            return None
        bitmap = (width + 7) >> 3
        at += 1 + (bitmap + bitmap if kind in UPDATE_KINDS else bitmap)
        if len(event) == at:
            return None
        origin = event[:9]
        rest = event[27:at]
        known = self._heads.get((origin, rest))
        if known is None:
            known = self._heads[origin, rest] = AlikeRows(self, kind, origin, rest)
        self._latest[kind] = known
        return known


class _Layers:
    """Row events of groups, by layer; empty at first."""

    __slots__ = ("_ends", "_layers", "_newest", "_numbers", "_offset", "_tables", "_up_to")

    def __init__(self) -> None:
        self._tables: dict[bytes, MappedTable] = {}
        """By table map."""
        self._layers: list[dict[AlikeRows, list[bytes]]] = []
        self._ends: dict[Hashable, int] = {}
        """By key: the layer behind the group that was the last to change it."""
        self._offset = 0
        """The groups' numbers less their sequence numbers."""
        self._newest = 0
        """The last one's sequence number."""
        self._numbers: list[int] = []
        self._up_to: list[int] = []
        """By number, of groups with a clock: the layer behind everything up to that group."""

    def add(self, group: Group) -> bool:
        """Add a group whose keys are known; return False, and add nothing, if that cannot be."""
        keys = group.keys
        if not keys.rows or keys.references or keys.wholes:
            return False
        events = self._described(group)
        if events is None:
            return False
        ends = self._ends
        at = 0
        rows = keys.rows
        for key in rows:
            end = ends.get(key, 0)
            at = max(at, end)
        at = self._put(events, at)
        for key in rows:
            ends[key] = at
        return True

    def add_by_clock(self, group: Group) -> bool:
        """Add a group by its place in the source's clock; return False as `add` does.

        Also if the clock was interrupted before it (see
        `mtsd.schedule.policies.logical_clock_policy`).
        """
        sequence_number = group.sequence_number
        last_committed = group.last_committed
        if last_committed <= 0 or sequence_number <= last_committed:
            return False
        numbers = self._numbers
        offset = group.number - sequence_number
        if numbers and (offset != self._offset or sequence_number <= self._newest):
            return False
        events = self._described(group)
        if events is None:
            return False
        self._offset = offset
        self._newest = sequence_number
        before = bisect_right(numbers, offset + last_committed)
        end = self._put(events, self._up_to[before - 1] if before else 0)
        numbers.append(group.number)
        self._up_to.append(max(end, self._up_to[-1]) if self._up_to else end)
        return True

    def _put(self, events: list[tuple[AlikeRows, bytes]], at: int) -> int:
        """Put a group's events into layers from that one on; return the one behind them."""
        layers = self._layers
        before: AlikeRows | None = None
        for head, event in events:
            # An update of a row that was updated before is not found, in one event, by a server
            # that scans the table for all rows of an event at once (HASH_SCAN).
            if before is not None and (head is not before or head.is_update):
                at += 1
            before = head
            while len(layers) <= at:
                layers.append({})
            known = layers[at].get(head)
            if known is None:
                layers[at][head] = [event]
            else:
                known.append(event)
        return at + 1

    def _described(self, group: Group) -> list[tuple[AlikeRows, bytes]] | None:
        """Return the row events of a group, each with its head; None if one is of another form."""
        heads: list[tuple[AlikeRows, bytes]] = []
        known = self._tables
        tables: dict[int, MappedTable] = {}
        table: MappedTable | None = None
        for step in group.steps:
            if type(step) is not Rows:
                return None
            for event in step.events:
                if event[4] == _TABLE_MAP:
                    table = known.get(event)
                    if table is None:
                        table = known[event] = MappedTable(event, table_id_of(event))
                    tables[table.table_id] = table
                    continue
                table_id = table_id_of(event)
                if table is None or table.table_id != table_id:
                    table = tables.get(table_id)
                if table is None or table_id == DUMMY_TABLE_ID:
                    return None
                head = table.head(event)
                if head is None:
                    return None
                heads.append((head, event))
        return heads

    def take(self, into: list[bytes], largest: int) -> None:
        """Append what the layers contain, with a table map before each event, and empty them."""
        for layer in self._layers:
            for head, events in layer.items():
                join_alike(head, events, largest, into)
        self._layers = []
        self._ends = {}
        self._numbers = []
        self._up_to = []


def join_alike(head: AlikeRows, events: list[bytes], largest: int, into: list[bytes]) -> None:
    """Append events with the same head as few ones, each after its table map."""
    table_map = head.table.event
    rows_at = head.rows_at
    pieces: list[bytes] = []
    size = 0
    for event in events:
        if pieces and size + len(event) > largest:
            into.append(table_map)
            into.append(b"".join(pieces))
            pieces = []
            size = 0
        pieces.append(event[rows_at:] if pieces else event)
        size += len(event)
    into.append(table_map)
    into.append(b"".join(pieces))


def joined(
    groups: Sequence[Group], largest: int = LARGEST, *, by_clock: bool = False
) -> list[bytes]:
    """Return the events of groups of rows, in an order with the same effect, and joined.

    All their row events have the same flags, apart from STMT_END. An event of more than `largest`
    bytes is one of the source's. Groups whose keys are not known row by row, or refer to others,
    keep their place; with `by_clock` those whose place in the source's logical clock is not known.
    """
    events: list[bytes] = []
    if len(groups) == 1:
        events.extend(groups[0].rows)
        return events
    layers = _Layers()
    for group in groups:
        if by_clock:
            if layers.add_by_clock(group):
                continue
            # With it the clock may go on from another number.
            layers.take(events, largest)
            if layers.add_by_clock(group):
                continue
        elif layers.add(group):
            continue
        layers.take(events, largest)
        events.extend(group.rows)
    layers.take(events, largest)
    return events

"""Cuts row events into their rows, so that each can go its own way (method P3 of WL#4648)."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.events.rows import without_a_column
from mtsd.binlog.values.column_format import ColumnFormat
from mtsd.binlog.values.column_type import ColumnType
from mtsd.binlog.values.row_keys import KeyReader, RowKey, add_key

_PARTIAL_UPDATE: int = EventType.PARTIAL_UPDATE_ROWS_EVENT.value
_INTEGERS: Final = frozenset(
    {ColumnType.SHORT, ColumnType.INT24, ColumnType.LONG, ColumnType.LONGLONG}
)


class CutRows(NamedTuple):
    """The rows of an event, which begin at the offset `rows_at`; `ends` are where each ends.

    `rows` and `references` are the keys of each (`mtsd.model.group_keys`), the first of `rows`
    among them a key that every row has. An update's row is its two images.
    """

    rows_at: int
    ends: list[int]
    rows: list[list[int]]
    references: list[list[int]]


class RowCutter(KeyReader):
    """Cuts the row events of one table map, as `KeyReader` reads their keys.

    `keys` begin with one that always counts.
    """

    def __init__(self, formats: Sequence[ColumnFormat], keys: Sequence[RowKey]) -> None:
        super().__init__(formats, keys)
        first = keys[0]
        self._refers = any(key.refers for key in keys)
        self.by_one_key = len(keys) == 1 and first.always
        """Whether rows have nothing in common but the key that each of them has."""
        column = formats[first.parts[0].column]
        self.by_number = self.by_one_key and len(first.parts) == 1 and column.type in _INTEGERS
        """Whether that is an integer, which is then the key itself, without its sign."""

    def cut(self, event: bytes) -> CutRows | None:
        """Return the rows of an event, given without its checksum; None if not all is known.

        See `KeyReader.collect` for the latter. Raises BinlogError where it is damaged.
        """
        plan = self._planned(event)
        if plan is None:
            return CutRows(len(event), [], [], [])
        if not plan.is_known:
            return None
        keys = plan.keys
        at = plan.rows_at
        end = len(event)
        is_update = plan.is_update
        before = plan.before
        after = plan.after
        by_number = self.by_number
        rows_at = at
        ends: list[int] = []
        rows: list[list[int]] = []
        references: list[list[int]] = []
        while at < end:
            start = at
            at = plan.first.read(event, at, before)
            if is_update:
                at = self._read_after(event, at, plan)
            if at == start:
                raise without_a_column(end - at)
            ends.append(at)
            hashes: list[int] = []
            referred: list[int] = []
            for key in keys:
                into = referred if key.refers else hashes
                value = before[key.slot]
                other = after[key.slot]
                if (
                    by_number
                    and key.single
                    and value is not None
                    and other is not None
                    and not (key.cascades and value != other)
                ):
                    into.append(int.from_bytes(value, "little"))
                    if value != other:
                        into.append(int.from_bytes(other, "little"))
                elif not add_key(key, before, after, into, is_update):
                    return None
            rows.append(hashes)
            if self._refers:
                references.append(referred)
        return CutRows(rows_at, ends, rows, references)

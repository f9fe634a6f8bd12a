"""The columns that tell where a row comes from, in the shapes `changes` and `table`."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.files.file_order import number_of
from mtsd.spark.arrays.lockstep import Places
from mtsd.spark.shapes.pending_rows import TableRows, TakenRows
from mtsd.spark.shapes.shape import UTC_MICROSECONDS

INSERT: Final = "insert"
UPDATE: Final = "update"
DELETE: Final = "delete"

_TYPES: Final[dict[str, tuple[EventType, ...]]] = {
    INSERT: (EventType.WRITE_ROWS_EVENT, EventType.WRITE_ROWS_EVENT_V1),
    UPDATE: (
        EventType.UPDATE_ROWS_EVENT,
        EventType.UPDATE_ROWS_EVENT_V1,
        EventType.PARTIAL_UPDATE_ROWS_EVENT,
    ),
    DELETE: (EventType.DELETE_ROWS_EVENT, EventType.DELETE_ROWS_EVENT_V1),
}


def event_types(operations: Iterable[str]) -> frozenset[int]:
    """Return the types of the row events with these operations."""
    return frozenset(kind.value for one in operations for kind in _TYPES[one])


def operation(rows: TableRows) -> str:
    """Return the operation that was performed on these rows."""
    if rows.batch.before is None:
        return INSERT
    return DELETE if rows.batch.after is None else UPDATE


_FIRST_ROW: Final = 1 << 12
"""What the first row of a group counts as in its `seq`, so that marks (-1 and less) sort first."""


_END_DIGITS: Final = 12
"""How many digits the end of a group has in a `seq`."""


def seq_prefix(epoch: int, file: str, end: int) -> str:
    """Return the beginning of a `seq`, for the group that ends there.

    `epoch` counts the servers that were read one after another; numbers of files begin anew on
    each.
    """
    number = number_of(file)
    return f"{epoch:04d}-{0 if number is None else number[1]:010d}-{end:0{_END_DIGITS}d}-"


def seq_suffix(row: int) -> str:
    """Return the end of the `seq` of a row, as it is counted in its group."""
    return f"{max(0, row + _FIRST_ROW):010d}"


class Origins:
    """Where rows come from, by the part of a group that contains them."""

    def __init__(self, taken: TakenRows, file: str, epoch: int = 0) -> None:
        parts = taken.parts
        self._file = file
        self._epoch = epoch
        self._ends = pa.array(parts.ends, pa.int64())
        self._gtids = pa.array(parts.gtids, pa.string())
        self._times = pa.array(parts.times, pa.int64()).cast(UTC_MICROSECONDS)

    def columns(
        self, rows: TableRows, order: Places | None = None
    ) -> dict[str, Callable[[], pa.Array]]:
        """Return functions that make the columns of these rows, by name.

        `order` counts them in their groups as `seq` has them, if that is not as they are.
        """
        part = pa.array(rows.groups)
        return {
            "file": lambda: pa.repeat(self._file, len(part)),
            "pos": lambda: self._ends.take(part),
            "row": lambda: pa.array(rows.rows, pa.int64()),
            "gtid": lambda: self._gtids.take(part),
            "commit_time": lambda: self._times.take(part),
            "seq": lambda: self._seqs(part, rows.rows if order is None else order),
        }

    def _seqs(self, part: pa.Array, rows: Places) -> pa.Array:
        # As seq_prefix and seq_suffix make them, one by one.
        before = seq_prefix(self._epoch, self._file, 0)[: -_END_DIGITS - 1]
        ends = _padded(self._ends, _END_DIGITS).take(part)
        numbers = _padded(pa.array(rows + _FIRST_ROW), len(seq_suffix(0)))
        dash = pa.scalar("-")
        return pc.binary_join_element_wise(pa.scalar(before), ends, dash, numbers, "")


def _padded(numbers: pa.Array, digits: int) -> pa.Array:
    return pc.utf8_lpad(numbers.cast(pa.string()), digits, "0")


def in_order(
    batches: list[pa.RecordBatch], keys: list[tuple[Places, Places]]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of all batches in the order of their `keys`, which are events and rows."""
    if len(batches) == 1:
        yield batches[0]
        return
    joined = pa.Table.from_batches(batches)
    events = np.concatenate([one for one, _ in keys])
    rows = np.concatenate([one for _, one in keys])
    order = np.lexsort((rows, events))
    together = joined.combine_chunks().to_batches()
    if len(together) == 1:
        yield together[0].take(pa.array(order))
        return
    # More than 2 GB of text do not fit into one array.
    for place in order.tolist():
        yield from joined.slice(place, 1).combine_chunks().to_batches()

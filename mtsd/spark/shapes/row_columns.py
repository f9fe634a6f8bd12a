"""The columns that tell where a row comes from, in the shapes `changes` and `table`."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from mtsd.binlog.bytes.event_type import EventType
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


class Origins:
    """Where rows come from, by the part of a group that contains them."""

    def __init__(self, taken: TakenRows, file: str) -> None:
        parts = taken.parts
        self._file = file
        self._ends = pa.array([part.end for part in parts], pa.int64())
        self._gtids = pa.array(
            [None if part.gtid is None else str(part.gtid) for part in parts], pa.string()
        )
        self._times = pa.array([part.commit_time for part in parts], pa.int64()).cast(
            UTC_MICROSECONDS
        )

    def columns(self, rows: TableRows) -> dict[str, Callable[[], pa.Array]]:
        """Return functions that make the columns of these rows, by name."""
        part = pa.array(rows.groups)
        return {
            "file": lambda: pa.repeat(self._file, len(part)),
            "pos": lambda: self._ends.take(part),
            "row": lambda: pa.array(rows.rows, pa.int64()),
            "gtid": lambda: self._gtids.take(part),
            "commit_time": lambda: self._times.take(part),
        }


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

"""A stream of a log: batches of whole groups, each of which can be replayed from its two offsets.

An offset is a file and a place in it where a group ends (`mtsd.spark.source.stream_plan`). The
initial one is a placeholder; the first batch is empty and ends where the option `start` says. So
the choice is in Spark's checkpoint before any row is read, and still holds when a query is
restarted.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from time import monotonic, sleep
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    SupportsTriggerAvailableNow,
)

from mtsd.model.position import Position
from mtsd.spark.logs.failure import one_line
from mtsd.spark.logs.live_connection import another_server
from mtsd.spark.logs.logs import Logs, Stretch
from mtsd.spark.options.options import OptionError
from mtsd.spark.shapes.shape import Shape, ShapeRequest
from mtsd.spark.source.reading import Ranges, rows
from mtsd.spark.source.stream_plan import first_offset, next_end, parts_between

Offset = dict[str, str | int]
_FILE: Final = "file"
_POS: Final = "pos"
_SOURCE: Final = "source"
_NOT_CHOSEN: Final[Offset] = {_FILE: "", _POS: 0}
_PAUSE_S: Final = 0.1
"""A pause if there is nothing new, because Spark asks again at once."""


class BinlogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans the batches of a stream, and runs its tasks."""

    def __init__(self, request: ShapeRequest, shape: Shape, logs: Logs) -> None:
        self._start = request.options.start
        # Only the offsets count; the option may have changed since, and must not drop anything.
        self._request = replace(request, options=replace(request.options, start=None))
        self._shape = shape
        self._logs = logs
        self._stop = request.options.end
        self._look_again = 0.0

    def initialOffset(self) -> Offset:  # noqa: N802
        """Return the offset before the first batch."""
        return dict(_NOT_CHOSEN)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return the size limit of a batch, which only a single group may exceed."""
        return ReadMaxBytes(self._request.options.max_bytes)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Make the stream end where the log ends now."""
        with one_line():
            end = first_offset(self._logs, None, latest=True)
            self._stop = end if self._stop is None else min(self._stop, end)

    def latestOffset(self, start: Mapping[str, object], limit: ReadLimit) -> Offset:  # noqa: N802
        """Return where the next batch ends; `start` if there is nothing new."""
        with one_line():
            options = self._request.options
            begin = self._position(start)
            if begin is None:
                return self._offset(first_offset(self._logs, self._start, latest=options.latest))
            if options.end is not None and options.end <= begin:
                return self._offset(begin)
            sleep(max(0.0, self._look_again - monotonic()))
            end = next_end(self._logs, begin, _most(limit), self._stop)
            # Another server may have replaced the source since.
            self._position(start)
            if end == begin:
                self._look_again = monotonic() + _PAUSE_S
            return self._offset(end)

    def partitions(
        self, start: Mapping[str, object], end: Mapping[str, object]
    ) -> list[InputPartition]:
        """Return what each task reads of the bytes between two offsets."""
        with one_line():
            begin, stop = self._position(start), self._position(end)
            if begin is None or stop is None:
                return []
            parts = parts_between(self._logs, begin, stop)
            planned = self._logs.planned(parts, self._request.options.max_partition_bytes)
            stretch = Stretch(begin, stop)
            origin = self._logs.origin
            return [Ranges(ranges, origin, stretch) for ranges in planned]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield a task's rows; raises UnreadableBinlogError if a file cannot be read."""
        return rows(self._request, self._shape, self._logs, partition)

    def stop(self) -> None:
        """Close the connection to a live source."""
        self._logs.close()

    def _position(self, offset: Mapping[str, object]) -> Position | None:
        file, place = offset.get(_FILE), offset.get(_POS)
        origin = offset.get(_SOURCE, "")
        if not (isinstance(file, str) and isinstance(place, int) and isinstance(origin, str)):
            raise OptionError(f"the checkpoint is of another source: its offset is {dict(offset)}")
        if not file:
            return None
        if origin != self._logs.origin:
            known = self._logs.origin or "files"
            raise OptionError(another_server("this address", origin or "files", known))
        return Position(file, place)

    def _offset(self, position: Position) -> Offset:
        offset: Offset = {_FILE: position.file, _POS: position.offset}
        if self._logs.origin:
            offset[_SOURCE] = self._logs.origin
        return offset


def _most(limit: ReadLimit) -> int | None:
    match limit:
        case ReadMaxBytes(max_bytes=most):
            return most
        case ReadAllAvailable():
            return None
        case other:
            raise OptionError(f"a read limit of the kind {type(other).__name__} is not supported")

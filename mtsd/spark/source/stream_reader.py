"""A stream of a log: batches of whole groups, each of which can be replayed from its two offsets.

An offset is a file and a place in it where a group ends (`mtsd.spark.source.stream_offset`). The
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
from mtsd.spark.logs.group_search import place_after_gtids, place_at_time
from mtsd.spark.logs.live_connection import another_server
from mtsd.spark.logs.logs import Logs, Stretch
from mtsd.spark.options.options import OptionError, check_order
from mtsd.spark.shapes.shape import Shape, ShapeRequest
from mtsd.spark.source.bounds import check_stream
from mtsd.spark.source.lag import bytes_between, seconds_behind
from mtsd.spark.source.reading import Ranges, Server, rows
from mtsd.spark.source.stream_offset import Offset, StreamOffset
from mtsd.spark.source.stream_plan import first_offset, next_end, parts_between

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
        self._end = self._stop = request.options.end
        self._next_read = 0.0
        self._planned: Position | None = None
        """Where the last batch ends, at the server that is at the address now."""
        self._moved: dict[tuple[str, str], StreamOffset] = {}
        """Offsets at another server as they are at this one, by its UUID and their GTIDs."""

    def initialOffset(self) -> Offset:  # noqa: N802
        """Return the offset before the first batch."""
        return StreamOffset(None).as_json()

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
            offset = StreamOffset.of(start)
            if offset.place is None:
                return self._first().as_json()
            sleep(max(0.0, self._next_read - monotonic()))
            begin, end = self._next(offset, limit)
            self._planned = end
            if end == begin.at:
                self._next_read = monotonic() + _PAUSE_S
                return begin.as_json()
            executed = self._logs.executed_at(end)
            # All that was read at another server comes before this end: it has executed that.
            skip = "" if executed else begin.skip
            return replace(begin, place=end, executed=executed, skip=skip).as_json()

    def reportLatestOffset(self) -> Offset | None:  # noqa: N802
        """Return the end of the log, for a query's progress, and how far behind the query is."""
        with one_line():
            end = first_offset(self._logs, None, latest=True)
            found = StreamOffset(end, self._logs.origin).as_json()
            if self._planned is not None:
                files = self._logs.files()
                left = bytes_between(files, self._planned, end)
                found["bytes_behind"] = left
                seconds = seconds_behind(self._logs, files, self._planned) if left else 0
                if seconds is not None:
                    found["seconds_behind"] = seconds
            return found

    def partitions(
        self, start: Mapping[str, object], end: Mapping[str, object]
    ) -> list[InputPartition]:
        """Return what each task reads of the bytes between two offsets."""
        with one_line():
            former = StreamOffset.of(end)
            if StreamOffset.of(start).place is None or former.place is None:
                return []
            begin, only, stop = self._here(StreamOffset.of(start)), "", former.place
            if former.source != self._logs.origin:
                # The batch was planned at another server: what it has read is found by GTIDs.
                only = self._here(former).skip
                stop = first_offset(self._logs, None, latest=True)
            parts = parts_between(self._logs, begin.at, stop)
            planned = self._logs.planned(parts, self._request.options.max_partition_bytes)
            stretch = Stretch(begin.at, stop)
            server = Server(begin.epoch, begin.skip, only)
            return [Ranges(ranges, begin.source, stretch, server) for ranges in planned]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield a task's rows; raises UnreadableBinlogError if a file cannot be read."""
        return rows(self._request, self._shape, self._logs, partition)

    def stop(self) -> None:
        """Close the connection to a live source."""
        self._logs.close()

    def _first(self) -> StreamOffset:
        """Return where a new stream begins."""
        options = self._request.options
        origin = self._logs.origin
        files = self._logs.files()
        check_stream(files, self._start, self._end)
        executed = skip = ""
        if options.after_gtids is not None:
            executed = skip = str(options.after_gtids)
            place = place_after_gtids(self._logs, options.after_gtids)
        elif options.at_time is not None:
            place = place_at_time(self._logs, options.at_time)
        else:
            place = first_offset(self._logs, self._start, latest=options.latest)
            executed = self._logs.executed_at(place)
        if self._end is not None:
            check_order(place, self._end)
        return StreamOffset(place, origin, executed, skip)

    def _next(self, offset: StreamOffset, limit: ReadLimit) -> tuple[StreamOffset, Position]:
        """Return an offset as it is at the server, and where the next batch ends there."""
        stop = self._request.options.end
        while True:
            begin = self._here(offset)
            end = begin.at
            if stop is None or stop > end:
                end = next_end(self._logs, end, _most(limit), self._stop)
            # Another server may have replaced the source in between.
            if begin.source == self._logs.origin:
                return begin, end

    def _here(self, offset: StreamOffset) -> StreamOffset:
        """Return the same place in the log of the server that is at the address now.

        Raises OptionError if that is another server, and the offset's GTIDs are not known or not
        all there.
        """
        origin = self._logs.origin
        if offset.source == origin:
            return offset
        if not offset.executed:
            known = origin or "files"
            raise OptionError(another_server("this address", offset.source or "files", known))
        moved = self._moved.get((origin, offset.executed))
        if moved is None:
            moved = offset.moved(self._logs)
            self._moved[origin, offset.executed] = moved
        return moved


def _most(limit: ReadLimit) -> int | None:
    match limit:
        case ReadMaxBytes(max_bytes=most):
            return most
        case ReadAllAvailable():
            return None
        case other:
            raise OptionError(f"a read limit of the kind {type(other).__name__} is not supported")

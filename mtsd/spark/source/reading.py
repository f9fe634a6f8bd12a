"""What a task does: it turns its ranges into rows, in a batch as in a stream."""

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from mtsd.binlog.files.range_reader import RangeReader
from mtsd.binlog.files.ranges import ByteRange, Tail
from mtsd.model.errors import MtsdError
from mtsd.model.position import Position
from mtsd.spark.logs.failure import unreadable
from mtsd.spark.logs.logs import Logs, Stretch, name_of
from mtsd.spark.logs.whole_read import WholeRead
from mtsd.spark.shapes.shape import Shape, ShapeRequest


class Ranges(InputPartition):
    """What one task reads."""

    def __init__(
        self,
        ranges: tuple[ByteRange, ...] = (),
        origin: str = "",
        stretch: Stretch | None = None,
    ) -> None:
        """`origin` is that of the logs that the ranges were planned for, `stretch` of all tasks."""
        super().__init__(ranges)
        self.ranges = ranges
        self.origin = origin
        self.stretch = stretch


def rows(
    request: ShapeRequest, shape: Shape, logs: Logs, partition: InputPartition
) -> Iterator[pa.RecordBatch]:
    """Yield a task's rows; raises UnreadableBinlogError if a file cannot be read."""
    if not isinstance(partition, Ranges):
        return
    for bounds in partition.ranges:
        name = name_of(bounds.file)
        whole = None
        if partition.stretch is not None:
            is_at_begin = Position(name, bounds.begin) <= partition.stretch.begin
            whole = WholeRead(logs, partition.stretch, is_at_begin)
        # No context manager: each of its frames would add a line to the traceback Spark shows.
        try:
            with logs.opened(bounds, partition.origin) as contents:
                reader = RangeReader(contents, bounds, name)
                yield from shape.read(replace(request, whole=whole), reader, name)
            if bounds.tail is Tail.AS_FLAGGED and bounds.end == bounds.size:
                logs.check_end(bounds)
        except MtsdError as error:
            raise unreadable(error, bounds.file) from None

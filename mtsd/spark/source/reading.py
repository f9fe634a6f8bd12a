"""What a task does: it turns its ranges into rows, in a batch as in a stream."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from mtsd.binlog.files.range_reader import RangeReader
from mtsd.binlog.files.ranges import ByteRange, Tail
from mtsd.model.errors import MtsdError
from mtsd.model.gtid import GtidSet
from mtsd.model.position import Position
from mtsd.spark.logs.failure import unreadable
from mtsd.spark.logs.logs import Logs, Stretch, name_of
from mtsd.spark.logs.whole_read import WholeRead
from mtsd.spark.shapes.shape import Shape, ShapeRequest
from mtsd.spark.source.hanging_up import hang_up_quietly


@dataclass(frozen=True, slots=True)
class Server:
    """Which server a stream reads, and what of it by GTIDs; "" if there is no limit.

    `epoch` counts those before it. What is in `skip` was read at one of these; if `only` is given,
    what is not in it comes later.
    """

    epoch: int = 0
    skip: str = ""
    only: str = ""


class Ranges(InputPartition):
    """What one task reads."""

    def __init__(
        self,
        ranges: tuple[ByteRange, ...] = (),
        origin: str = "",
        stretch: Stretch | None = None,
        server: Server = Server(),
    ) -> None:
        """`origin` is that of the logs that the ranges were planned for, `stretch` of all tasks."""
        super().__init__(ranges)
        self.ranges = ranges
        self.origin = origin
        self.stretch = stretch
        self.server = server


def rows(
    request: ShapeRequest, shape: Shape, logs: Logs, partition: InputPartition
) -> Iterator[pa.RecordBatch]:
    """Yield a task's rows; raises UnreadableBinlogError if a file cannot be read."""
    hang_up_quietly()
    if not isinstance(partition, Ranges):
        return
    server = partition.server
    request = replace(request, epoch=server.epoch)
    if server.skip:
        request = replace(request, skip=GtidSet.parse(server.skip))
    if server.only:
        request = replace(request, only=GtidSet.parse(server.only))
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

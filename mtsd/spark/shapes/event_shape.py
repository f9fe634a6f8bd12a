"""Shape `events`: every event, including those in transaction payloads."""

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa
from pyspark.sql.types import (
    BooleanType,
    IntegerType,
    LongType,
    StringType,
    StructType,
    TimestampType,
)

from mtsd.binlog.bytes.event_type import type_name
from mtsd.binlog.bytes.header import parse_header
from mtsd.binlog.files.range_parts import PlacedEvent
from mtsd.binlog.files.range_reader import RangeReader
from mtsd.model.position import Position
from mtsd.spark.logs.binlog_files import opened
from mtsd.spark.logs.table_maps import OpenRange
from mtsd.spark.options.options import Options
from mtsd.spark.shapes.shape import FixedColumns, ShapeRequest

_COLUMNS: Final = FixedColumns({
    "file": StringType(),
    "pos": LongType(),
    "type": StringType(),
    "inner": BooleanType(),
    "size": IntegerType(),
    "time": TimestampType(),
    "server_id": LongType(),
    "flags": IntegerType(),
})  # fmt: skip
_MANY: Final = 1 << 15


class EventShape:
    """One row per event: its end (for an inner event, its payload's end), type and header.

    `size` does not include the checksum.
    """

    def schema(
        self, _options: Options, _files: Sequence[tuple[str, int]], _open_range: OpenRange = opened
    ) -> StructType:
        """Return the columns."""
        return _COLUMNS.struct()

    def check(self, request: ShapeRequest) -> None:
        """Raise OptionError if the request has other columns."""
        _COLUMNS.check("events", request.schema)

    def read(
        self, request: ShapeRequest, reader: RangeReader, file: str
    ) -> Iterator[pa.RecordBatch]:
        """Yield the events of a range."""
        kept: list[PlacedEvent] = []
        for event in reader.events():
            if _keeps(request, event, file):
                kept.append(event)
            if len(kept) >= _MANY:
                yield _batch(request, kept, file)
                kept = []
        if kept:
            yield _batch(request, kept, file)


def _keeps(request: ShapeRequest, event: PlacedEvent, file: str) -> bool:
    start, end = request.options.start, request.options.end
    place = Position(file, event.end)
    return (start is None or place > start) and (end is None or place <= end)


def _batch(request: ShapeRequest, events: Sequence[PlacedEvent], file: str) -> pa.RecordBatch:
    headers = [parse_header(event.event) for event in events]
    arrays = {
        "file": lambda: pa.repeat(file, len(events)),
        "pos": lambda: pa.array([event.end for event in events], pa.int64()),
        "type": lambda: pa.array([type_name(header.type) for header in headers], pa.string()),
        "inner": lambda: pa.array([event.inner for event in events], pa.bool_()),
        "size": lambda: pa.array([len(event.event) for event in events], pa.int32()),
        "time": lambda: pa.array(
            [header.timestamp * 1_000_000 for header in headers], pa.int64()
        ).cast(pa.timestamp("us", "UTC")),
        "server_id": lambda: pa.array([header.server_id for header in headers], pa.int64()),
        "flags": lambda: pa.array([header.flags for header in headers], pa.int32()),
    }
    schema = request.arrow_schema
    return pa.RecordBatch.from_arrays([arrays[name]() for name in schema.names], schema=schema)

"""The format `mtsd_binlog`: binary logs as DataFrames.

Whatever mtsd has to say of an option or a file is an `UnreadableBinlogError`.

A read has one task for about `max_partition_bytes` of the files, planned from their sizes alone
(`mtsd.binlog.ranges`). A task needs nothing from the others.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from mtsd.binlog.range_reader import RangeReader
from mtsd.binlog.ranges import ByteRange, planned
from mtsd.model.errors import MtsdError
from mtsd.model.position import Position
from mtsd.spark.binlog_files import listed, name_of, opened
from mtsd.spark.change_shape import ChangeShape
from mtsd.spark.event_shape import EventShape
from mtsd.spark.failure import one_line, unreadable
from mtsd.spark.group_shape import GroupShape
from mtsd.spark.options import Options, parse_options
from mtsd.spark.pushed_filters import PushedFilters, pushed_filters
from mtsd.spark.shape import Request, Shape, pruned
from mtsd.spark.table_shape import TableShape

_SHAPES: Final[dict[str, Shape]] = {
    "events": EventShape(),
    "groups": GroupShape(),
    "changes": ChangeShape(),
    "table": TableShape(),
}


class BinlogDataSource(DataSource):
    """Binary logs of MySQL; the options are those of `mtsd.spark.options`."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "mtsd_binlog"

    def schema(self) -> StructType:
        """Return the shape's columns, less those that are not wanted."""
        with one_line():
            options = parse_options(self.options)
            columns = _SHAPES[options.shape].schema(options, _files(options))
            return pruned(columns, options.columns)

    def reader(self, schema: StructType) -> "BinlogReader":
        """Return what plans and reads, if the schema fits to the shape."""
        with one_line():
            options = parse_options(self.options)
            request = Request(options, pruned(schema, options.columns))
            _SHAPES[options.shape].check(request)
            return BinlogReader(request)


class Ranges(InputPartition):
    """What one task reads."""

    def __init__(self, ranges: tuple[ByteRange, ...] = ()) -> None:
        super().__init__(ranges)
        self.ranges = ranges


class BinlogReader(DataSourceReader):
    """Plans the tasks of a read, and reads for them."""

    def __init__(self, request: Request) -> None:
        self._request = request

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        """Take what need not be read from the filters; Spark applies them all itself, too."""
        options = self._request.options
        pushed = pushed_filters(filters)
        if options.shape == "table":
            # What it has of its own is named apart from the table's columns.
            pushed = pushed.behind_prefix("_")
        self._request = Request(options, self._request.schema, pushed)
        return filters

    def partitions(self) -> list[InputPartition]:
        """Return the tasks' parts of the files; an empty one where there is nothing to read."""
        options = self._request.options
        filters = self._request.filters
        with one_line():
            there = _files(options)
        files = [file for file in there if filters.keeps("file", name_of(file[0]))]
        found = [
            tuple(part for part in together if not _is_passed(filters, part))
            for together in planned(files, options.max_partition_bytes)
        ]
        return [Ranges(ranges) for ranges in found if ranges] or [Ranges()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield a task's rows; raises UnreadableBinlogError where a file cannot be read."""
        ranges = partition.ranges if isinstance(partition, Ranges) else ()
        shape = _SHAPES[self._request.options.shape]
        for bounds in ranges:
            name = name_of(bounds.file)
            # No context manager: each of its frames is a line of what Spark shows to a person.
            try:
                with opened(bounds) as contents:
                    reader = RangeReader(contents, bounds, name)
                    yield from shape.read(self._request, reader, name)
            except MtsdError as error:
                raise unreadable(error, bounds.file) from None


def _files(options: Options) -> list[tuple[str, int]]:
    """Return the files between `start` and `end`."""
    found = []
    for file, size in listed(options.path):
        name = name_of(file)
        if options.start is not None and Position(name, size) < options.start:
            continue
        if options.end is not None and Position(name, 0) > options.end:
            continue
        found.append((file, size))
    return found


def _is_passed(filters: PushedFilters, part: ByteRange) -> bool:
    # What is in the range ends behind its begin.
    return filters.ends_before("pos", part.begin + 1)

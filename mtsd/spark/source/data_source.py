"""The format `mtsd_binlog`: binary logs as DataFrames.

All errors about options and files are raised as `UnreadableBinlogError`.

A read has one task per `max_partition_bytes` or so of the files, planned from their sizes alone
(`mtsd.binlog.files.ranges`). Tasks are independent of each other.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from mtsd.binlog.files.ranges import whole_files
from mtsd.model.errors import MtsdError
from mtsd.spark.logs.failure import one_line
from mtsd.spark.logs.folder_logs import FolderLogs
from mtsd.spark.logs.group_search import place_after_gtids, place_at_time
from mtsd.spark.logs.live_logs import LiveLogs
from mtsd.spark.logs.logs import Logs, place_of
from mtsd.spark.logs.whole_read import stretch_of
from mtsd.spark.options.option_filters import option_filters
from mtsd.spark.options.options import UNION, OptionError, Options, parse_options
from mtsd.spark.shapes.change_shape import ChangeShape
from mtsd.spark.shapes.event_shape import EventShape
from mtsd.spark.shapes.group_shape import GroupShape
from mtsd.spark.shapes.shape import Shape, ShapeRequest, pruned
from mtsd.spark.shapes.table_shape import TableShape
from mtsd.spark.source.bounds import check_read
from mtsd.spark.source.confinement import confine
from mtsd.spark.source.reading import Ranges, rows
from mtsd.spark.source.stream_reader import BinlogStreamReader

_log: Final = logging.getLogger(__name__)
"""Unless it is configured, Python prints its warnings where Spark prints its own."""
_SHAPES: Final[dict[str, Shape]] = {
    "events": EventShape(),
    "groups": GroupShape(),
    "changes": ChangeShape(),
    "table": TableShape(),
}


class BinlogDataSource(DataSource):
    """MySQL binary logs; `mtsd.spark.options.options` describes the options."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "mtsd_binlog"

    def schema(self) -> StructType:
        """Return the shape's columns, restricted to the requested ones."""
        with one_line():
            options = confine(parse_options(self.options))
            logs = _logs(options)
            options = _with_definition(options, logs)
            with closing(logs):
                # A live source knows the table's present columns; former ones are in its files.
                with suppress(MtsdError):
                    # A stream that goes on does not need its first place, which may be gone.
                    options = _placed(options, logs)
                is_told = options.live is not None and options.evolve != UNION
                files = [] if is_told else _between(options, logs.files())
                columns = _SHAPES[options.shape].schema(options, files, logs.opened)
            return pruned(columns, options.columns)

    def reader(self, schema: StructType) -> "BinlogReader":
        """Return the reader of a batch, if the schema fits the shape."""
        with one_line():
            options = confine(parse_options(self.options))
            if options.latest:
                raise OptionError("option 'start' is 'latest': this is for streams")
            logs = _logs(options)
            with closing(logs):
                options = _placed(options, logs)
            request = _request(options, logs, schema)
            return BinlogReader(replace(request, skip=options.after_gtids), logs)

    def streamReader(self, schema: StructType) -> BinlogStreamReader:  # noqa: N802
        """Return the reader of a stream, if the schema fits the shape."""
        with one_line():
            options = confine(parse_options(self.options))
            logs = _logs(options)
            request = _request(options, logs, schema)
            return BinlogStreamReader(request, _SHAPES[options.shape], logs)


class BinlogReader(DataSourceReader):
    """Plans the tasks of a read, and runs them."""

    def __init__(self, request: ShapeRequest, logs: Logs) -> None:
        self._request = request
        self._logs = logs

    def partitions(self) -> list[InputPartition]:
        """Return what each task reads; one empty partition if there is nothing to read."""
        options = self._request.options
        with one_line(), closing(self._logs):
            files = self._logs.files()
            check_read(files, options.start, options.end)
            read = _between(options, files)
            for remark in self._logs.remarks(read):
                _log.warning("mtsd_binlog: %s", remark)
            parts = whole_files(read)
            planned = self._logs.planned(parts, options.max_partition_bytes)
            origin = self._logs.origin
        stretch = stretch_of(parts, options.start, options.end)
        return [Ranges(ranges, origin, stretch) for ranges in planned] or [Ranges()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield a task's rows; raises UnreadableBinlogError if a file cannot be read."""
        return rows(self._request, _SHAPES[self._request.options.shape], self._logs, partition)


_IN_THE_CODE: Final = (
    "mtsd_binlog: option 'password' travels with each task, and is in the text of the request that"
    " Spark Connect shows and logs: use 'password_file'"
)


def _request(options: Options, logs: Logs, schema: StructType) -> ShapeRequest:
    """Return the request; what is planned after that ends after the table's definition was read.

    So a change of the definition that came before its reading is not after the end.
    """
    if options.live is not None and options.live.password:
        _log.warning(_IN_THE_CODE)
    options = _with_definition(options, logs)
    request = ShapeRequest(options, pruned(schema, options.columns), option_filters(options))
    _SHAPES[options.shape].check(request)
    return request


def _placed(options: Options, logs: Logs) -> Options:
    """Return the options with a position as `start`."""
    if options.after_gtids is not None:
        return replace(options, start=place_after_gtids(logs, options.after_gtids))
    if options.at_time is not None:
        return replace(options, start=place_at_time(logs, options.at_time))
    return options


def _logs(options: Options) -> Logs:
    return FolderLogs(*options.paths) if options.live is None else LiveLogs(options.live)


def _with_definition(options: Options, logs: Logs) -> Options:
    """Return the options with the source's definition of a requested table."""
    if options.table is None:
        return options
    try:
        return replace(options, loaded=logs.definition(*options.table))
    finally:
        logs.close()


def _between(options: Options, files: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """Return the files between `start` and `end`."""
    return [
        (file, size)
        for file, size in files
        if (options.start is None or place_of(file, size) >= options.start)
        and (options.end is None or place_of(file, 0) <= options.end)
    ]

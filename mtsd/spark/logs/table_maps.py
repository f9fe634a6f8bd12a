"""The tables that files describe, which planning looks at."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Final

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.events.table_map import TableMap, parse_table_map
from mtsd.binlog.files.range_reader import RangeReader
from mtsd.binlog.files.ranges import ByteRange
from mtsd.binlog.files.sync import FileContents
from mtsd.spark.logs.binlog_files import opened
from mtsd.spark.logs.failure import one_line
from mtsd.spark.logs.logs import name_of

_TABLE_MAP: Final[int] = EventType.TABLE_MAP_EVENT.value


OpenRange = Callable[[ByteRange], AbstractContextManager[FileContents]]
"""Opens the file of a range."""


def table_maps(parts: Iterable[ByteRange], open_range: OpenRange = opened) -> Iterator[TableMap]:
    """Yield the table maps in these parts of files, in order."""
    for bounds in parts:
        with one_line(bounds.file), open_range(bounds) as contents:
            reader = RangeReader(contents, bounds, name_of(bounds.file))
            for placed in reader.events():
                if placed.event[4] == _TABLE_MAP:
                    yield parse_table_map(placed.event, mariadb=reader.mariadb)

"""The tables that files describe, which planning looks at."""

from collections.abc import Iterator, Sequence
from typing import Final

from mtsd.binlog.event_type import EventType
from mtsd.binlog.range_reader import RangeReader
from mtsd.binlog.ranges import whole_file
from mtsd.binlog.table_map import TableMap, parse_table_map
from mtsd.spark.binlog_files import opened
from mtsd.spark.failure import one_line
from mtsd.spark.logs import name_of

_TABLE_MAP: Final[int] = EventType.TABLE_MAP_EVENT.value


def table_maps(files: Sequence[tuple[str, int]]) -> Iterator[TableMap]:
    """Yield the table maps in these files, which are names and sizes, in order."""
    for file, size in files:
        bounds = whole_file(file, size)
        with one_line(file), opened(bounds) as contents:
            reader = RangeReader(contents, bounds, name_of(file))
            for placed in reader.events():
                if placed.event[4] == _TABLE_MAP:
                    yield parse_table_map(placed.event, mariadb=reader.mariadb)

"""Rows decoded a second of CPU, in this process.

`python -m benchmarks.processes.decoding FILE DECODER` takes a recorded binlog file from its bytes
to decoded rows, by one of DECODERS or SOURCES, and prints JSON: the rows, and the seconds of CPU of
each run.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from pymysql.connections import MysqlPacket
from pymysqlreplication.packet import BinLogPacketWrapper
from pymysqlreplication.row_event import (
    DeleteRowsEvent,
    RowsEvent,
    TableMapEvent,
    UpdateRowsEvent,
    WriteRowsEvent,
)

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.bytes.framing import FileFramer
from mtsd.binlog.events.event_reader import EventReader
from mtsd.binlog.events.rows import ROW_EVENTS
from mtsd.binlog.events.table_map import parse_table_map
from mtsd.binlog.values.row_image import RowDecoder
from mtsd.model.position import Position
from mtsd.spark.arrays.row_batches import RowBatches
from mtsd.spark.source.data_source import BinlogDataSource

_TABLE_MAP: Final[int] = EventType.TABLE_MAP_EVENT.value
_ROWS: Final = frozenset(kind.value for kind in ROW_EVENTS)


def main() -> None:
    """Print the figures of every run as JSON."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.processes.decoding", description=__doc__
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("decoder", choices=[*DECODERS, *SOURCES])
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    data = args.file.read_bytes()
    rows = 0
    seconds = []
    for _ in range(args.runs):
        began = time.process_time()
        if args.decoder in SOURCES:
            rows = _through_the_source(args.file, SOURCES[args.decoder])
        else:
            rows = DECODERS[args.decoder](data)
        seconds.append(time.process_time() - began)
    json.dump({"rows": rows, "seconds": seconds}, sys.stdout)


def _by_table(data: bytes) -> Iterable[tuple[bytes, list[bytes]]]:
    """Return the row events of each definition of a table, with one of its table maps."""
    read = EventReader(Position("binlog.000002", 4)).read
    by_definition: dict[bytes, tuple[bytes, list[bytes]]] = {}
    by_id: dict[bytes, list[bytes]] = {}
    for raw in FileFramer().feed(data):
        event = read(raw)
        if event[4] == _TABLE_MAP:
            found = by_definition.setdefault(event[25:], (event, []))
            by_id[event[19:25]] = found[1]
        elif event[4] in _ROWS:
            by_id[event[19:25]].append(event)
    return by_definition.values()


def _columns(data: bytes) -> int:
    return sum(
        len(batch.rows)
        for table_map, events in _by_table(data)
        for batch in RowBatches(parse_table_map(table_map)).batches(events)
    )


def _one_by_one(data: bytes) -> int:
    rows = 0
    for table_map, events in _by_table(data):
        decoder = RowDecoder(parse_table_map(table_map))
        for event in events:
            for _ in decoder.changes(event):
                rows += 1
    return rows


def _through_the_source(file: Path, options: Mapping[str, str]) -> int:
    """Return how many rows a data source for Spark has, without Spark around it."""
    source = BinlogDataSource({"path": str(file), **options})
    reader = source.reader(source.schema())
    return sum(batch.num_rows for part in reader.partitions() for batch in reader.read(part))


class _Control:
    """What mysql-replication asks its connection for."""

    charset = "utf8mb4"

    def _get_dbms(self) -> str:
        return "mysql"


def _theirs(data: bytes) -> int:
    rows = 0
    for event in _their_events(data):
        rows += len(event.rows)
    return rows


def _their_events(data: bytes) -> Iterator[RowsEvent]:
    tables: dict[int, object] = {}
    kinds = [TableMapEvent, WriteRowsEvent, UpdateRowsEvent, DeleteRowsEvent]
    for raw in FileFramer().feed(data):
        event = BinLogPacketWrapper(
            MysqlPacket(b"\0" + raw, "utf8mb4"), tables, _Control(), (9, 7, 4), True, kinds,
            None, None, None, None, False, False, False, True, False,
        ).event  # fmt: skip
        if isinstance(event, TableMapEvent):
            tables[event.table_id] = event.get_table()
        elif isinstance(event, RowsEvent):
            yield event


COLUMNS: Final = "Arrow columns"
ONE_BY_ONE: Final = "rows one by one"
THEIRS: Final = "mysql-replication"
DECODERS: Final[dict[str, Callable[[bytes], int]]] = {
    COLUMNS: _columns,
    ONE_BY_ONE: _one_by_one,
    THEIRS: _theirs,
}
SOURCES: Final[dict[str, Mapping[str, str]]] = {
    "shape table": {"shape": "table", "table": "shop.orders"},
    "shape changes": {"shape": "changes"},
    "three columns": {"shape": "table", "table": "shop.orders", "columns": "_op,id,amount"},
    "another table": {"shape": "changes", "tables": "shop.others"},
}
"""Reads by the data source for Spark: an update is two rows of shape `table`."""

if __name__ == "__main__":
    main()

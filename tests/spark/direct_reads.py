"""Reads and streams by the data source itself, in this process: what Spark does, without its JVM.

What Spark sends to another process is pickled here too, and offsets are a checkpoint's text.
"""

import json
import pickle
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar
from zlib import crc32

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit

from mtsd.spark.source.data_source import BinlogDataSource
from mtsd.spark.source.stream_reader import BinlogStreamReader
from tests.spark.streams import Key

Row = dict[str, object]
Reader = TypeVar("Reader", bound=DataSourceReader | DataSourceStreamReader)


def read_directly(options: Mapping[str, str]) -> list[Row]:
    """Return the rows of a read."""
    source = BinlogDataSource(dict(options))
    reader = source.reader(source.schema())
    # What Spark's executors have was pickled before the read was planned.
    return _read(_sent(reader), reader.partitions())


@dataclass
class DirectStream:
    """A stream that may be run any number of times, with what it has read."""

    options: dict[str, str]
    batches: list[list[Row]] = field(default_factory=list)
    checkpoint: list[str] = field(default_factory=list)
    """The offsets before the first batch and after each one."""

    def run(self, limit: ReadLimit | None = None) -> list[int]:
        """Read what is available now; return the number of rows in each batch.

        A batch has what `max_bytes` allows, unless another limit is given.
        """
        reader = self._reader()
        first = len(self.batches)
        try:
            reader.prepareForTriggerAvailableNow()
            if not self.checkpoint:
                self.checkpoint.append(json.dumps(reader.initialOffset()))
            limit = limit or reader.getDefaultReadLimit()
            begin = self.checkpoint[-1]
            while (end := json.dumps(reader.latestOffset(json.loads(begin), limit))) != begin:
                self.batches.append(self._between(reader, begin, end))
                self.checkpoint.append(begin := end)
        finally:
            reader.stop()
        return [len(rows) for rows in self.batches[first:]]

    def replayed(self) -> list[list[Row]]:
        """Read each batch again, as it was planned, without moving the stream."""
        reader = self._reader()
        places = zip(self.checkpoint, self.checkpoint[1:], strict=False)
        try:
            return [self._between(reader, begin, end) for begin, end in places]
        finally:
            reader.stop()

    @property
    def rows(self) -> list[Row]:
        return [row for rows in self.batches for row in rows]

    def _reader(self) -> BinlogStreamReader:
        source = BinlogDataSource(dict(self.options))
        return source.streamReader(source.schema())

    def _between(self, reader: BinlogStreamReader, begin: str, end: str) -> list[Row]:
        tasks = reader.partitions(json.loads(begin), json.loads(end))
        # Spark plans in one process and makes what its executors have in another one.
        return _read(_sent(self._reader()), tasks)


def keys_directly(rows: Iterable[Row]) -> list[Key]:
    """Return the keys of changes, as `keys_of` does."""
    return sorted((str(row["file"]), int(str(row["pos"])), int(str(row["row"]))) for row in rows)


def checksum_directly(rows: Iterable[Row]) -> tuple[int, int]:
    """Return the number of rows of `Writer` that are there at the end, and their checksum."""
    there: dict[object, str] = {}
    for row in sorted(rows, key=lambda row: str(row["_seq"])):
        if row["_op"] in {"insert", "update_postimage"}:
            there[row["id"]] = f"{row['id']}|{row['name']}|{row['balance']}"
        else:
            there.pop(row["id"], None)
    return len(there), sum(crc32(line.encode()) for line in there.values())


def _sent(reader: Reader) -> Reader:
    """Return what arrives in another process."""
    found: Reader = pickle.loads(pickle.dumps(reader))  # noqa: S301 - of this process itself
    return found


def _read(
    reader: DataSourceReader | DataSourceStreamReader, tasks: Iterable[InputPartition]
) -> list[Row]:
    rows: list[Row] = []
    for task in tasks:
        for batch in reader.read(task):
            assert isinstance(batch, pa.RecordBatch)
            rows += batch.to_pylist()
    return rows

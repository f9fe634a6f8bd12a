"""Streams of binary logs into Parquet, and the rows that have arrived there."""

import random
import time
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamReader

from mtsd.spark import latest
from tests.servers.mysqld import Server

Key = tuple[str, int, int]

_SLOW_START: Final = "Python worker failed to connect back"
"""Spark gives a stream's Python process 10 s to start, which may be too short on a busy machine."""


@dataclass
class Stream:
    """A query with its checkpoint and its sink; it may be started any number of times."""

    spark: SparkSession
    path: str
    place: Path
    options: dict[str, str] = field(default_factory=dict)

    @property
    def reader(self) -> DataStreamReader:
        reader = self.spark.readStream.format("mtsd_binlog").options(**self.options)
        return reader.option("path", self.path) if self.path else reader

    @property
    def checkpoint(self) -> Path:
        return self.place / "checkpoint"

    def start(self, **trigger: str | bool) -> StreamingQuery:
        """Start the query, with the trigger availableNow unless another one is given.

        It has ended or made progress when this returns.
        """
        while True:
            writer = self.reader.load().writeStream.format("parquet")
            writer = writer.option("checkpointLocation", str(self.checkpoint))
            writer = writer.trigger(**trigger or {"availableNow": True})  # type: ignore[arg-type]
            query = writer.start(str(self.place / "sink"))
            while query.isActive and not query.recentProgress:
                time.sleep(0.02)
            if _SLOW_START not in str(query.exception()):
                return query

    def run(self, **trigger: str | bool) -> list[int]:
        """Run the query to its end, as `start` does; return the number of rows in each batch."""
        query = self.start(**trigger)
        try:
            query.awaitTermination()
            return [progress.numInputRows for progress in query.recentProgress]
        finally:
            query.stop()

    def arrived(self) -> DataFrame:
        """Return the sink's rows."""
        return self.spark.read.parquet(str(self.place / "sink"))

    def rows(self) -> list[Key]:
        """Return the keys of the changes that have arrived."""
        return keys_of(self.arrived())

    @property
    def batches(self) -> int:
        """Return the number of committed batches."""
        commits = self.checkpoint / "commits"
        return sum(path.name.isdecimal() for path in commits.iterdir()) if commits.exists() else 0


def keys_of(changes: DataFrame) -> list[Key]:
    rows = changes.select("file", "pos", "row").collect()
    return sorted((row["file"], row["pos"], row["row"]) for row in rows)


class Writer:
    """Changes a table at random; the same seed makes the same changes."""

    def __init__(self, server: Server, seed: int = 5) -> None:
        self.server = server
        self._rng = random.Random(seed)
        self._next = 0
        server.sql(
            "CREATE DATABASE s; CREATE TABLE s.t (id BIGINT PRIMARY KEY, name VARCHAR(300),"
            " balance DECIMAL(20, 4)); CREATE TABLE s.noise (a INT)"
        )

    def write(self, transactions: int) -> None:
        """Run transactions of a few rows, some of them compressed."""
        rng = self._rng
        with closing(self.server.client("s")) as client, client.cursor() as cursor:
            for _ in range(transactions):
                compressed = "ON" if self._next % 5 == 0 else "OFF"
                cursor.execute(f"SET binlog_transaction_compression = {compressed}")
                first = self._next * 10
                self._next += 1
                values = ", ".join(
                    f"({first + n}, REPEAT('{rng.choice('abc')}', {rng.randrange(90)}),"
                    f" {rng.randrange(10**9) / 10000})"
                    for n in range(rng.randrange(1, 10))
                )
                cursor.execute("BEGIN")
                cursor.execute(f"INSERT INTO t VALUES {values}")
                cursor.execute(
                    f"UPDATE t SET balance = balance + 1 WHERE id % 7 = {rng.randrange(7)}"
                    f" AND id > {first - 100}"
                )
                cursor.execute(f"DELETE FROM t WHERE id = {rng.randrange(first + 10)}")
                cursor.execute("INSERT INTO noise VALUES (1)")
                cursor.execute("COMMIT")

    def checksum(self) -> tuple[int, int]:
        """Return the number of rows and their checksum."""
        line = "CONCAT_WS('|', id, name, CAST(balance AS CHAR))"
        ((count, total),) = self.server.sql(f"SELECT COUNT(*), SUM(CRC32({line})) FROM s.t")
        return int(count), int(total)


def checksum_of(rows: DataFrame, *keys: str) -> tuple[int, int]:
    """Return the number of rows at the end and their checksum, as `Writer.checksum`."""
    line = "concat_ws('|', id, name, balance)"
    ((count, total),) = latest(rows, *keys).selectExpr("count(*)", f"sum(crc32({line}))").collect()
    return int(count), int(total)

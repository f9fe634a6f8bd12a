"""A table whose columns change, from files and from a live source, in reads and in streams."""

import shutil
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from mtsd.spark.logs.failure import UnreadableBinlogError
from mtsd.spark.source.data_source import BinlogDataSource
from tests.servers.mysqld import Server

FIRST = (
    "CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(9) CHARACTER SET latin1)",
    "INSERT INTO t VALUES (1, 10, 'é')",
)
ADDED = ("ALTER TABLE t ADD COLUMN c JSON AFTER id", "INSERT INTO t VALUES (2, '{}', 20, 'b')")
WIDENED = (
    "ALTER TABLE t MODIFY a BIGINT UNSIGNED, CONVERT TO CHARACTER SET utf8mb4",
    "INSERT INTO t VALUES (3, '[]', 18446744073709551615, '€')",
)
DROPPED = ("ALTER TABLE t DROP COLUMN b", "INSERT INTO t VALUES (4, NULL, 40)")
RENAMED = ("ALTER TABLE t RENAME COLUMN a TO aa", "INSERT INTO t VALUES (5, NULL, 50)")
TABLE = {"shape": "table", "table": "d.t", "evolve": "union"}


class Source:
    """A server's statements in a database, and what is read of their binary logs."""

    def __init__(self, server: Server, folder: Path) -> None:
        self._server = server
        self._folder = folder
        self._first = ""

    def run(self, *statements: str) -> None:
        """Run statements in a file of their own, and copy the files."""
        if not self._first:
            self._server.sql("DROP DATABASE IF EXISTS d; CREATE DATABASE d; FLUSH BINARY LOGS")
            self._first = str(self._server.sql("SHOW BINARY LOGS")[-1][0])
        with closing(self._server.client("d")) as client, client.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
        self._server.sql("FLUSH BINARY LOGS")
        for (name, *_), _ in zip(
            self._server.sql("SHOW BINARY LOGS")[:-1], range(999), strict=False
        ):
            if str(name) >= self._first:
                shutil.copy(self._server.datadir / str(name), self._folder)

    def places(self) -> Iterator[dict[str, str]]:
        yield {"path": str(self._folder)}
        live = {"host": "127.0.0.1", "port": str(self._server.port), "user": "root"}
        yield {**live, "start": self._first}


@pytest.fixture
def source(server: Server, tmp_path: Path) -> Iterator[Source]:
    yield Source(server, tmp_path)
    server.sql("DROP DATABASE d")


def rows(options: dict[str, str], *names: str) -> list[tuple[object, ...]]:
    source = BinlogDataSource(options)
    reader = source.reader(source.schema())
    return [
        tuple(row[name] for name in names)
        for task in reader.partitions()
        for batch in reader.read(task)
        for row in batch.to_pylist()
    ]


def test_columns_are_united(source: Source) -> None:
    source.run(*FIRST, *ADDED)
    source.run(*WIDENED, *DROPPED)
    for place in source.places():
        assert rows({**place, **TABLE}, "id", "a", "b", "c") == [
            (1, Decimal(10), "é", None),
            (2, Decimal(20), "b", "{}"),
            (3, Decimal(2**64 - 1), "€", "[]"),
            (4, Decimal(40), None, None),
        ]
        with pytest.raises(UnreadableBinlogError, match=r"there is .* column `c`.*evolve=union"):
            rows({**place, **TABLE, "evolve": "error"}, "id")


def test_a_rename_shows_both_names(source: Source) -> None:
    source.run(*FIRST, *ADDED, *WIDENED, *DROPPED, *RENAMED)
    for place in source.places():
        for columns in ({}, {"columns": "id,aa"}):
            with pytest.raises(
                UnreadableBinlogError,
                match=r"column `a` is named `aa`, since the statement at \S+: ALTER TABLE t RENAME",
            ):
                rows({**place, **TABLE, **columns}, "id")
        both = {**place, **TABLE, "columns": "id,a,aa"}
        assert rows(both, "id", "a", "aa")[-2:] == [(4, Decimal(40), None), (5, None, Decimal(50))]
        assert rows({**place, **TABLE, "columns": "id,c"}, "id", "c")[-1] == (5, None)


def test_a_stream_that_is_started_again_has_the_new_columns(source: Source) -> None:
    source.run(*FIRST)
    more = ("ALTER TABLE t ADD e INT", "INSERT INTO t VALUES (3, '[]', 5, 'e', 7)")
    added = {"c": ADDED, "e": more}
    for (column, statements), place in zip(added.items(), source.places(), strict=True):
        options = {**place, **TABLE}
        running = BinlogDataSource(options)
        reader = running.streamReader(running.schema())
        begin = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
        source.run(*statements)
        end = reader.latestOffset(begin, ReadAllAvailable())
        with pytest.raises(
            UnreadableBinlogError, match=f"column `{column}` that .*; start the read again"
        ):
            [list(reader.read(task)) for task in reader.partitions(begin, end)]
        reader.stop()
        again = BinlogDataSource(options)
        reader = again.streamReader(again.schema())
        found = [
            row[column]
            for task in reader.partitions(begin, end)
            for batch in reader.read(task)
            for row in batch.to_pylist()
        ]
        reader.stop()
        assert found == ([None, "{}"] if column == "c" else [None, None, 7])

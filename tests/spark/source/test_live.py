"""A live source as DataFrames and as a stream."""

import contextlib
import io
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from mtsd.spark.logs.failure import UnreadableBinlogError, failure_line
from tests.binlog.recording import OPTIONS
from tests.servers.mysqld import Server
from tests.spark.direct_reads import DirectStream, Row, checksum_directly, read_directly
from tests.spark.streams import Stream, Writer

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]

PASSWORD = "hush-hush-4711"
GRANTS = "REPLICATION SLAVE, REPLICATION CLIENT, SELECT"


@pytest.fixture(scope="module")
def source() -> Iterator[Server]:
    with Server({**OPTIONS, "max_binlog_size": 65536, "binlog_row_metadata": "MINIMAL"}) as server:
        server.sql(f"CREATE USER spark IDENTIFIED BY '{PASSWORD}'; GRANT {GRANTS} ON *.* TO spark")
        yield server


@pytest.fixture(scope="module")
def writer(source: Server) -> Writer:
    return Writer(source)


@pytest.fixture
def options(source: Server, tmp_path: Path) -> dict[str, str]:
    file = tmp_path / "password"
    file.write_text(PASSWORD + "\n")
    return {
        "host": "127.0.0.1",
        "port": str(source.port),
        "user": "spark",
        "password_file": str(file),
        "server_ids": "4201-4204",
        "retry_seconds": "5",
    }


@pytest.fixture
def read(options: dict[str, str]) -> Callable[..., list[Row]]:
    def read(shape: str, **others: str) -> list[Row]:
        return read_directly({**options, "shape": shape, **others})

    return read


def test_a_batch_and_a_stream_have_the_sources_rows(
    source: Server, writer: Writer, options: dict[str, str]
) -> None:
    writer.write(60)
    typed = DirectStream({**options, "shape": "table", "table": "s.t", "max_bytes": "40k"})
    assert checksum_directly(read_directly(typed.options)) == writer.checksum()
    assert len([rows for rows in typed.run() if rows]) > 1
    assert checksum_directly(typed.rows) == writer.checksum()
    writer.write(5)
    source.restart()
    writer.write(5)
    assert sum(typed.run()) > 10
    assert checksum_directly(typed.rows) == writer.checksum()
    assert sum(typed.run()) == 0
    # A sink may have each batch that Spark does not know to be committed.
    assert typed.replayed() == typed.batches


def test_the_same_as_the_files(
    source: Server, writer: Writer, read: Callable[..., list[Row]]
) -> None:
    writer.write(3)
    for shape in ("events", "groups", "changes"):
        wanted = read_directly({"path": str(source.datadir), "shape": shape})
        # Only the file itself contains the flag that a server is writing it.
        flags = {"flags"} & set(wanted[0])
        assert [{**row, **dict.fromkeys(flags)} for row in read(shape)] == [
            {**row, **dict.fromkeys(flags)} for row in wanted
        ]


def test_a_source_that_runs_into_its_end(
    spark: SparkSession, writer: Writer, options: dict[str, str], tmp_path: Path
) -> None:
    """A query keeps running while the source writes."""
    newest = {**options, "shape": "changes", "columns": "file,pos,row", "start": "latest"}
    stream = Stream(spark, "", tmp_path, newest)
    query = stream.start(processingTime="0 seconds")
    try:
        while not query.recentProgress:
            query.processAllAvailable()
        for _ in range(3):
            writer.write(2)
            query.processAllAvailable()
    finally:
        query.stop()
    rows = stream.rows()
    everything = spark.read.format("mtsd_binlog").options(
        **{**options, "shape": "changes", "columns": "file,pos,row"}
    )
    wanted = sorted(tuple(row) for row in everything.load().collect())
    assert rows == wanted[-len(rows) :]
    assert len(rows) >= 6 * 3


def test_a_password_is_never_shown(
    spark: SparkSession, writer: Writer, options: dict[str, str], tmp_path: Path
) -> None:
    writer.write(1)
    given = {**options, "password": PASSWORD, "shape": "changes"}
    del given["password_file"]
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        spark.read.format("mtsd_binlog").options(**given).load().explain(mode="extended")
    stream = Stream(spark, "", tmp_path, given)
    query = stream.start()
    query.awaitTermination()
    said.write(str(query.recentProgress))
    with contextlib.redirect_stdout(said):
        query.explain(extended=True)
    assert "mtsd_binlog" in said.getvalue()
    assert PASSWORD not in said.getvalue()
    for path in stream.checkpoint.rglob("*"):
        assert not path.is_file() or PASSWORD.encode() not in path.read_bytes()
    with pytest.raises(AnalysisException) as caught:
        spark.read.format("mtsd_binlog").options(**{**given, "nonsense": "1"}).load()
    assert PASSWORD not in str(caught.value)
    wrong = {**given, "password": "n0t-th1s", "shape": "table", "table": "s.t"}
    with pytest.raises(AnalysisException) as caught:
        spark.read.format("mtsd_binlog").options(**wrong).load()
    assert "n0t-th1s" not in str(caught.value)
    line = failure_line(caught.value)
    assert line is not None
    assert "refuses user 'spark': error 1045" in line


def test_a_redefinition_without_names_is_an_error(
    source: Server, read: Callable[..., list[Row]]
) -> None:
    """The definition is read before the end, so no change of the table comes after the end."""
    source.sql(
        "CREATE DATABASE r; CREATE TABLE r.t (id INT PRIMARY KEY, a INT, b INT);"
        " INSERT INTO r.t VALUES (1, 10, 20)"
    )

    def values(rows: list[Row]) -> list[tuple[object, ...]]:
        return [(row["id"], row["a"], row["b"]) for row in rows]

    assert values(read("table", table="r.t")) == [(1, 10, 20)]
    source.sql("FLUSH BINARY LOGS; ALTER TABLE r.t MODIFY b INT AFTER id; FLUSH BINARY LOGS")
    source.sql("INSERT INTO r.t (id, a, b) VALUES (2, 10, 20)")
    with pytest.raises(UnreadableBinlogError) as caught:
        read("table", table="r.t", max_partition_bytes="1")
    line = str(caught.value)
    assert "`r`.`t` may have other columns from binlog." in line
    begin = line.partition("with start=")[2].partition(",")[0]
    assert values(read("table", table="r.t", start=begin)) == [(2, 10, 20)]


def test_what_has_gone_is_an_error_that_names_it(
    source: Server, writer: Writer, options: dict[str, str]
) -> None:
    stream = DirectStream({**options, "shape": "changes"})
    stream.run()
    writer.write(1)
    source.sql("FLUSH BINARY LOGS")
    writer.write(1)
    last = str(source.sql("SHOW BINARY LOG STATUS")[0][0])
    source.sql(f"PURGE BINARY LOGS TO '{last}'")
    with pytest.raises(
        UnreadableBinlogError,
        match=f"any more, and it was not read to its end: it was purged.*{last} is the oldest",
    ):
        stream.run()
    with Server({**OPTIONS, "server_id": 77}) as other:
        other.sql(f"CREATE USER spark IDENTIFIED BY '{PASSWORD}'; GRANT {GRANTS} ON *.* TO spark")
        stream.options["port"] = str(other.port)
        with pytest.raises(
            UnreadableBinlogError, match="they mean nothing in the binary log of another server"
        ):
            stream.run()
    stream.options["port"] = "1"
    with pytest.raises(UnreadableBinlogError, match=r"nothing is listening at 127\.0\.0\.1:1"):
        stream.run()

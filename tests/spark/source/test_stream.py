"""Streams of a growing folder: every row arrives once, whatever the batches are."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from mtsd.spark.logs.failure import failure_line
from tests.binlog.recording import OPTIONS
from tests.servers.mysqld import Server
from tests.spark.streams import Stream, Writer, checksum_of, keys_of

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]

Make = Callable[..., Stream]


@pytest.fixture(scope="module")
def source() -> Iterator[Server]:
    with Server({**OPTIONS, "max_binlog_size": 65536}) as server:
        yield server


@pytest.fixture(scope="module")
def writer(source: Server) -> Writer:
    return Writer(source)


@pytest.fixture
def stream(spark: SparkSession, source: Server, tmp_path: Path) -> Make:
    def stream(shape: str, path: Path | None = None, name: str = "a", **options: object) -> Stream:
        given = {"shape": shape, **{key: str(value) for key, value in options.items()}}
        return Stream(spark, str(path or source.datadir), tmp_path / name, given)

    return stream


def test_a_folder_that_grows(source: Server, writer: Writer, stream: Make) -> None:
    writer.write(40)
    typed = stream("table", table="s.t", max_bytes=25_000, max_partition_bytes=9_000)
    first = typed.run()
    assert first[0] == 0
    assert len([rows for rows in first if rows]) > 1
    assert checksum_of(typed.arrived()) == writer.checksum()
    writer.write(30)
    source.sql("FLUSH BINARY LOGS")
    writer.write(10)
    typed.options["max_bytes"] = "1g"
    assert sum(typed.run()) > 50
    assert checksum_of(typed.arrived()) == writer.checksum()
    batches = typed.batches
    assert sum(typed.run()) == 0
    assert typed.batches == batches


def test_a_first_copy_and_the_changes_since(
    spark: SparkSession, source: Server, writer: Writer
) -> None:
    writer.write(3)
    ((executed,),) = source.sql("SELECT @@global.gtid_executed")
    writer.write(3)
    with closing(source.client("s")) as client, client.cursor() as cursor:
        cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        writer.write(3)
        cursor.execute("SELECT id, name, balance FROM t")
        rows = cursor.fetchall()
    writer.write(3)
    copy = spark.createDataFrame(rows, "id BIGINT, name STRING, balance DECIMAL(20, 4)")
    copy = copy.selectExpr("'insert' AS _op", "'' AS _seq", "*")
    changes = spark.read.format("mtsd_binlog").options(
        shape="table", table="s.t", start=f"gtid:{executed}"
    )
    everything = changes.load(str(source.datadir)).unionByName(copy, allowMissingColumns=True)
    assert checksum_of(everything, "id") == writer.checksum()


@pytest.mark.parametrize("shape", ["events", "groups", "changes"])
def test_every_shape_has_the_rows_of_a_batch_read(
    spark: SparkSession, source: Server, writer: Writer, stream: Make, shape: str
) -> None:
    writer.write(50)
    found = stream(shape, max_partition_bytes=50_000)
    found.run()
    there = spark.read.format("mtsd_binlog").option("shape", shape).load(str(source.datadir))
    rows = sorted(map(str, found.arrived().select(*there.columns).collect()))
    assert rows == sorted(map(str, there.collect()))
    assert len(rows) > 50


def test_where_a_stream_begins_and_ends(writer: Writer, stream: Make) -> None:
    writer.write(10)
    everything = stream("changes", name="all", columns="file,pos,row")
    everything.run()
    keys = everything.rows()
    file, begin, _ = keys[len(keys) // 2]
    end_file, end, _ = keys[-len(keys) // 4]
    part = stream(
        "changes", columns="file,pos,row", start=f"{file}:{begin}", end=f"{end_file}:{end}"
    )
    part.run()
    assert part.rows() == [key for key in keys if (file, begin) < key[:2] <= (end_file, end)]
    newest = stream("changes", name="new", columns="file,pos,row", start="latest")
    newest.run()
    assert newest.rows() == []
    writer.write(2)
    newest.run()
    everything.run()
    assert newest.rows() == [key for key in everything.rows() if key > keys[-1]] != []


def test_the_beginning_is_chosen_once(writer: Writer, stream: Make) -> None:
    """The query dies after the first batch is planned and before it is committed."""
    newest = stream("changes", columns="file,pos,row", start="latest")
    newest.run()
    shutil.rmtree(newest.checkpoint / "commits")
    shutil.rmtree(newest.place / "sink")
    writer.write(3)
    wanted = stream("changes", name="all", columns="file,pos,row")
    wanted.run()
    assert sum(newest.run()) > 3
    assert newest.rows() == wanted.rows()[-len(newest.rows()) :]


def test_filters_are_options(source: Server, writer: Writer, stream: Make) -> None:
    writer.write(3)
    for options, condition in (
        ({"tables": "s.noise,none.t", "ops": "insert,delete"}, "table = 'noise' and op = 'insert'"),
        ({"schemas": "s", "ops": "delete"}, "schema = 's' and op = 'delete'"),
    ):
        found = stream("changes", name=condition, **options)
        found.run()
        there = found.spark.read.format("mtsd_binlog").option("shape", "changes")
        everything = there.load(str(source.datadir))
        assert found.rows() == keys_of(everything.where(condition)) != []
        assert keys_of(there.options(**options).load(str(source.datadir))) == found.rows()


def test_times_as_options(spark: SparkSession, source: Server, writer: Writer) -> None:
    writer.write(8)
    reader = spark.read.format("mtsd_binlog").option("shape", "changes")
    everything = reader.load(str(source.datadir))
    times = sorted(row[0] for row in everything.select("commit_time").distinct().collect())
    since, until = times[3], times[-3]
    found = reader.option("since", f"{since}").option("until", f"{until}")
    wanted = everything.where((everything.commit_time >= since) & (everything.commit_time < until))
    assert keys_of(found.load(str(source.datadir))) == keys_of(wanted) != []


def test_a_stream_that_cannot_go_on_says_why(
    source: Server, writer: Writer, stream: Make, tmp_path: Path
) -> None:
    for _ in range(2):
        source.sql("FLUSH BINARY LOGS")
        writer.write(3)
    source.sql("FLUSH BINARY LOGS")
    folder = tmp_path / "logs"
    folder.mkdir()
    *_, first, second, _ = sorted(source.datadir.glob("binlog.0*"))
    data = first.read_bytes()
    half = len(data) * 2 // 3
    (folder / first.name).write_bytes(data[:half])
    changes = stream("changes", folder)
    changes.run()
    before = changes.rows()

    def said() -> str:
        with pytest.raises(StreamingQueryException) as caught:
            changes.run()
        line = failure_line(caught.value)
        assert line is not None
        return line

    damaged = bytearray(data)
    damaged[-200] ^= 1
    (folder / first.name).write_bytes(damaged)
    assert f"{folder / first.name}: checksum mismatch in an event of type" in said()
    (folder / first.name).write_bytes(data[: half // 2])
    assert f"{folder / first.name} has {half // 2} bytes, and has been read up to byte" in said()
    (folder / first.name).unlink()
    shutil.copy(second, folder)
    assert f"{folder}: {first.name} is not there any more" in said()
    assert changes.rows() == before
    shutil.copy(first, folder)
    changes.run()
    assert len(changes.rows()) > len(before)

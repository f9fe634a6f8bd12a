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
from tests.spark.direct_reads import (
    DirectStream,
    checksum_directly,
    keys_directly,
    read_directly,
)
from tests.spark.streams import Stream, Writer, checksum_of

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]

Make = Callable[..., DirectStream]
Through = Callable[..., Stream]


@pytest.fixture(scope="module")
def source() -> Iterator[Server]:
    with Server({**OPTIONS, "max_binlog_size": 65536}) as server:
        yield server


@pytest.fixture(scope="module")
def writer(source: Server) -> Writer:
    return Writer(source)


@pytest.fixture
def stream(source: Server) -> Make:
    def stream(shape: str, path: Path | None = None, **options: object) -> DirectStream:
        given = {key: str(value) for key, value in options.items()}
        return DirectStream({"shape": shape, "path": str(path or source.datadir), **given})

    return stream


@pytest.fixture
def through_spark(spark: SparkSession, source: Server, tmp_path: Path) -> Through:
    def stream(shape: str, path: Path | None = None, name: str = "a", **options: object) -> Stream:
        given = {"shape": shape, **{key: str(value) for key, value in options.items()}}
        return Stream(spark, str(path or source.datadir), tmp_path / name, given)

    return stream


def test_a_folder_that_grows(source: Server, writer: Writer, through_spark: Through) -> None:
    writer.write(40)
    typed = through_spark("table", table="s.t", max_bytes=25_000, max_partition_bytes=9_000)
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


def test_a_first_copy_and_the_changes_since(source: Server, writer: Writer) -> None:
    writer.write(3)
    ((executed,),) = source.sql("SELECT @@global.gtid_executed")
    writer.write(3)
    with closing(source.client("s")) as client, client.cursor() as cursor:
        cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        writer.write(3)
        cursor.execute("SELECT id, name, balance FROM t")
        copy = [
            {"_op": "insert", "_seq": "", "id": id_, "name": name, "balance": balance}
            for id_, name, balance in cursor.fetchall()
        ]
    writer.write(3)
    changes = {"shape": "table", "table": "s.t", "start": f"gtid:{executed}"}
    rows = read_directly({**changes, "path": str(source.datadir)})
    assert checksum_directly([*copy, *rows]) == writer.checksum()


@pytest.mark.parametrize("shape", ["events", "groups", "changes"])
def test_every_shape_has_the_rows_of_a_batch_read(writer: Writer, stream: Make, shape: str) -> None:
    writer.write(50)
    found = stream(shape, max_partition_bytes=50_000)
    found.run()
    rows = sorted(map(str, found.rows))
    assert rows == sorted(map(str, read_directly(found.options)))
    assert len(rows) > 50
    before = len(found.batches)
    assert found.run() == []
    assert len(found.batches) == before


def test_where_a_stream_begins_and_ends(writer: Writer, stream: Make) -> None:
    writer.write(10)
    everything = stream("changes", columns="file,pos,row")
    everything.run()
    keys = keys_directly(everything.rows)
    file, begin, _ = keys[len(keys) // 2]
    end_file, end, _ = keys[-len(keys) // 4]
    part = stream(
        "changes", columns="file,pos,row", start=f"{file}:{begin}", end=f"{end_file}:{end}"
    )
    part.run()
    wanted = [key for key in keys if (file, begin) < key[:2] <= (end_file, end)]
    assert keys_directly(part.rows) == wanted
    newest = stream("changes", columns="file,pos,row", start="latest")
    newest.run()
    assert newest.rows == []
    writer.write(2)
    newest.run()
    everything.run()
    later = [key for key in keys_directly(everything.rows) if key > keys[-1]]
    assert keys_directly(newest.rows) == later != []


def test_the_beginning_is_chosen_once(writer: Writer, stream: Make) -> None:
    """The query dies after the first batch is planned and before it is committed."""
    newest = stream("changes", columns="file,pos,row", start="latest")
    newest.run()
    assert newest.batches == [[]]
    writer.write(3)
    assert newest.replayed() == [[]]
    wanted = stream("changes", columns="file,pos,row")
    wanted.run()
    assert sum(newest.run()) > 3
    assert newest.rows == wanted.rows[-len(newest.rows) :]


def test_filters_are_options(writer: Writer, stream: Make) -> None:
    writer.write(3)
    everything = read_directly(stream("changes").options)
    for options, wanted in (
        ({"tables": "s.noise,none.t", "ops": "insert,delete"}, {"table": "noise", "op": "insert"}),
        ({"schemas": "s", "ops": "delete"}, {"schema": "s", "op": "delete"}),
    ):
        found = stream("changes", **options)
        found.run()
        assert found.rows == [row for row in everything if wanted.items() <= row.items()] != []
        assert read_directly(found.options) == found.rows


def test_times_as_options(writer: Writer, stream: Make) -> None:
    writer.write(8)
    options = stream("changes").options
    everything = read_directly(options)
    times = sorted({str(row["commit_time"]) for row in everything})
    since, until = times[3], times[-3]
    wanted = [row for row in everything if since <= str(row["commit_time"]) < until]
    assert read_directly({**options, "since": since, "until": until}) == wanted != []


def test_a_stream_that_cannot_go_on_says_why(
    source: Server, writer: Writer, through_spark: Through, tmp_path: Path
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
    changes = through_spark("changes", folder)
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

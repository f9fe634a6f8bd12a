"""Streams of a folder that grows: every row once, whatever the batches are."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from mtsd.spark.failure import failure_line
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


def test_a_folder_that_grows(
    spark: SparkSession, source: Server, writer: Writer, stream: Make
) -> None:
    writer.write(60)
    typed = stream("table", table="s.t", max_bytes=30_000, max_partition_bytes=9_000)
    first = typed.run()
    assert first[0] == 0
    assert len([rows for rows in first if rows]) > 3
    assert checksum_of(spark, typed.arrived()) == writer.checksum()
    assert typed.run() == []
    for _ in range(2):
        writer.write(40)
        source.sql("FLUSH BINARY LOGS")
        writer.write(10)
        assert sum(typed.run()) > 50
        assert checksum_of(spark, typed.arrived()) == writer.checksum()

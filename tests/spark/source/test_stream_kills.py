"""Whatever is killed at any time, every row arrives once in a sink that supports this."""

import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.binlog.recording import OPTIONS
from tests.servers.mysqld import Server
from tests.spark.query_kills import kill, running, wait_between_commits, wait_for_batches, workers
from tests.spark.streams import Key, Stream, Writer, keys_of

pytestmark = [pytest.mark.servers, pytest.mark.timeout(1500)]


@pytest.fixture(scope="module")
def source() -> Iterator[Server]:
    with Server({**OPTIONS, "max_binlog_size": 65536}) as server:
        writer = Writer(server)
        writer.write(150)
        yield server


@pytest.fixture(params=["folder", "live"])
def where(request: pytest.FixtureRequest, source: Server) -> dict[str, str]:
    if request.param == "folder":
        return {"path": str(source.datadir)}
    return {
        "host": "127.0.0.1", "port": str(source.port), "user": "root", "server_ids": "4301-4304",
    }  # fmt: skip


def wanted_rows(spark: SparkSession, where: dict[str, str]) -> list[Key]:
    reader = spark.read.format("mtsd_binlog").options(**where, shape="changes")
    return keys_of(reader.option("columns", "file,pos,row").load())


def test_every_commit_may_be_missing(
    spark: SparkSession, where: dict[str, str], tmp_path: Path
) -> None:
    """The sink has a batch that Spark does not know of, so it is planned and read again."""
    stream = Stream(spark, "", tmp_path, {**where, "shape": "changes", "max_bytes": "150k"})
    wanted = wanted_rows(spark, where)
    stream.run()
    assert stream.rows() == wanted
    commits = stream.checkpoint / "commits"
    last = max(int(path.name) for path in commits.iterdir() if path.name.isdecimal())
    assert last > 1
    for path in (commits / str(last), commits / f".{last}.crc"):
        path.unlink()
    stream.run()
    assert stream.rows() == wanted


@pytest.mark.long
def test_the_driver_is_killed(spark: SparkSession, where: dict[str, str], tmp_path: Path) -> None:
    rng = random.Random(3)
    options = {**where, "shape": "changes", "max_bytes": "70k", "max_partition_bytes": "30k"}
    stream = Stream(spark, "", tmp_path, options)
    wanted = wanted_rows(spark, where)
    kills = 0
    for number in range(40):
        with running(stream) as process:
            if number % 2:
                killed = wait_between_commits(stream, process)
            else:
                killed = wait_for_batches(stream, process)
                time.sleep(rng.uniform(0, 0.5) if killed else 0)
            kills += killed
            kill(process)
            if not killed:
                break
    else:
        pytest.fail("the query does not end")
    assert process.returncode == 0
    assert kills > 2
    assert stream.rows() == wanted


@pytest.mark.long
def test_workers_are_killed(spark: SparkSession, where: dict[str, str], tmp_path: Path) -> None:
    """Spark reruns a task if its process has died."""
    options = {**where, "shape": "changes", "max_partition_bytes": "10k"}
    stream = Stream(spark, "", tmp_path, options)
    wanted = wanted_rows(spark, where)
    killed = 0
    with running(stream, "local[2,20]") as process:
        while process.poll() is None:
            for worker in workers(process.pid)[:1]:
                if killed < 8:
                    os.kill(worker, signal.SIGKILL)
                    killed += 1
            time.sleep(0.4)
        assert process.returncode == 0
    assert killed > 1
    assert stream.rows() == wanted

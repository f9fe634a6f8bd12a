"""Whatever is killed at any time, every row arrives once in a sink that supports this."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.binlog.recording import OPTIONS
from tests.servers.mysqld import Server
from tests.spark.streams import Key, Stream, Writer, keys_of

pytestmark = [pytest.mark.servers, pytest.mark.timeout(1500)]

_TIMEOUT_S = 400


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


@contextmanager
def running(stream: Stream, master: str = "local[2]") -> Iterator[subprocess.Popen[bytes]]:
    """Run a query in its own process group, which is killed at the end."""
    given = {"master": master, "options": stream.options, "place": str(stream.place)}
    command = [sys.executable, "-m", "tests.spark.query_process", json.dumps(given)]
    process = subprocess.Popen(
        command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield process
    finally:
        kill(process)


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the query with its JVM and its workers (SIGKILL)."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        assert process.poll() is not None
    process.wait()


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
        before = stream.batches
        with running(stream) as process:
            if number % 2:
                killed = wait_between_commits(stream, process)
            else:
                killed = wait_for_batches(stream, process, before)
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


def wait_between_commits(stream: Stream, process: subprocess.Popen[bytes]) -> bool:
    """Wait until the sink has a new batch that Spark has not committed; return whether it had."""
    before = newest(stream.place / "sink" / "_spark_metadata")
    deadline = time.monotonic() + _TIMEOUT_S
    while process.poll() is None and time.monotonic() < deadline:
        there = newest(stream.place / "sink" / "_spark_metadata")
        if there > before and there > newest(stream.checkpoint / "commits"):
            return True
    return process.poll() is None


def wait_for_batches(stream: Stream, process: subprocess.Popen[bytes], before: int) -> bool:
    """Wait until a batch is committed; return whether the query is still running."""
    deadline = time.monotonic() + _TIMEOUT_S
    while process.poll() is None and time.monotonic() < deadline:
        if stream.batches > before:
            return True
        time.sleep(0.01)
    return process.poll() is None


def newest(folder: Path) -> int:
    if not folder.exists():
        return -1
    names = (path.name.removesuffix(".compact") for path in folder.iterdir())
    return max((int(name) for name in names if name.isdecimal()), default=-1)


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


def workers(group: int) -> list[int]:
    """Return the processes of a group that PySpark's daemon has forked for tasks."""
    daemons: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                command = (folder / "cmdline").read_bytes()
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            # Planning processes run modules of pyspark.sql instead; those belong to the driver.
            if b"pyspark.daemon\0pyspark.worker\0" in command:
                daemons[int(folder.name)] = int(fields[1])
    mine = [pid for pid, parent in daemons.items() if parent in daemons]
    return [pid for pid in mine if descends(daemons[pid], group)]


def descends(pid: int, ancestor: int) -> bool:
    while pid > 1:
        if pid == ancestor:
            return True
        try:
            pid = int((Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            return False
    return False

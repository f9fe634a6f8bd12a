"""Queries in processes of their own, and kills (SIGKILL) of the driver or of a worker process."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final

from tests.spark.streams import Stream

_TIMEOUT_S: Final = 400


@contextmanager
def running(
    stream: Stream, master: str = "local[2]", **trigger: str
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a query in its own process group, which is killed at the end.

    It reads what is available now, unless another trigger is given. What it prints is in the file
    `log` of the stream's folder.
    """
    with prepared(stream, master, trigger) as begun, begun() as process:
        yield process


@contextmanager
def prepared(
    stream: Stream, master: str, trigger: Mapping[str, str], *, again: bool = False
) -> Iterator[Callable[[], AbstractContextManager[subprocess.Popen[bytes]]]]:
    """Return what runs a query, as `running` does, with Spark started before.

    If it is to be run `again`, the next Spark starts while a query runs: that takes most of the
    time between two kills.
    """
    given = {
        "master": master,
        "options": stream.options,
        "place": str(stream.place),
        "trigger": dict(trigger),
    }
    command = [sys.executable, "-m", "tests.spark.query_process", json.dumps(given)]

    def started() -> subprocess.Popen[bytes]:
        with (stream.place / "log").open("ab") as log:
            return subprocess.Popen(
                command, start_new_session=True, stdin=subprocess.PIPE, stdout=log, stderr=log
            )

    waiting = [started()]

    @contextmanager
    def begun() -> Iterator[subprocess.Popen[bytes]]:
        process = waiting.pop()
        if again:
            waiting.append(started())
        assert process.stdin is not None
        process.stdin.close()
        try:
            yield process
        finally:
            kill(process)

    try:
        yield begun
    finally:
        for process in waiting:
            kill(process)


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the query with its JVM and its workers (SIGKILL)."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        assert process.poll() is not None
    process.wait()
    if process.stdin is not None:
        process.stdin.close()


def wait_between_commits(stream: Stream, process: subprocess.Popen[bytes]) -> bool:
    """Wait until the sink has a new batch that Spark has not committed; return whether it had."""
    before = newest(stream.place / "sink" / "_spark_metadata")
    deadline = time.monotonic() + _TIMEOUT_S
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
        there = newest(stream.place / "sink" / "_spark_metadata")
        if there > before and there > newest(stream.checkpoint / "commits"):
            return True
    return process.poll() is None


def wait_for_batches(stream: Stream, process: subprocess.Popen[bytes]) -> bool:
    """Wait until a batch is committed; return whether the query is still running."""
    before = newest(stream.checkpoint / "commits")
    deadline = time.monotonic() + _TIMEOUT_S
    while process.poll() is None and time.monotonic() < deadline:
        if newest(stream.checkpoint / "commits") > before:
            return True
        time.sleep(0.01)
    return process.poll() is None


def newest(folder: Path) -> int:
    """Return the number of the newest batch in a folder of Spark's, -1 if there is none."""
    if not folder.exists():
        return -1
    names = (path.name.removesuffix(".compact") for path in folder.iterdir())
    return max((int(name) for name in names if name.isdecimal()), default=-1)


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
    return [pid for pid in mine if _descends(daemons[pid], group)]


def kill_a_worker(process: subprocess.Popen[bytes]) -> bool:
    """Kill the first worker process that a query has; return whether the query still runs."""
    while process.poll() is None:
        for worker in workers(process.pid)[:1]:
            os.kill(worker, signal.SIGKILL)
            return True
        time.sleep(0.05)
    return False


def _descends(pid: int, ancestor: int) -> bool:
    while pid > 1:
        if pid == ancestor:
            return True
        try:
            pid = int((Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            return False
    return False

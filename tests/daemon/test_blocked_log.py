"""A log that takes nothing, as a full pipe or a disk that stands still, never holds the daemon."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mtsd.control.client import fetch_status
from tests.replica.daemon_process import Value, toml

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 60


@contextmanager
def started(folder: Path, log: int) -> Iterator[subprocess.Popen[bytes]]:
    """Start a daemon that logs to a pipe; its servers are not there, so it logs again and again."""
    config = folder / "config.toml"
    settings: dict[str, Value] = {
        "source.port": 1, "target.port": 2, "status.socket": "mtsd.sock", "log.format": "json",
    }  # fmt: skip
    config.write_text(toml(settings))
    config.chmod(0o600)
    environ = {name: value for name, value in os.environ.items() if "MTSD_" not in name}
    with subprocess.Popen(
        [sys.executable, "-m", "mtsd", "run", "--config", str(config)],
        cwd=ROOT, env=environ, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.kill()


def full_pipe() -> tuple[int, int, int]:
    """Return both ends of a pipe that takes no byte more, and how many it holds."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    held = 0
    with suppress(BlockingIOError):
        while True:
            held += os.write(writing, b"x" * 4096)
    os.set_blocking(writing, True)
    return reading, writing, held


def wait_for_interruption(process: subprocess.Popen[bytes], folder: Path) -> None:
    """Return once the daemon says that it has tried to connect; it has logged that then."""
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        status = fetch_status(folder / "mtsd.sock")
        if status is not None and status.last_error:
            return
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_status_answers_and_the_log_is_written_later(tmp_path: Path) -> None:
    reading, writing, held = full_pipe()
    with os.fdopen(reading, "rb") as pipe, started(tmp_path, writing) as process:
        os.close(writing)
        wait_for_interruption(process, tmp_path)
        assert pipe.read(held) == b"x" * held
        process.send_signal(signal.SIGTERM)
        events = [json.loads(line)["event"] for line in pipe]
        assert process.wait(TIMEOUT_S) == 0
    assert events[:2] == ["starting", "replication interrupted"]
    assert events[-2:] == ["stopping", "stopped"]


def test_stop_ends_while_nobody_reads_the_log(tmp_path: Path) -> None:
    reading, writing, _ = full_pipe()
    with os.fdopen(reading, "rb"), started(tmp_path, writing) as process:
        os.close(writing)
        wait_for_interruption(process, tmp_path)
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT_S) == 0


def test_second_signal_ends_while_nobody_reads_the_log(tmp_path: Path) -> None:
    reading, writing, _ = full_pipe()
    with os.fdopen(reading, "rb"), started(tmp_path, writing) as process:
        os.close(writing)
        wait_for_interruption(process, tmp_path)
        os.kill(process.pid, signal.SIGTERM)
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(TIMEOUT_S) in {0, 1}

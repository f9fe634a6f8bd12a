"""A signal at any instant of the start is a graceful stop, or a reload, and never kills."""

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

from tests.replica.daemon_process import Value, toml

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 120


@contextmanager
def starting(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start a daemon whose servers are not there: it tries to connect again and again."""
    config = folder / "config.toml"
    settings: dict[str, Value] = {
        "source.port": 1, "target.port": 2, "status.socket": "", "log.format": "json",
    }  # fmt: skip
    config.write_text(toml(settings))
    config.chmod(0o600)
    environ = {name: value for name, value in os.environ.items() if "MTSD_" not in name}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "mtsd", "run", "--config", str(config)],
            cwd=ROOT, env=environ, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        )  # fmt: skip
        with process:
            try:
                yield process
            finally:
                process.kill()


def mask(process: subprocess.Popen[bytes], name: str) -> int:
    """Return the signals that a process blocks (SigBlk) or has handlers for (SigCgt), as bits."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith(f"{name}:"))
    return int(line.split()[1], 16)


def has(process: subprocess.Popen[bytes], name: str, number: signal.Signals) -> bool:
    return bool(mask(process, name) >> (number - 1) & 1)


def is_prepared(process: subprocess.Popen[bytes]) -> bool:
    """Tell whether a stop is graceful from now on."""
    return has(process, "SigBlk", signal.SIGTERM) or has(process, "SigCgt", signal.SIGTERM)


@pytest.fixture(params=[False, True], ids=["", "in the background"])
def ignored(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let what is started ignore signals at first, as a shell's background jobs do."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGHUP)}
    for number in handlers if request.param else ():
        signal.signal(number, signal.SIG_IGN)
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


@contextmanager
def held_before_its_handlers(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start a daemon and stop its process (SIGSTOP) while it blocks signals, without handlers."""
    for _ in range(20):
        with starting(folder) as process:
            deadline = time.monotonic() + TIMEOUT_S
            while not has(process, "SigBlk", signal.SIGTERM):
                assert process.poll() is None
                assert time.monotonic() < deadline
            process.send_signal(signal.SIGSTOP)
            while state(process) != "T":
                assert time.monotonic() < deadline
            if not has(process, "SigCgt", signal.SIGTERM):
                yield process
                return
    pytest.fail("its handlers were always set before this process had the time to look")


def state(process: subprocess.Popen[bytes]) -> str:
    return Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.mark.usefixtures("ignored")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signal_before_the_handlers_are_set(number: signal.Signals, tmp_path: Path) -> None:
    with held_before_its_handlers(tmp_path) as process:
        deadline = time.monotonic() + TIMEOUT_S
        process.send_signal(number)
        process.send_signal(signal.SIGCONT)
        if number is signal.SIGHUP:
            while b'"configuration reloaded"' not in (tmp_path / "log").read_bytes():
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.01)
            process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT_S) == 0
        assert b'"stopped"' in (tmp_path / "log").read_bytes()


@pytest.mark.parametrize("runs", [12, pytest.param(150, marks=pytest.mark.long)])
def test_stop_at_a_random_instant(runs: int, tmp_path: Path) -> None:
    chance = random.Random(runs)
    for number in range(runs):
        with starting(tmp_path) as process:
            time.sleep(chance.random())
            begun = is_prepared(process)
            process.send_signal(chance.choice([signal.SIGTERM, signal.SIGINT]))
            # Before Python has come to mtsd's first line nothing can be done: it dies, or loses
            # the KeyboardInterrupt where it ignores exceptions.
            while not begun and process.poll() is None:
                if is_prepared(process):
                    process.send_signal(signal.SIGTERM)
                    break
                time.sleep(0.01)
            status = process.wait(TIMEOUT_S)
            assert status == 0 or not begun, (number, (tmp_path / "log").read_text())

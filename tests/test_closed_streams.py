"""Commands whose standard output or standard error has been closed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.fix_daemon import NEEDS_PERSON
from tests.replica.daemon_process import Value, toml

ROOT = Path(__file__).parents[1]
TIMEOUT_S = 60
SETTINGS: dict[str, Value] = {"source.port": 1, "target.port": 2, "log.format": "json"}


def configured(folder: Path) -> Path:
    config = folder / "config.toml"
    config.write_text(toml({**SETTINGS, "status.socket": str(folder / "mtsd.sock")}))
    config.chmod(0o600)
    return config


@pytest.mark.parametrize("command", [("config", "show"), ("check",)])
def test_a_reader_that_is_gone(command: tuple[str, ...], tmp_path: Path) -> None:
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "mtsd", *command, "--config", str(configured(tmp_path))],
        cwd=ROOT, env=environ, stdout=writing, stderr=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    os.close(writing)
    assert done.stderr == ""
    # It fits into a buffer: what check has found is known.
    assert done.returncode == (NEEDS_PERSON if command == ("check",) else 0)


@pytest.mark.parametrize("closed", ["2>&-", "<&- >&- 2>&-"])
def test_the_daemon_without_standard_streams(closed: str, tmp_path: Path) -> None:
    """It has nowhere to log, and runs; no connection takes the place of a stream."""
    config = configured(tmp_path)
    with subprocess.Popen(
        ["sh", "-c", f'exec "$0" -m mtsd run --config "$1" {closed}', sys.executable, str(config)],
        cwd=ROOT,
    ) as process:
        try:
            deadline = time.monotonic() + TIMEOUT_S
            while not (tmp_path / "mtsd.sock").exists():
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.01)
            process.send_signal(signal.SIGTERM)
            assert process.wait(TIMEOUT_S) == 0
        finally:
            process.kill()

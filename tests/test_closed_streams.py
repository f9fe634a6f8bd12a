"""Commands whose standard output or standard error has been closed."""

import os
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.fix_daemon import NEEDS_PERSON
from tests.replica.daemon_process import Value, toml

ROOT = Path(__file__).parents[1]
TIMEOUT_S = 60
HEEDS_CTRL_C = ("env", "--default-signal=INT")
"""What a shell starts in the background ignores it, and so does all that this starts."""
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


@pytest.mark.parametrize(
    ("words", "buffered"),
    [("--help", True), ("--help", False), ("config show", True), ("binlog --rows", False)],
)
def test_a_disk_that_is_full(words: str, tmp_path: Path, *, buffered: bool) -> None:
    """What a command prints is lost: it says so on one line, and does not exit with 0."""
    given = {
        "binlog --rows": ["docs/example/binlog.000001"],
        "config show": ["--config", str(configured(tmp_path))],
    }
    environ = {**os.environ, "PYTHONUNBUFFERED": "" if buffered else "1"}
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = subprocess.run(
            [sys.executable, "-m", "mtsd", *words.split(), *given.get(words, [])],
            cwd=ROOT, env=environ, stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.stderr == (
        "mtsd: error: standard output cannot be written: No space left on device\n"
    )
    assert done.returncode == 1


@pytest.mark.parametrize("command", ["check", "binlog"])
def test_ctrl_c(command: str, tmp_path: Path) -> None:
    """While a server does not answer: one line, and the end that a shell's loop notices."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        config = tmp_path / "config.toml"
        settings: dict[str, Value] = {"source.port": port, "target.port": port}
        with socket.create_server(("127.0.0.2", port)) as other:
            config.write_text(
                toml(
                    {
                        **settings,
                        "source.host": "127.0.0.2",
                        "status.socket": str(tmp_path / "mtsd.sock"),
                    }
                )
            )
            config.chmod(0o600)
            with subprocess.Popen(
                [*HEEDS_CTRL_C, sys.executable, "-m", "mtsd", command, "--config", str(config)],
                cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            ) as process:  # fmt: skip
                connected, _, _ = select.select([silent, other], [], [], TIMEOUT_S)
                assert connected
                process.send_signal(signal.SIGINT)
                _, said = process.communicate(timeout=TIMEOUT_S)
    assert said.splitlines()[-1] == "mtsd: interrupted"
    assert "Traceback" not in said
    assert process.returncode == -signal.SIGINT


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

"""A daemon in a process of its own, between two servers of a test."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

from mtsd.control.client import DaemonUnavailableError, fetch_status
from mtsd.control.status import Status
from mtsd.model.gtid import GtidSet
from tests.replica.fork_server import ForkedProcess, Order, fork
from tests.servers.mysqld import Server

Value = str | int | float | bool | list[str] | list[int] | list[list[str]] | list[list[str | int]]
_ROOT = Path(__file__).parents[2]
_MADE: Final[list["DaemonProcess"]] = []


class DaemonError(AssertionError):
    """The daemon did not do what was waited for; the message ends with its log."""


class DaemonProcess:
    """`mtsd run` from `source` to `target`; its files are in `folder`.

    `settings` are keys such as "replica.parallel_workers" over the defaults of the tests,
    `environ` what it finds in its environment beside the machine's. It has a Python of its
    own unless it is `forked`, which spares most of the processor time of a start.
    """

    def __init__(
        self,
        source: Server,
        target: Server,
        folder: Path,
        settings: Mapping[str, Value] | None = None,
        *,
        environ: Mapping[str, str] | None = None,
        forked: bool = True,
    ) -> None:
        self.forked = forked
        self.source = source
        self.target = target
        self.folder = folder
        self.settings: dict[str, Value] = {
            "source.port": source.port,
            "source.user": "root",
            "source.server_id": 4201,
            "source.start": "earliest",
            "source.heartbeat_period": 1.0,
            "target.port": target.port,
            "target.user": "root",
            "status.socket": "mtsd.sock",
            "log.format": "json",
            **(settings or {}),
        }
        self.environ: dict[str, str] = {**(environ or {})}
        self.config = folder / "config.toml"
        self.log = folder / "mtsd.log"
        self._process: subprocess.Popen[bytes] | ForkedProcess | None = None
        _MADE.append(self)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int:
        return self._started().pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self, *, fault: str = "", arguments: Sequence[str] = ()) -> None:
        """Start it with further `arguments` of `mtsd run`.

        With `fault` ("point:n", see `faulty_daemon`) it has one there, and takes no arguments.
        """
        self.configure()
        module, words = "mtsd.__main__", ["run", "--config", str(self.config), *arguments]
        if fault:
            module, words = "tests.replica.faulty_daemon", [fault, str(self.config)]
        environ = {name: value for name, value in os.environ.items() if "MTSD_" not in name}
        environ.update(self.environ)
        with self.log.open("ab") as log:
            if self.forked:
                self._process = fork(Order(module, [module, *words], environ), log)
            else:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", module, *words],
                    cwd=_ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environ,
                )  # fmt: skip

    def configure(self) -> None:
        """Write its settings, as they are now, to its file."""
        self.config.write_text(toml(self.settings))
        self.config.chmod(0o600)

    def reload(self) -> None:
        """SIGHUP; the file is as it is."""
        self._started().send_signal(signal.SIGHUP)

    def status(self) -> Status | None:
        """Return what its socket says; None where nothing answers."""
        try:
            return fetch_status(self.folder / "mtsd.sock", 60.0)
        except DaemonUnavailableError:
            # One that is killed closes its connections a moment before it has ended.
            with suppress(subprocess.TimeoutExpired):
                self._started().wait(5)
            if self.running:
                raise
            return None

    def wait_until_running(self, timeout: float = 120.0) -> None:
        """Wait until it has connected to both servers."""
        deadline = time.monotonic() + timeout
        while True:
            status = self.status()
            if status is not None and status.state == "running" and status.lag_seconds is not None:
                return
            self._check(deadline, "it is not running")
            time.sleep(0.05)

    def wait_until_caught_up(self, timeout: float = 120.0) -> None:
        """Wait until everything that is in the source's binlog now is in the target.

        `timeout` is how long it may apply nothing: how much there is, is no matter.
        """
        file, offset, gtids = self.source.binlog_end()
        place = None
        deadline = time.monotonic() + timeout
        while True:
            status = self.status()
            if status is not None and status.state == "running":
                if status.executed != place:
                    deadline = time.monotonic() + timeout
                place = status.executed
                if (place.file, place.pos) >= (file, offset):
                    return
                # GTIDs do not tell of groups that have none.
                if (
                    not place.file
                    and place.gtid
                    and GtidSet.parse(gtids).issubset(GtidSet.parse(place.gtid))
                ):
                    return
            self._check(deadline, f"not caught up to {file}:{offset}, {status}")
            time.sleep(0.05)

    def wait_for_status(
        self, fits: Callable[[Status], bool], what: str, timeout: float = 120.0
    ) -> Status:
        """Wait until its status fits; `what` is said where it does not."""
        deadline = time.monotonic() + timeout
        while True:
            status = self.status()
            if status is not None and fits(status):
                return status
            self._check(deadline, f"{what}, {status}")
            time.sleep(0.05)

    def wait_for_record(
        self, event: str, number: int = 1, timeout: float = 120.0
    ) -> dict[str, object]:
        """Return the record of its log with this number whose event begins like that."""
        deadline = time.monotonic() + timeout
        while True:
            found = [each for each in self.records() if str(each["event"]).startswith(event)]
            if len(found) >= number:
                return found[number - 1]
            self._check(deadline, f"no record {event!r}")
            time.sleep(0.05)

    def stop(self, timeout: float = 120.0) -> int:
        """SIGTERM; returns the exit status."""
        self._started().send_signal(signal.SIGTERM)
        return self.wait(timeout)

    def kill(self) -> None:
        """SIGKILL."""
        self._started().kill()
        self._started().wait(60)

    def wait(self, timeout: float = 120.0) -> int:
        """Wait for its end; returns the exit status."""
        try:
            return self._started().wait(timeout)
        except subprocess.TimeoutExpired:
            raise DaemonError(f"it did not end:\n{self.last_words()}") from None

    def close(self) -> None:
        """Kill it if it still runs."""
        if self.running:
            self.kill()

    def records(self) -> list[dict[str, object]]:
        """Its log so far, without a line that is still being written."""
        lines = self.log.read_text().splitlines(keepends=True) if self.log.exists() else []
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("\n")]

    def last_words(self) -> str:
        """Return the end of its log, and that of the target's."""
        mine = self.log.read_text()[-4000:] if self.log.exists() else ""
        return f"{mine}\ntarget:\n{self.target.error_log.read_text()[-1000:]}"

    def _check(self, deadline: float, problem: str) -> None:
        if not self.running:
            code = self._started().returncode
            raise DaemonError(f"it ended with {code}: {problem}\n{self.last_words()}")
        if time.monotonic() > deadline:
            raise DaemonError(f"{problem}\n{self.last_words()}")

    def _started(self) -> subprocess.Popen[bytes] | ForkedProcess:
        if self._process is None:
            raise DaemonError("it was never started")
        return self._process


def close_all() -> None:
    """Kill what a test that has failed leaves running: it would go on at the others' cost."""
    while _MADE:
        _MADE.pop().close()


def toml(settings: Mapping[str, Value]) -> str:
    """Return the settings as a TOML file; JSON's scalars and lists are TOML's."""
    sections: dict[str, list[str]] = {}
    for key, value in settings.items():
        section, _, name = key.partition(".")
        sections.setdefault(section, []).append(f"{name} = {json.dumps(value)}")
    return "".join(f"[{name}]\n" + "\n".join(lines) + "\n" for name, lines in sections.items())

"""mtsd as the other replica: the daemon between two servers, with few settings not default."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from itertools import count
from pathlib import Path
from shutil import rmtree, unpack_archive
from tempfile import TemporaryDirectory, mkdtemp
from typing import Final, Self

from benchmarks.replicas.process import cpu_seconds, peak_memory
from mtsd.control.status import Status
from tests.packaging.compiled import build_wheel
from tests.replica.daemon_process import DaemonError, DaemonProcess, Value
from tests.servers.mysqld import Server
from tests.servers.reaper import register

_ROOT: Final = Path(__file__).resolve().parents[2]
_SERVER_IDS: Final = count(4201)
"""One each: a source keeps a replica that has gone for a while, so the next has another id."""
_POLL_S: Final = 0.2
"""Rarely enough to cost nothing: what is measured is in the target's binlog."""


class External:
    """`mtsd run` from `source` to `target`; a context manager that starts it and ends it.

    It reads the source as the server's own replica does, over TCP without TLS, and reaches the
    target over its Unix socket. `settings` ("replica.batch_groups": 1) override the defaults.
    """

    def __init__(self, source: Server, target: Server, settings: Mapping[str, Value]) -> None:
        self._source = source
        self._target = target
        self._folder = Path(mkdtemp(prefix="mtsd-benchmark-"))
        register(self._folder, 0)
        identity = {"source.server_id": next(_SERVER_IDS)}
        self._daemon = DaemonProcess(
            source, target, self._folder, {**identity, **settings}, forked=False
        )
        own = self._daemon.settings
        for key in ("source.heartbeat_period", "target.port"):
            del own[key]
        own.update({"source.tls": "disabled", "target.unix_socket": str(target.socket)})
        self.settings = {name: value for name, value in own.items() if not name.endswith("socket")}
        """What differs from the defaults."""
        self.started = 0.0
        """When its process was started, in seconds since 1970."""
        self.began = 0.0
        """When it began to replicate, according to its own log; known once it has caught up."""

    def __enter__(self) -> Self:
        self.started = time.time()
        self._daemon.start()
        register(self._folder, self._daemon.pid)
        return self

    def __exit__(self, *_: object) -> None:
        self._daemon.close()
        rmtree(self._folder)
        register(self._folder, None)

    @property
    def socket(self) -> Path:
        """Its status socket."""
        return self._folder / "mtsd.sock"

    @property
    def cpu_seconds(self) -> float:
        """CPU seconds that it has used; 0 before it was started."""
        return cpu_seconds(self._daemon.pid) if self.started else 0.0

    @property
    def peak_memory(self) -> int:
        """The maximum of its resident memory in bytes."""
        return peak_memory(self._daemon.pid)

    def wait_until_caught_up(self, timeout: float) -> None:
        """Wait until its stored low-water mark is the source's current end; raises DaemonError."""
        end = self._source.binlog_end()[:2]
        self.wait_until(lambda: self._mark() >= end, timeout, _POLL_S)

    def wait_until(self, reached: Callable[[], bool], timeout: float, period: float) -> None:
        """Ask every `period` seconds until the answer is yes; raises DaemonError."""
        deadline = time.monotonic() + timeout
        while not reached():
            if not self._daemon.running:
                raise DaemonError(f"it ended:\n{self._daemon.last_words()}")
            if time.monotonic() > deadline:
                raise DaemonError(f"it has not caught up:\n{self._daemon.last_words()}")
            time.sleep(period)
        (record,) = (one for one in self._daemon.records() if one["event"] == "starting")
        self.began = datetime.fromisoformat(str(record["timestamp"])).timestamp()

    def status(self) -> Status | None:
        """Return what its status socket reports; None while nothing answers."""
        return self._daemon.status()

    def stop(self) -> None:
        """Stop it gracefully; raises DaemonError if its exit status is not 0."""
        if code := self._daemon.stop():
            raise DaemonError(f"it ended with {code}:\n{self._daemon.last_words()}")

    def _mark(self) -> tuple[str, int]:
        there = self._target.sql(
            "SELECT COUNT(*) FROM information_schema.tables"
            " WHERE table_schema = 'mtsd' AND table_name = 'slave_relay_log_info'"
        )
        if not there[0][0]:
            return ("", 0)
        mark = "SELECT Master_log_name, Master_log_pos FROM mtsd.slave_relay_log_info"
        rows = self._target.sql(mark)
        return (str(rows[0][0]), int(rows[0][1])) if rows else ("", 0)


@contextmanager
def installed(*, pure: bool) -> Iterator[None]:
    """Let the daemon be what the image installs, the compiled wheel; or the checkout's, if `pure`.

    Both have their bytecode compiled, in a separate folder: otherwise a checkout whose bytecode
    may not be written would be compiled at every start.
    """
    before = dict(os.environ)
    with TemporaryDirectory(prefix="mtsd-installed-") as name:
        folder = Path(name)
        register(folder, 0)
        try:
            os.environ["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
            os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
            if not pure:
                (folder / "wheel").mkdir()
                unpack_archive(build_wheel(folder / "wheel"), folder / "packages", "zip")
                os.environ["PYTHONPATH"] = str(folder / "packages")
                # Otherwise the checkout, where the daemon is started, would take precedence.
                os.environ["PYTHONSAFEPATH"] = "1"
            warm_up = [sys.executable, "-m", "mtsd", "run", "--help"]
            subprocess.run(warm_up, cwd=_ROOT, stdout=subprocess.DEVNULL, check=True)
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)
            register(folder, None)

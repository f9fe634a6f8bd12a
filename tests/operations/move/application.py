"""An application that writes while a move goes on, and a move that is killed."""

import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final, Self

import pymysql

from tests.servers.mysqld import Server

ACCOUNT: Final = "CREATE USER app IDENTIFIED BY 'app'; GRANT SELECT, INSERT ON shop.* TO app"


class Application:
    """Writes to whichever of the servers takes it, each row once; knows what was acknowledged.

    One connection makes some 400 transactions a second; several, as many times more.
    """

    def __init__(self, *servers: Server, connections: int = 1) -> None:
        self._servers = servers
        self._ends = threading.Event()
        self._threads = [
            threading.Thread(target=self._write, args=(f"w{number}.",), daemon=True)
            for number in range(connections)
        ]
        self.acknowledged: set[str] = set()
        self._seconds: Counter[int] = Counter()

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        for thread in self._threads:
            thread.join(60)

    @property
    def fastest(self) -> int:
        """How many were acknowledged in the fastest second."""
        return max(self._seconds.values(), default=0)

    def _write(self, name: str) -> None:
        number, at = 0, 0
        while not self._ends.is_set():
            server = self._servers[at % len(self._servers)]
            try:
                with closing(server.client(user="app", password="app")) as client:
                    while not self._ends.is_set():
                        number += 1
                        with client.cursor() as cursor:
                            cursor.execute(
                                f"INSERT INTO shop.orders (what) VALUES ('{name}{number}')"
                            )
                        self.acknowledged.add(f"{name}{number}")
                        self._seconds[int(time.monotonic())] += 1
                        time.sleep(0.002)
            except pymysql.err.MySQLError:
                at += 1
                time.sleep(0.005)

    def wait_for(self, more: int) -> None:
        """Wait until that many more are acknowledged."""
        count, deadline = len(self.acknowledged) + more, time.monotonic() + 60
        while len(self.acknowledged) < count:
            assert time.monotonic() < deadline
            time.sleep(0.01)


def wait_until(holds: Callable[[], bool]) -> None:
    """Wait until something holds; AssertionError after 60 s."""
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@contextmanager
def begun(text: str, folder: Path, *words: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Start a move in a process of its own; go on once its report (begun.txt) has that text.

    What it says is in said.txt. On a slow machine it may have ended by then.
    """
    report = folder / "begun.txt"
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "mtsd", *words, "--report", str(report)]
    said = folder / "said.txt"
    with said.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out) as process:
        wait_until(
            lambda: (
                process.poll() is not None
                or (report.exists() and text in report.read_text(encoding="utf-8"))
            )
        )
        assert process.poll() in {None, 0}, said.read_text(encoding="utf-8")
        yield process


def killed_at(text: str, folder: Path, *words: str, by: signal.Signals = signal.SIGKILL) -> int:
    """Kill a move once its report (begun.txt) has that text; return its exit status."""
    with begun(text, folder, *words) as process:
        process.send_signal(by)
        return process.wait(60)

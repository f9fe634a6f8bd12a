"""The service manager's end of the notifications: a real AF_UNIX socket that notes what comes."""

import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self


class NotifySocket:
    """Receives from the moment it is made; a context manager. `environ` is for the daemon."""

    def __init__(self, folder: Path, *, watchdog_s: float = 0.0) -> None:
        path = folder / "notify.sock"
        self.environ = {"NOTIFY_SOCKET": str(path)}
        if watchdog_s:
            self.environ["WATCHDOG_USEC"] = str(int(watchdog_s * 1_000_000))
        self.received: list[tuple[float, str]] = []
        """When, on the monotonic clock, and what."""
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(path))
        self._thread = threading.Thread(target=self._receive)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
            end.sendto(b"", self.environ["NOTIFY_SOCKET"])
        self._thread.join()
        self._socket.close()

    def pings(self, since: float) -> list[float]:
        """Return when signs for the watchdog came after the moment `since`."""
        return [at for at, text in list(self.received) if text == "WATCHDOG=1" and at >= since]

    def states(self) -> list[str]:
        """Return the changes of state so far, without times."""
        words = ("READY=1", "RELOADING=1", "STOPPING=1")
        return [
            text.partition("\n")[0] for _, text in list(self.received) if text.startswith(words)
        ]

    def wait_for(self, condition: Callable[[Self], bool], timeout: float = 120.0) -> None:
        """Wait until it holds."""
        deadline = time.monotonic() + timeout
        while not condition(self):
            assert time.monotonic() < deadline, self.received
            time.sleep(0.02)

    def _receive(self) -> None:
        while data := self._socket.recv(65_536):
            self.received.append((time.monotonic(), data.decode()))

"""What a switch asks of a daemon: how it is, to stop, and to start again."""

import asyncio
import contextlib
import shlex
import subprocess
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mtsd.config import Settings
from mtsd.control.client import DaemonRefusedError, DaemonUnavailableError, fetch_status, post
from mtsd.control.status import Status
from mtsd.model.errors import NeedsPersonError

CONFIG: Final = "{config}"
NAME: Final = "{name}"
"""What stands for the file of a daemon, and its name without .toml, in what starts it."""
_LOOK_S: Final = 0.01
_LAST_WORDS: Final = 2000


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Return once something holds; whoever calls it limits the time."""
    while True:
        if await holds():
            return
        await asyncio.sleep(_LOOK_S)


@dataclass(frozen=True, slots=True)
class Replication:
    """One direction: its settings, and the file that they are from."""

    settings: Settings
    config: Path


class DaemonOf:
    """The daemon of a direction, asked over its status socket; `start` is a command.

    What the command says goes to the file `log`.
    """

    def __init__(self, replication: Replication, start: str, log: Path) -> None:
        self.replication = replication
        self._start = start
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self._seen = False
        self._log_before = 0
        """How long the log was when the command began."""

    async def status(self) -> Status | None:
        """Return its status; None if it does not run. Raises DaemonUnavailableError."""
        socket = self.replication.settings.status.socket
        if socket is None:
            raise NeedsPersonError(
                f"{self.replication.config}: [status] socket is needed: a switch asks the daemon"
            )
        try:
            status = await asyncio.to_thread(fetch_status, socket)
        except DaemonUnavailableError:
            # It ends in this moment: the next answer counts.
            await asyncio.sleep(_LOOK_S)
            status = await asyncio.to_thread(fetch_status, socket)
        return status

    async def stop(self) -> None:
        """Stop it gracefully, and wait until it has ended; nothing to do if it does not run."""
        if await self.status() is None:
            return
        socket = self.replication.settings.status.socket
        if socket is not None:
            # It may stop already.
            with contextlib.suppress(DaemonRefusedError):
                await asyncio.to_thread(post, socket, "/stop")
        await until(self._has_ended)

    async def _has_ended(self) -> bool:
        return await self.status() is None

    async def wake(self) -> None:
        """Let it look whether it may begin. Raises DaemonRefusedError, DaemonUnavailableError."""
        socket = self.replication.settings.status.socket
        if socket is not None:
            await asyncio.to_thread(post, socket, "/wake")

    def start(self) -> None:
        """Run the command that starts it, without waiting. Raises NeedsPersonError."""
        self._seen = False
        config = self.replication.config
        command = self._start.replace(CONFIG, shlex.quote(str(config)))
        words = shlex.split(command.replace(NAME, shlex.quote(config.stem)))
        try:
            with self._log.open("ab") as log:
                self._log_before = log.tell()
                self._process = subprocess.Popen(  # noqa: S603 - who runs the command has named it
                    words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
                )
        except OSError as error:
            raise NeedsPersonError(f"{shlex.join(words)} cannot be run: {error.strerror}") from None

    async def stands_by(self) -> bool:
        """Return whether it stands by. Raises NeedsPersonError if `start` has not led to that."""
        # In this order: what has ended successfully may have started it.
        ended = None if self._process is None else self._process.poll()
        status = await self.status()
        if status is not None and status.state == "standby":
            return True
        if (self._seen and status is None) or ended or (status and status.state == "failed"):
            raise NeedsPersonError(
                f"the daemon does not stand by (mtsd run --standby): {self._last_words()}"
            )
        self._seen = status is not None
        return False

    async def runs_again(self) -> bool:
        """Return whether it replicates, once it was started. Raises as `runs` does."""
        ended = None if self._process is None else self._process.poll()
        if await self.status() is None and not ended and not self._seen:
            return False
        self._seen = True
        return await self.runs()

    async def runs(self) -> bool:
        """Return whether it replicates. Raises NeedsPersonError if it has ended."""
        status = await self.status()
        if status is None or status.state == "failed":
            raise NeedsPersonError(f"the daemon does not start: {self._last_words()}")
        return status.state == "running" and status.lag_seconds is not None

    def _last_words(self) -> str:
        """Return what the command has said since it began, and with what it has ended."""
        said = ""
        if self._log.exists():
            new = self._log.read_bytes()[self._log_before :]
            said = " ".join(new[-_LAST_WORDS:].decode("utf-8", "replace").split())
        status = None if self._process is None else self._process.poll()
        if not status:
            return said or "its log says why"
        ended = f"exit status {status}" if status > 0 else f"signal {-status}"
        return f"{self._start!r} has ended with {ended}, and says {said or 'nothing'}"

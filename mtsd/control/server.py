"""The control socket's server: HTTP over a Unix socket that only its owner may open."""

import asyncio
import fcntl
import os
import socket
import stat
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

from mtsd.control.http import answer_one
from mtsd.control.routes import Route, Routes
from mtsd.model.errors import NeedsPersonError, system_reason

_BACKLOG = 16
_TIMEOUT = 1.0
"""Seconds that an existing server has to accept a connection, and a client to finish."""
_LOCK_TIMEOUT_S = 5.0
_LOCK_PAUSE_S = 0.05


class StatusSocketError(NeedsPersonError):
    """The status socket cannot be created: a daemon answers on it, or its folder forbids it."""


class ControlServer:
    """Answers `routes` on the Unix socket `path`. Raises ValueError if two of them clash."""

    def __init__(self, path: Path, routes: Iterable[Route]) -> None:
        self._path = path
        self._routes = Routes(routes)
        self._server: asyncio.Server | None = None
        self._inode: tuple[int, int] | None = None

    async def start(self) -> None:
        """Create the socket and start answering; a killed daemon's socket is replaced.

        Raises StatusSocketError.
        """
        listener = await _listener(self._path)
        self._inode = _inode(self._path)
        self._server = await asyncio.start_unix_server(
            self._answer, sock=listener, backlog=_BACKLOG
        )

    async def stop(self) -> None:
        """Stop answering and remove the socket; does nothing if it has not been started."""
        if self._inode is not None:
            if _inode(self._path) == self._inode:
                self._path.unlink(missing_ok=True)
            self._inode = None
        if self._server is not None:
            self._server.close()
            self._server = None

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await answer_one(reader, writer, self._routes)


async def _listener(path: Path) -> socket.socket:
    """Return a socket that listens on `path`, and never had a wider mode than 0600."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # Two daemons starting at once would each take the other's for that of a killed one.
        async with _locked(path.with_name(f"{path.name}.lock")):
            _remove_stale(path)
            umask = os.umask(0o177)
            try:
                listener.bind(str(path))
            finally:
                os.umask(umask)
            listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise StatusSocketError(
            f"cannot create the status socket {path}: {system_reason(error)}; its folder has to be"
            " there and writable, or set another [status] socket"
        ) from error
    except BaseException:
        listener.close()
        raise
    return listener


@asynccontextmanager
async def _locked(path: Path) -> AsyncIterator[None]:
    """Hold the lock of a file that only its owner may open, unlike the folder.

    It is not removed afterwards: who waits for it would get that of a file that is gone.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        clock = asyncio.get_running_loop().time
        end = clock() + _LOCK_TIMEOUT_S
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if clock() >= end:
                    raise StatusSocketError(
                        f"another process holds {path} for {_LOCK_TIMEOUT_S:g} s already, which a"
                        " daemon does only for an instant while it starts: look for it (fuser -v"
                        f" {path}), or give this one its own socket ([status] socket)"
                    ) from None
            await asyncio.sleep(_LOCK_PAUSE_S)
        yield
    finally:
        os.close(descriptor)


def _remove_stale(path: Path) -> None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise StatusSocketError(
            f"{path} exists and is not a socket: set another [status] socket, or remove it"
        )
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(_TIMEOUT)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            return
        except (TimeoutError, BlockingIOError):
            pass
    raise StatusSocketError(
        f"a daemon answers on the status socket {path}: stop it, or give this one its own"
        " socket ([status] socket)"
    )


def _inode(path: Path) -> tuple[int, int] | None:
    try:
        status = path.lstat()
    except OSError:
        return None
    return status.st_dev, status.st_ino

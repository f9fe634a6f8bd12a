"""Whether the daemon can create its status socket: it refuses to run without.

If one answers there, what it has counted says whether another policy would serve.
"""

import asyncio
import os
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from mtsd.config import Settings
from mtsd.control.client import DaemonUnavailableError, fetch_status
from mtsd.control.policy_advice import LoadSeen, better_policy
from mtsd.control.status import Status
from mtsd.operations.check.lines.catalogue import Kind
from mtsd.operations.check.lines.line import Line

_TIMEOUT_S = 5.0


async def status_socket_lines(settings: Settings) -> list[Line]:
    """Return what is wrong with the status socket's path, or the policy of the daemon there."""
    path = settings.status.socket
    if path is None:
        return []
    try:
        status = await asyncio.to_thread(fetch_status, path, _TIMEOUT_S)
    except DaemonUnavailableError:
        status = None
    return [*_lines(settings, path, status)]


def _lines(settings: Settings, path: Path, status: Status | None) -> Iterator[Line]:
    """Yield the lines; `status` is that of the daemon that answers there, if one does."""
    if status is not None:
        expected = settings.replica.channel, settings.target.address
        if (status.channel, status.target) != expected:
            yield Kind.STATUS_SOCKET_TAKEN.line(
                path=path, channel=status.channel, target=status.target
            )
        elif started := status.daemon.started:
            seconds = (datetime.now(UTC) - datetime.fromisoformat(started)).total_seconds()
            if found := better_policy(LoadSeen.of(status, seconds)):
                yield Kind.OTHER_POLICY.line(found=found)
        return
    try:
        if not stat.S_ISSOCK(path.lstat().st_mode):
            yield Kind.STATUS_SOCKET_NO_SOCKET.line(path=path)
            return
    except OSError:
        pass
    folder = path.parent
    if not folder.is_dir():
        yield Kind.STATUS_SOCKET_FOLDER.line(path=path, why=f"{folder} is not a folder")
    elif not os.access(folder, os.W_OK | os.X_OK):
        why = f"this user may not write to {folder}"
        yield Kind.STATUS_SOCKET_FOLDER.line(path=path, why=why)

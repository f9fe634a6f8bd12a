"""Locks that keep two daemons, or a daemon and its predecessor's last bundle, apart.

A server goes on with statements whose client has died, and commits them seconds later. So every
session that applies holds a lock by name for its life, and nothing is read of the position before
the locks of all sessions that may have been are held.
"""

import asyncio
import hashlib
from collections.abc import Iterable

import structlog

from mtsd.model.errors import NeedsPersonError, ServerError
from mtsd.wire.connection import Connection

log = structlog.get_logger(__name__)

_LONGEST_NAME = 64
_NO_SUCH_THREAD = 1094
COORDINATOR = 0


class FencedOutError(NeedsPersonError):
    """Another daemon runs on this channel."""


def lock_name(channel: str, session_id: int) -> str:
    """Return the lock of a channel's session: 0 the coordinator, from 1 the workers."""
    lock = f"mtsd:{channel}:{session_id}"
    if len(lock) <= _LONGEST_NAME:
        return lock
    digest = hashlib.sha256(channel.encode()).hexdigest()[:40]
    return f"mtsd:{digest}:{session_id}"


async def take_lock(connection: Connection, lock: str, timeout_s: int = 0) -> bool:
    """Take a lock for the session's life; tell whether it was to be had within the time."""
    rows = await connection.query(b"SELECT GET_LOCK('%b', %d)" % (lock.encode(), timeout_s))
    return rows[0][0] == 1


async def release_lock(connection: Connection, lock: str) -> None:
    """Let go of a lock of this session."""
    await connection.query(b"SELECT RELEASE_LOCK('%b')" % lock.encode())


async def take_channel(connection: Connection, channel: str, *, patience_s: int = 10) -> None:
    """Take the coordinator's lock; raises FencedOutError where another daemon holds it.

    The session of a killed daemon ends as soon as the server notices, so a short wait is due. One
    whose network has failed ends by its wait_timeout: while nothing comes from it, it is waited
    for.
    """
    lock = lock_name(channel, COORDINATOR)
    while not await take_lock(connection, lock, patience_s):
        if not await _is_silent(connection, lock, patience_s):
            raise FencedOutError(
                f"another mtsd runs on channel {channel!r} of this target: stop it, or give this"
                " one a channel of its own ([replica] channel)"
            )
        log.warning("waiting for a session of a former run to end", lock=lock)


async def _is_silent(connection: Connection, lock: str, seconds: int) -> bool:
    """Tell whether the holder of a lock, if there is any, has asked nothing for so long."""
    rows = await connection.query(b"SELECT IS_USED_LOCK('%b')" % lock.encode())
    holder = rows[0][0]
    if holder is None:
        return True
    # Shown are the sessions of the same user, and all to one who has PROCESS.
    for id_, _, _, _, command, idle, *_ in await connection.query(b"SHOW PROCESSLIST"):
        if id_ == holder:
            return command == "Sleep" and int(str(idle)) >= seconds
    return False


async def fence(connection: Connection, channel: str, ids: Iterable[int]) -> None:
    """End what a former daemon's workers still do; their locks are held when this returns.

    Only for the holder of the coordinator's lock: no living daemon has these sessions.
    """
    for session_id in ids:
        lock = lock_name(channel, session_id)
        while not await take_lock(connection, lock):
            rows = await connection.query(b"SELECT IS_USED_LOCK('%b')" % lock.encode())
            holder = rows[0][0]
            if holder is None:
                continue
            try:
                await connection.query(b"KILL %d" % int(holder))
            except ServerError as error:
                if error.number != _NO_SUCH_THREAD:
                    raise
            if await take_lock(connection, lock, 1):
                break
            await asyncio.sleep(0.05)

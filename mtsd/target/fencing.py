"""Locks that keep apart two daemons, or a daemon and its predecessor's last bundle.

A server continues statements whose client has died, and commits them seconds later. So every
session that applies groups holds a named lock as long as it lives, and nothing of the position is
read before the locks of all sessions that may have existed are held.
"""

import asyncio
import hashlib
from collections.abc import Iterable, Mapping

import structlog

from mtsd.binlog.statement_secrets import without_secrets
from mtsd.model.errors import NeedsPersonError, ServerError
from mtsd.model.progress import Progress
from mtsd.target.innodb_monitor import wait_for_ended_sessions
from mtsd.target.signs_of_life import Session, SignsOfLife
from mtsd.target.xa import needs_branch_sessions, prepared_xids
from mtsd.wire.connection import Connection, Row
from mtsd.wire.understood import understood

log = structlog.get_logger(__name__)

_LONGEST_NAME = 64
_LOOK_PERIOD_S = 1
_FIRST_WORD_S = 3.0
_NEXT_WORD_S = 30.0
_WATCHED_WORKERS = 16
"""Their work shows as well as the coordinator's that a daemon is alive; a few are enough."""
_SHOWN = 80
_NO_SUCH_THREAD = 1094
_MAY_NOT_KILL = 1095
CHANNEL = 0
"""The id of the session that holds the channel's lock and stores the low-water mark."""
PRESERVING = -1
"""The id of the lock that this session holds, too, while the source's GTIDs are preserved."""


class FencedOutError(NeedsPersonError):
    """Another daemon is running on this channel."""


def lock_name(channel: str, session_id: int, *, branch: bool = False) -> str:
    """Return the lock of a channel's session: CHANNEL, or a worker's id, starting at 1.

    With `branch`, that of the session in which the worker applies an XA transaction.
    """
    suffix = f"{session_id}:xa" if branch else f"{session_id}"
    lock = f"mtsd:{channel}:{suffix}"
    if len(lock) <= _LONGEST_NAME:
        return lock
    digest = hashlib.sha256(channel.encode()).hexdigest()[:40]
    return f"mtsd:{digest}:{suffix}"


@understood("target")
async def take_lock(connection: Connection, lock: str, timeout_s: int = 0) -> bool:
    """Take a lock for the session's life; return whether it was available in time."""
    rows = await connection.query(b"SELECT GET_LOCK('%b', %d)" % (lock.encode(), timeout_s))
    return rows[0][0] == 1


async def release_lock(connection: Connection, lock: str) -> None:
    """Release a lock of this session."""
    await connection.query(b"SELECT RELEASE_LOCK('%b')" % lock.encode())


@understood("target")
async def take_channel(
    connection: Connection,
    channel: str,
    *,
    patience_s: int = 10,
    progress: Progress | None = None,
) -> None:
    """Take the coordinator's lock; raises FencedOutError if a living daemon holds it.

    The session of a killed daemon ends when the server next waits for its client. Until then
    this function waits: a statement may be stuck behind another client's lock or a full disk,
    and a session whose network has failed ends after its wait_timeout. `patience_s` applies to a
    holder whose session this user may not see: then nothing shows whether it is alive.
    """
    lock = lock_name(channel, CHANNEL)
    clock = asyncio.get_running_loop().time
    life = SignsOfLife()
    waiting = _Waiting(progress, "the channel's session, of a former run or of another daemon,")
    while not await take_lock(connection, lock, _LOOK_PERIOD_S):
        before = clock()
        holders = await _holders(connection, channel)
        sessions = await _sessions(connection)
        watched = [session for id_, session in sessions.items() if id_ in holders]
        life.look(watched, before, clock())
        if life.alive:
            raise FencedOutError(_refusal(channel))
        (coordinator, *_) = holders
        if coordinator is None:
            continue
        holder = sessions.get(coordinator)
        if holder is None and waiting.seconds > patience_s:
            raise FencedOutError(
                f"{_refusal(channel)}. It holds the channel as connection {coordinator}, of a user"
                " whose connections this user may not see"
            )
        waiting.tell(lock, coordinator, holder)


@understood("target")
async def channel_holder(connection: Connection, channel: str) -> str:
    """Return the connection that holds the coordinator's lock, for a message, and its client."""
    (coordinator, *_) = await _holders(connection, channel)
    if coordinator is None:
        return "a connection that has just ended"
    for id_, user, client, *_ in await connection.query(b"SHOW PROCESSLIST"):
        if str(id_) == str(coordinator):
            return f"connection {coordinator} on the target, of {user!s} from {client!s}"
    return f"connection {coordinator} on the target"


@understood("target")
async def fence(
    connection: Connection, channel: str, ids: Iterable[int], progress: Progress | None = None
) -> list[str]:
    """End what a previous daemon's workers are still doing; returns their locks, which it holds.

    Only for the holder of the coordinator's lock: no living daemon has these sessions. It waits
    for a session that cannot be ended, or that takes long to roll back, and until what such a
    session has prepared can be completed.
    """
    kinds = (False, True) if needs_branch_sessions(connection) else (False,)
    locks = [lock_name(channel, id_, branch=branch) for id_ in ids for branch in kinds]
    for lock in locks:
        waiting = _Waiting(progress, "a session of a former run")
        while not await take_lock(connection, lock):
            rows = await connection.query(b"SELECT IS_USED_LOCK('%b')" % lock.encode())
            if rows[0][0] is None:
                continue
            holder = int(str(rows[0][0]))
            try:
                await connection.query(b"KILL %d" % holder)
            except ServerError as error:
                if error.number not in {_NO_SUCH_THREAD, _MAY_NOT_KILL}:
                    raise
            if await take_lock(connection, lock, _LOOK_PERIOD_S):
                break
            waiting.tell(lock, holder, (await _sessions(connection)).get(holder))
    if needs_branch_sessions(connection) and await prepared_xids(connection):
        await wait_for_ended_sessions(connection)
    return locks


def _refusal(channel: str) -> str:
    return (
        f"another mtsd is running on channel {channel!r} of this target: stop it, or give this one"
        " its own channel ([replica] channel)"
    )


async def _holders(connection: Connection, channel: str) -> list[int | None]:
    """Return the connections that hold the locks of the coordinator and of the first workers."""
    locks = (lock_name(channel, id_) for id_ in range(CHANNEL, _WATCHED_WORKERS + 1))
    columns = b",".join(b"IS_USED_LOCK('%b')" % lock.encode() for lock in locks)
    (row,) = await connection.query(b"SELECT " + columns)
    return [None if id_ is None else int(str(id_)) for id_ in row]


async def _sessions(connection: Connection) -> Mapping[int, Session]:
    """Return the sessions of the same user, or everybody's if the user has PROCESS, by id."""
    rows = await connection.query(b"SHOW PROCESSLIST")
    return {session.id: session for session in map(_session, rows)}


def _session(row: Row) -> Session:
    id_, _, _, _, command, seconds, state, statement, *_ = row
    return Session(
        int(str(id_)), str(command), int(str(seconds or 0)), str(state or ""), str(statement or "")
    )


class _Waiting:
    """Says repeatedly what is being waited for: in the log, and immediately in `progress`."""

    def __init__(self, progress: Progress | None, what: str) -> None:
        self._progress = progress
        self._what = what
        self._clock = asyncio.get_running_loop().time
        self._began = self._clock()
        self._next = self._began + _FIRST_WORD_S

    @property
    def seconds(self) -> float:
        return self._clock() - self._began

    def tell(self, lock: str, holder: int, session: Session | None) -> None:
        """Say what the holder of a lock is doing; in the log if it is time to."""
        now = self._clock()
        if self._progress is not None:
            self._progress.doing = (
                f"waits for {self._what} to end, connection {holder} on the target"
                f" ({round(self.seconds)} s by now)"
            )
        if now < self._next:
            return
        self._next = now + _NEXT_WORD_S
        log.warning(
            "waiting for a session on the target to end",
            session=self._what, lock=lock, connection=holder, waited_s=round(self.seconds),
            **_doing(session),
        )  # fmt: skip


def _doing(session: Session | None) -> dict[str, object]:
    if session is None:
        return {}
    since = {"command": session.command, "since_s": session.seconds}
    if session.sleeps:
        return {**since, "reason": "nothing shows whether its client lives"}
    statement = without_secrets(session.statement.encode())[:_SHOWN].decode("utf-8", "ignore")
    return {**since, "reason": session.state, "statement": statement}

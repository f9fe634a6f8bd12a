"""Locks that keep apart two daemons, or a daemon and its predecessor's last bundle.

A server continues statements whose client has died, and commits them seconds later. So every
session that applies groups holds a named lock as long as it lives, and nothing of the position is
read before the locks of all sessions that may have existed are held. `lock_names` says what keeps
strangers from holding them.
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from itertools import product

import structlog

from mtsd.apply.position.lock_holder import holder_text, is_of_own_account, may_kill, sessions
from mtsd.apply.position.lock_names import (
    CHANNEL,
    OVERLAPPING_SESSIONS,
    LockNames,
    SessionOf,
)
from mtsd.apply.position.signs_of_life import Session, SignsOfLife
from mtsd.apply.session.innodb_monitor import wait_for_ended_sessions
from mtsd.apply.session.session import TargetSession
from mtsd.apply.session.xa import needs_branch_sessions, prepared_xids
from mtsd.binlog.sql.statement_secrets import without_secrets
from mtsd.model.error_numbers import ER
from mtsd.model.errors import NeedsPersonError, ServerError
from mtsd.model.progress import Progress
from mtsd.wire.connection import Connection
from mtsd.wire.understood import understood

log = structlog.get_logger(__name__)

_POLL_PERIOD_S = 1
_FIRST_WORD_S = 3.0
_NEXT_WORD_S = 30.0
_WATCHED_WORKERS = 16
"""Their work shows as well as the coordinator's that a daemon is alive; a few are enough."""
_SHOWN = 80


class FencedOutError(NeedsPersonError):
    """Another daemon is running on this channel; `held` says who holds its lock."""

    def __init__(self, channel: str, held: str) -> None:
        super().__init__(
            f"another mtsd is running on channel {channel!r} of this target: stop it, or give this"
            f" one its own channel ([replica] channel); {held}"
        )
        self.held = held


@understood("target")
async def take_lock(connection: Connection, lock: str, timeout_s: int = 0) -> bool:
    """Take a lock for the session's life; return whether it was available in time."""
    rows = await connection.query(b"SELECT GET_LOCK('%b', %d)" % (lock.encode(), timeout_s))
    return rows[0][0] == 1


async def hold_lock(session: TargetSession, lock: str, timeout_s: int = 0) -> bool:
    """Take a lock for as long as a session that applies groups lives; see `take_lock`.

    What returns the session to its own state then leaves the lock alone.
    """
    taken = await take_lock(session.connection, lock, timeout_s)
    if taken:
        session.states.keep_lock(lock)
    return taken


async def release_locks(connection: Connection, locks: Collection[str]) -> None:
    """Release locks of this session."""
    if locks:
        released = b",".join(b"RELEASE_LOCK('%b')" % lock.encode() for lock in locks)
        await connection.query(b"SELECT " + released)


@understood("target")
async def take_channel(
    connection: Connection,
    locks: LockNames,
    *,
    timeout_s: int = 10,
    progress: Progress | None = None,
) -> None:
    """Take the coordinator's lock; raises FencedOutError if a living daemon holds it.

    The session of a killed daemon ends when the server next waits for its client. Until then
    this function waits: a statement may be stuck behind another client's lock or a full disk,
    and a session whose network has failed ends after its wait_timeout. `timeout_s` applies to a
    holder whose session this user may not see: then nothing shows whether it is alive.
    """
    lock = locks.session(CHANNEL)
    clock = asyncio.get_running_loop().time
    life = SignsOfLife()
    waiting = _Waiting(progress, "the channel's session, of a former run or of another daemon,")
    while not await take_lock(connection, lock, _POLL_PERIOD_S):
        before = clock()
        holders = await _holders(connection, locks)
        seen = await sessions(connection)
        watched = [session for id_, session in seen.items() if id_ in holders]
        life.observe(watched, before, clock())
        (coordinator, *_) = holders
        if coordinator is None:
            if life.alive:
                raise FencedOutError(locks.channel, "its workers are at work")
            continue
        holder = seen.get(coordinator)
        if life.alive or (holder is None and waiting.seconds > timeout_s):
            own = is_of_own_account(seen, connection.thread_id, coordinator)
            raise FencedOutError(locks.channel, holder_text(coordinator, holder, own=own))
        waiting.report("the coordinator", connection.thread_id, coordinator, seen)


@understood("target")
async def fence(
    connection: Connection, locks: LockNames, ids: Iterable[int], progress: Progress | None = None
) -> list[str]:
    """End what a previous daemon's workers are still doing; returns their locks, which it holds.

    Only for the holder of the coordinator's lock: no living daemon has these sessions. It waits
    for a session that cannot be ended, or that takes long to roll back, and until what such a
    session has prepared can be completed.
    """
    kinds = [SessionOf.WORKER, *OVERLAPPING_SESSIONS]
    if needs_branch_sessions(connection):
        kinds.append(SessionOf.BRANCH)
    names = {locks.session(id_, kind): id_ for id_, kind in product(ids, kinds)}
    free = await _take_free(connection, names)
    for lock, id_ in names.items():
        waiting = _Waiting(progress, "a session of a former run")
        # It is mostly about to end by itself. To be killed, it would leave what cannot be rolled
        # back half done.
        if lock not in free and await take_lock(connection, lock, _POLL_PERIOD_S):
            continue
        while lock not in free and not await take_lock(connection, lock):
            rows = await connection.query(b"SELECT IS_USED_LOCK('%b')" % lock.encode())
            if rows[0][0] is None:
                continue
            holder = int(str(rows[0][0]))
            # With CONNECTION_ADMIN it could be anybody's.
            if await may_kill(connection, holder):
                await _kill(connection, holder)
            if await take_lock(connection, lock, _POLL_PERIOD_S):
                break
            seen = await sessions(connection)
            waiting.report(f"worker {id_}", connection.thread_id, holder, seen)
    if needs_branch_sessions(connection) and await prepared_xids(connection):
        await wait_for_ended_sessions(connection)
    return list(names)


async def _take_free(connection: Connection, locks: Collection[str]) -> frozenset[str]:
    """Take those of the locks that nobody holds, nearly always all of them; return them."""
    if not locks:
        return frozenset()
    asked = b",".join(b"GET_LOCK('%b', 0)" % lock.encode() for lock in locks)
    (row,) = await connection.query(b"SELECT " + asked)
    return frozenset(lock for lock, taken in zip(locks, row, strict=True) if taken == 1)


async def _kill(connection: Connection, holder: int) -> None:
    try:
        await connection.query(b"KILL %d" % holder)
    except ServerError as error:
        if error.number not in {ER.NO_SUCH_THREAD, ER.KILL_DENIED_ERROR}:
            raise


async def _holders(connection: Connection, locks: LockNames) -> list[int | None]:
    """Return the connections that hold the locks of the coordinator and of the first workers."""
    names = [locks.session(id_) for id_ in range(CHANNEL, _WATCHED_WORKERS + 1)]
    columns = b",".join(b"IS_USED_LOCK('%b')" % lock.encode() for lock in names)
    (row,) = await connection.query(b"SELECT " + columns)
    return [None if id_ is None else int(str(id_)) for id_ in row]


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

    def report(self, of: str, own_id: int, holder: int, seen: Mapping[int, Session]) -> None:
        """Say what the holder of the lock of a session is doing; in the log if it is time to."""
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
            session=self._what, lock_of=of, connection=holder, waited_s=round(self.seconds),
            **_doing(own_id, holder, seen),
        )  # fmt: skip


def _doing(own_id: int, holder: int, seen: Mapping[int, Session]) -> dict[str, object]:
    session = seen.get(holder)
    if session is None or not is_of_own_account(seen, own_id, holder):
        return {"reason": holder_text(holder, session, own=False)}
    since = {"command": session.command, "since_s": session.seconds}
    if session.sleeps:
        return {**since, "reason": "its client is silent"}
    statement = without_secrets(session.statement.encode())[:_SHOWN].decode("utf-8", "ignore")
    return {**since, "reason": session.state, "statement": statement}

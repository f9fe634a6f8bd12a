"""Sessions of their own for XA transactions, where a session keeps what it has prepared.

Measured on MariaDB 10.11 and 11.8: after XA PREPARE a session begins nothing else before it has
completed that transaction, and any other session gets XAER_NOTA for it until the first has ended.
So each branch has a session, which ends after XA PREPARE; the worker's own, with its temporary
tables, remains. Its lock tells when the server has noticed the end, and InnoDB's monitor when the
transaction is detached. A restart takes these locks, too, before it looks for what is prepared.
"""

from dataclasses import replace

from mtsd.apply.position.fencing import hold_lock, release_locks, take_lock
from mtsd.apply.session.innodb_monitor import MONITOR, wait_for_session
from mtsd.apply.session.session import TargetSession
from mtsd.apply.session.session_settings import SessionSettings
from mtsd.model.errors import ConnectionLostError, ServerError
from mtsd.model.fault_points import FaultHook, nothing
from mtsd.wire.connection import Connection
from mtsd.wire.endpoint import CurrentEndpoint
from mtsd.wire.failure import BUSY

TIMEOUT_S = 60
"""How long to wait for the server to notice that a session has ended."""


class BranchSessions:
    """Opens and ends the sessions for one worker's branches, one after another.

    `lock` is the one that each of them holds; `found_rows` is that of `Endpoint`.
    """

    def __init__(
        self,
        current: CurrentEndpoint,
        settings: SessionSettings,
        lock: str,
        *,
        found_rows: bool = False,
        reached: FaultHook = nothing,
    ) -> None:
        self._found_rows = found_rows
        self._current = current
        self._settings = settings
        self._lock = lock
        self._reached = reached
        self._may_look = False
        """Whether the user may see InnoDB's monitor."""

    async def open(self) -> TargetSession:
        """Return a session for the next branch. Raises ServerError, ConnectionLostError."""
        try:
            session = await TargetSession.open(
                replace(self._current.endpoint, found_rows=self._found_rows),
                self._settings,
                reached=self._reached,
            )
        except ServerError as error:
            if error.number not in BUSY:
                raise
            # The replica waits, and connects again.
            raise ConnectionLostError("target", str(error)) from error
        try:
            if not self._may_look:
                # Before anything is prepared that could not be let go.
                await session.connection.query(MONITOR)
                self._may_look = True
            if not await hold_lock(session, self._lock):
                raise ConnectionLostError("target", f"somebody else holds the lock {self._lock}")
        except BaseException:
            session.connection.close()
            raise
        return session

    async def end(self, session: TargetSession, own: Connection) -> None:
        """End a session, and return once the server has, as the worker's `own` connection sees.

        Raises ServerError, ConnectionLostError, also if that takes too long.
        """
        await session.connection.quit()
        thread = session.connection.thread_id
        ended = await take_lock(own, self._lock, TIMEOUT_S)
        if not ended or not await wait_for_session(own, thread, TIMEOUT_S):
            raise ConnectionLostError(
                "target",
                f"its connection {thread}, which has prepared an XA transaction, has not ended"
                f" within {TIMEOUT_S} s",
            )
        await release_locks(own, [self._lock])

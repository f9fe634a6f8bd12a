"""Where the branches of a split transaction meet: one waits for a lock that another one holds.

Rows that have no key in common may still share a gap of a unique index, in which a REPLACE deletes
and inserts. The holder lets go only once all branches are prepared, so the wait has no end. It is
ended at once, rather than by its timeout, and the table is not split again.

A target without performance_schema does not say which table that is, and neither does a deadlock.
Then it counts for all tables whose rows the transaction has divided.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final

import structlog

from mtsd.apply.appliers.applier import Applier
from mtsd.apply.session.lock_waits import Meeting, in_lock_waits, meeting_among
from mtsd.apply.tables.key_definitions import TableName
from mtsd.model.errors import MtsdError
from mtsd.wire.connection import Connection

_FIRST_LOOK_S: Final = 0.05
"""How long a branch waits for an answer before anybody asks why."""
_LONGEST_PAUSE_S: Final = 0.4

log = structlog.get_logger(__name__)


class Meetings:
    """The `tables` in which branches have met, as long as the process lives.

    `connect` opens a connection to the target, to look on: all others may be waiting.
    """

    def __init__(
        self, tables: set[TableName], connect: Callable[[], Awaitable[Connection]]
    ) -> None:
        self.tables = tables
        self.connect = connect

    def note(self, tables: Iterable[TableName]) -> None:
        """Let rows of these tables not be split again."""
        new = sorted(set(tables) - self.tables)
        if not new:
            return
        self.tables.update(new)
        log.warning(
            "branches of a split transaction wait for each other: its rows in these tables are not"
            " split again before the next start of mtsd",
            tables=[".".join(name) for name in new],
        )


class MeetingWatch:
    """Looks on while the `appliers` apply the branches of one transaction."""

    def __init__(self, meetings: Meetings, appliers: Sequence[Applier]) -> None:
        self._meetings = meetings
        self._appliers = appliers
        self._has_failed = False
        self.has_met = False
        """Whether it has seen a branch wait for another one."""
        self._task = asyncio.create_task(self._run())

    def failed(self) -> None:
        """Note that a branch has failed: no other one has to wait for a lock any more."""
        self._has_failed = True

    async def end(self) -> None:
        """Look no more."""
        self._task.cancel()
        # Without it, the branches' waits end by themselves.
        with contextlib.suppress(asyncio.CancelledError, MtsdError, OSError):
            await self._task

    async def _run(self) -> None:
        clock = asyncio.get_running_loop().time
        connection: Connection | None = None
        pause = _FIRST_LOOK_S
        try:
            while True:
                await asyncio.sleep(pause)
                before = clock() - _FIRST_LOOK_S
                awaited = (each.session.connection.awaited for each in self._appliers)
                if not any(each is not None and each.since <= before for each in awaited):
                    pause = _FIRST_LOOK_S
                    continue
                pause = min(2 * pause, _LONGEST_PAUSE_S)
                connection = connection or await self._meetings.connect()
                if await self._interrupt(connection):
                    pause = _FIRST_LOOK_S
        finally:
            if connection is not None:
                connection.close()

    async def _interrupt(self, connection: Connection) -> bool:
        """Interrupt the branches that wait in vain; return whether there are any.

        Only what waits for a lock: between two statements, an interruption goes unanswered.
        """
        sessions = frozenset(each.session.connection.thread_id for each in self._appliers)
        met: Meeting | None = None
        if not self._has_failed:
            met = await meeting_among(connection, sessions)
            if met is None:
                return False
            self.has_met = True
            if met.table:
                self._meetings.note([(met.database, met.table)])
        waiting = await in_lock_waits(connection, sessions) if met is None else {met.waiting}
        for session in waiting:
            await connection.query(b"KILL QUERY %d" % session)
        return True

"""What a worker records beside its transactions, and how what it has done shows on the target."""

import asyncio
from collections.abc import Sequence
from typing import Final

from mtsd.apply.position.in_doubt_table import InDoubt
from mtsd.apply.position.position_schema import lost_table
from mtsd.apply.position.position_tables import PositionTables
from mtsd.apply.session.retry import insist
from mtsd.apply.session.session import TargetSession
from mtsd.model.errors import ServerError
from mtsd.schedule.done.worker_row import WorkerRow
from mtsd.wire.binlog_status import has_executed, have_executed, highest_executed

_FILE_KEPT_S: Final = 60.0
"""For how long the end of the target's binlog is kept if only its file counts: one that old is
hardly purged."""
_PLACE_KEPT_S: Final = 2.0
"""Or if a restart reads the binlog from there on, and so has to read what came since."""


class WorkerRecords:
    """The records of a worker's groups in doubt, and their evidence, on the worker's session.

    Each change commits by itself, and none may be open. Methods raise ServerError, after a
    ROLLBACK, and ConnectionLostError if it is unknown what has become of the change.
    """

    def __init__(self, session: TargetSession, tables: PositionTables) -> None:
        self._session = session
        self._connection = session.connection
        self._tables = tables
        self._used_up_to: int | None = None
        """See `has_used`; None before the first question."""
        self._log_position: tuple[str, int] | None = None
        self._asked_log = 0.0
        """When, on the loop's clock."""

    async def note(
        self,
        doubt: InDoubt,
        *,
        anew: bool = False,
        settled: tuple[WorkerRow, int] | None = None,
        then: Sequence[bytes] = (),
    ) -> None:
        """Record that a group is in doubt; `anew`: replacing the existing record.

        `settled`: and that an earlier one of that number is applied, by the worker's row. `then` is
        as for `TargetSession.record`.
        """
        doubts = self._tables.doubts
        earlier = self._tables.settled(*settled) if settled is not None else []
        noted = doubts.replace(doubt) if anew else [doubts.insert(doubt)]
        await self._session.record([*earlier, *noted], then)

    async def note_all(self, doubts: Sequence[InDoubt]) -> None:
        """Record that groups are in doubt, all of them at once."""
        await self._session.record([self._tables.doubts.insert(doubt) for doubt in doubts])

    async def forget(self, *numbers: int) -> None:
        """Remove the records of in-doubt groups that have had no effect, or are settled."""
        await self._session.record([self._tables.doubts.delete(*numbers)])

    async def settle(self, row: WorkerRow, number: int) -> None:
        """Record that an in-doubt group is applied."""
        await self._session.record(self._tables.settled(row, number))

    def are_lost(self, error: ServerError) -> bool:
        """Return whether an error says that the position is gone from the target."""
        return lost_table(self._tables.schema, error) is not None

    async def has_row(self, worker: int) -> bool:
        """Return whether the worker of that Id has a row, whatever it contains."""
        return bool(await self._connection.query(self._tables.workers.select_token(worker)))

    async def has_executed(self, gtid: str) -> bool:
        """Return whether the target has executed a GTID."""
        return await insist(self._connection, lambda: has_executed(self._connection, gtid))

    async def have_executed(self, gtids: Sequence[str]) -> tuple[bool, ...]:
        """Return of each GTID whether the target has executed it."""
        return await have_executed(self._connection, gtids)

    async def has_used(self, uuid: str, number: int) -> bool:
        """Return whether the target has executed a GTID of the daemon's UUID, as `has_executed`.

        Only for groups whose GTIDs nobody else uses, so not for XA transactions: what is above all
        that the target had at the first question, and above what was asked since, it has not; so it
        is not asked.
        """
        if self._used_up_to is None:
            self._used_up_to = await insist(
                self._connection, lambda: highest_executed(self._connection, uuid)
            )
        if number > self._used_up_to:
            self._used_up_to = number
            return False
        return await self.has_executed(f"{uuid}:{number}")

    async def log_position(self, *, is_read: bool) -> tuple[str, int]:
        """Return where the target's own binlog ends, if it contains all that the session does.

        ("", 0) if it does not, or if the user may not query it. It may have ended there some time
        ago, in the same run of the target: a restart would have ended the session. `is_read`:
        evidence is looked for from there on; else only its file counts.
        """
        now = asyncio.get_running_loop().time()
        kept = _PLACE_KEPT_S if is_read else _FILE_KEPT_S
        if self._log_position is None or now - self._asked_log > kept:
            self._log_position = await self._session.log_position()
            self._asked_log = now
        return self._log_position

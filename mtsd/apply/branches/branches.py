"""Branches of XA transactions on a session of the target: begun, prepared, completed, recorded.

Measured on MySQL 9.7 with gtid_next set: XA PREPARE and XA COMMIT use their GTID up; a branch that
is rolled back before XA PREPARE, and an XA COMMIT of an unknown xid, do not. An XA PREPARE that
fails has rolled its branch back. A change to a non-transactional table uses up the GTID at once,
and then the session can neither continue nor end the branch: it has to be closed.

On a MariaDB, a branch needs a session of its own (`mtsd.apply.branches.branch_sessions`).

With sql_log_bin = 0, a server that writes a binary log rolls back what is prepared when it
recovers from a crash, because its log does not have it.
"""

import asyncio
from collections.abc import Collection, Sequence
from typing import Final

from mtsd.apply.branches.others_prepared import others_prepared
from mtsd.apply.position.position_tables import PositionTables
from mtsd.apply.position.prepared_table import PreparedRow
from mtsd.apply.session.family import TARGETS
from mtsd.apply.session.innodb_monitor import wait_for_ended_sessions
from mtsd.apply.session.retry import insist
from mtsd.apply.session.session import TargetSession, next_gtid
from mtsd.apply.session.statement_states import FOREVER
from mtsd.apply.session.xa import ROLLED_BACK, UNKNOWN_XID, prepared_xids, statement, unusable
from mtsd.model.errors import ServerError
from mtsd.model.fault_points import FaultHook, FaultPoint
from mtsd.model.outcome.reason import Reason, Refused, refuse
from mtsd.model.xa_xid import XaXid
from mtsd.schedule.done.worker_row import WorkerRow
from mtsd.wire.binlog_status import has_executed
from mtsd.wire.traits import ServerTraits
from mtsd.wire.understood import understood

UNLOGGED = Reason(
    "XA transactions cannot be applied: the target writes a binary log, and [target] binary_log ="
    " false keeps what mtsd applies out of it: in a crash, the target would roll back what is"
    " prepared",
    "set [target] binary_log = true, or start the target with skip_log_bin",
)
ATTACHED = Reason(
    "XA transactions cannot be applied: the target is version {version}, where a prepared"
    " transaction keeps its session",
    "upgrade it: MySQL 8.0.29 or later is needed for XA transactions",
)


def why_not(traits: ServerTraits, *, logged: bool) -> Refused | None:
    """Return why XA transactions cannot be applied to a target; None if they can.

    `logged` is whether the sessions' changes are written to its binary log.
    """
    if traits.log_bin and not logged:
        return refuse(UNLOGGED)
    if traits.server.number < TARGETS[traits.server.flavour].detaches_since:
        return refuse(ATTACHED, version=".".join(map(str, traits.version)))
    return None


FORMAT_TOO_LARGE = Reason(
    "the xid {xid} has a format id that a MariaDB does not accept: the largest is {largest}",
    "let the source's applications use a smaller one",
)
NO_GLOBAL_PART = Reason(
    "the xid {xid} has an empty global part (gtrid), which a MariaDB does not accept",
    "let the source's applications use another one",
)
_POLL_PERIOD_S: Final = 0.05
_DETACHED_WITHIN_S: Final = 10.0
"""How long a MariaDB may need to notice that the session of a transaction has ended."""


class Branches:
    """Begins, prepares and completes XA transactions on one session.

    A branch that was begun is open until `end` returns, or until the session rolls back. Unless
    stated otherwise, methods raise ServerError, and ConnectionLostError if it is unknown what has
    become of the transaction.
    """

    def __init__(self, session: TargetSession, tables: PositionTables, reached: FaultHook) -> None:
        self._session = session
        self._connection = session.connection
        self._tables = tables
        self._reached = reached

    @property
    def why_not(self) -> Refused | None:
        """Why XA transactions cannot be applied here; None if they can."""
        return why_not(self._session.traits, logged=self._session.is_logged)

    def why_not_named(self, xid: XaXid) -> Refused | None:
        """Return why a transaction cannot have that xid here; None if it can."""
        largest = self._session.family.largest_xid_format
        if xid.format_id > largest:
            return refuse(FORMAT_TOO_LARGE, xid=xid, largest=largest)
        if not xid.gtrid and not self._session.family.empty_gtrid:
            return refuse(NO_GLOBAL_PART, xid=xid)
        return None

    @property
    def may_wait_briefly(self) -> bool:
        """Whether the target says of every wait for a lock that was too long.

        It does not if its cascades lose errors: see `TargetSession`.
        """
        return self._session.lock_wait_s != FOREVER

    async def begin(
        self, xid: XaXid, gtid: str, *, statements: bool, briefly: bool = False
    ) -> None:
        """Begin a branch, under a GTID or automatic ones (""); after an error, none is open.

        With `statements`, under REPEATABLE READ, as all statements of the source; a source that
        logs them locks no less. Rows need no locks of gaps, which would stay until the completion.
        With `briefly`, which requires `may_wait_briefly`, the session waits for no lock of a row or
        a table longer than a second, until `settle_run`.
        """
        parts = [b"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"] if statements else []
        if briefly:
            parts.append(self._session.lock_waits(1))
        parts += [*self._next_gtid(gtid), statement(b"START", xid)]
        try:
            await self._connection.run(b";".join(parts), len(parts))
        except ServerError:
            await self._session.set_gtid("")
            raise
        self._session.branch = xid
        if statements:
            await self._session.guard()

    async def end(self, xid: XaXid, gtid: str, *, one_phase: bool = False) -> None:
        """Prepare the open branch, or commit it in one phase; after an error, undo is required."""
        await self._session.unguard()
        last = (
            statement(b"COMMIT", xid) + b" ONE PHASE" if one_phase else statement(b"PREPARE", xid)
        )
        parts = [statement(b"END", xid), last, *self._next_gtid("")]
        await self._reached(FaultPoint.BEFORE_STATEMENT)
        self._connection.send(b";".join(parts))
        await self._reached(FaultPoint.STATEMENT_SENT)
        await self._connection.receive(1, more=True)
        try:
            await self._connection.receive(len(parts) - 1)
        except ServerError:
            # Whether the branch is still there, the server does not say.
            self._session.branch = None
            await self._return_to_automatic()
            if not await self._has_happened(xid, gtid, completed=one_phase):
                self._session.branch = xid
                raise
        self._session.branch = None
        await self._reached(FaultPoint.AFTER_STATEMENT)

    async def complete(self, xid: XaXid, gtid: str, *, commits: bool) -> None:
        """Commit or roll back what is prepared; after an error, nothing has changed."""
        verb = b"COMMIT" if commits else b"ROLLBACK"
        parts = [*self._next_gtid(gtid), statement(verb, xid), *self._next_gtid("")]
        clock = asyncio.get_running_loop().time
        deadline = clock() + _DETACHED_WITHIN_S
        while True:
            await self._reached(FaultPoint.BEFORE_STATEMENT)
            self._connection.send(b";".join(parts))
            await self._reached(FaultPoint.STATEMENT_SENT)
            try:
                await self._connection.receive(len(parts))
            except ServerError as error:
                await self._return_to_automatic()
                if clock() < deadline and await self._is_attached(error, xid):
                    await asyncio.sleep(_POLL_PERIOD_S)
                    await wait_for_ended_sessions(self._connection)
                    continue
                if not await self._is_completed(error, xid, gtid, commits=commits):
                    raise
            break
        await self._reached(FaultPoint.AFTER_STATEMENT)

    async def wait_for_locks(self, seconds: int | None) -> None:
        """Let rows and tables wait for a lock at most so long; None: as long as is usual."""
        await self._session.limit_lock_waits(seconds)

    async def mark_split(self, number: int, branch: int) -> None:
        """Let the open branch, one of a split transaction, show that it is committed, once it is.

        After an error, undo is required.
        """
        await self._connection.run(self._tables.split.insert_branch(number, branch), 1)

    async def settle_split(self, row: WorkerRow, number: int) -> None:
        """Record that all branches of a split transaction are committed."""
        settled = self._tables.settled(row, number)
        await self._session.record([*settled, self._tables.split.delete_group(number)])

    async def is_prepared(self, xid: XaXid) -> bool:
        """Return whether the target has prepared a transaction."""
        return xid in await self.prepared()

    async def prepared(self) -> frozenset[XaXid]:
        """Return all transactions that the target has prepared, whoever did it."""
        return await insist(self._connection, lambda: prepared_xids(self._connection))

    @understood("target")
    async def records_of(self, xids: Collection[XaXid]) -> dict[XaXid, PreparedRow]:
        """Return the records of those of the transactions that this channel has prepared."""
        table = self._tables.prepared
        records = map(table.row, await self._connection.query(table.select_of(xids)))
        return {row.xid: row for row in records}

    async def channel_with(self, xid: XaXid) -> str | None:
        """Return the other channel that has a transaction with that xid, or None."""
        others = await others_prepared(self._connection, self._tables)
        return others.prepared.get(xid, others.in_doubt.get(xid))

    async def settle_prepared(self, row: WorkerRow, prepared: PreparedRow) -> None:
        """Record that a transaction is prepared, with its group."""
        settled = self._tables.settled(row, prepared.number)
        await self._session.record([*settled, self._tables.prepared.replace_prepared(prepared)])

    async def note_skipped(self, prepared: PreparedRow) -> None:
        """Record a transaction whose prepare is passed over; its group is on record as executed.

        A later one of the same xid may be, too: then the record is that one's.
        """
        record = (await self.records_of([prepared.xid])).get(prepared.xid)
        if record is not None and record.number > prepared.number:
            return
        await self._session.record([self._tables.prepared.replace_prepared(prepared)])

    async def settle_completed(self, row: WorkerRow, number: int, xid: XaXid) -> None:
        """Record that a transaction is completed, by the group of that number."""
        settled = self._tables.settled(row, number)
        await self._session.record([*settled, self._tables.prepared.delete_completed(xid)])

    async def settle_run(
        self,
        row: WorkerRow | None,
        numbers: Sequence[int],
        prepared: Sequence[PreparedRow],
        completed: Sequence[XaXid],
    ) -> None:
        """Record a run of groups of different xids, and end what `begin` does `briefly`.

        `row` is None if none of them has been applied; of `numbers`, no group is in doubt any more.
        """
        tables = self._tables
        await self._session.record(
            [
                *([] if row is None else tables.advanced(row)),
                *(tables.doubts.delete(number) for number in numbers),
                *(tables.prepared.replace_prepared(each) for each in prepared),
                *(tables.prepared.delete_completed(xid) for xid in completed),
                self._session.lock_waits(None),
            ]
        )

    async def _is_attached(self, error: ServerError, xid: XaXid) -> bool:
        """Return whether a transaction is unknown because another session still has it."""
        return (
            error.number == UNKNOWN_XID
            and self._session.family.attaches_prepared
            and await self.is_prepared(xid)
        )

    async def _is_completed(
        self, error: ServerError, xid: XaXid, gtid: str, *, commits: bool
    ) -> bool:
        if error.number == UNKNOWN_XID:
            return False
        if error.number in ROLLED_BACK:
            return not commits and not await self.is_prepared(xid)
        return await self._has_happened(xid, gtid, completed=True)

    async def _has_happened(self, xid: XaXid, gtid: str, *, completed: bool) -> bool:
        if gtid:
            return await insist(self._connection, lambda: has_executed(self._connection, gtid))
        return completed is not await self.is_prepared(xid)

    def _next_gtid(self, gtid: str) -> list[bytes]:
        return [next_gtid(gtid)] if self._session.has_gtids else []

    async def _return_to_automatic(self) -> None:
        try:
            await self._session.set_gtid("")
        except ServerError as error:
            raise unusable(self._connection, error) from error

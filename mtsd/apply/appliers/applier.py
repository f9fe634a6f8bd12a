"""What the replica needs from an applier, which applies groups on one session of the target.

An applier is one file behind this interface. Only the applier knows how rows become statements, how
the position is written together with them, and what a session of its target is like.
"""

from collections.abc import Collection, Sequence
from typing import Protocol

from mtsd.apply.branches.branches import Branches
from mtsd.apply.position.position_tables import InDoubt
from mtsd.apply.rows.bundle import Bundle
from mtsd.apply.tables.table_layout import TargetTable
from mtsd.model.errors import MtsdError, ServerError
from mtsd.model.group import Group
from mtsd.model.gtid import Gtid
from mtsd.model.step import Step
from mtsd.model.temporary_tables import TemporaryUse
from mtsd.model.xa_xid import XaXid
from mtsd.schedule.batches.in_flight import Due, Packet
from mtsd.schedule.done.worker_row import WorkerRow
from mtsd.wire.exchange import Awaited


class Applier(Protocol):
    """Applies groups, each transaction together with the row of its worker.

    Unless stated otherwise, a method raises ServerError after a ROLLBACK if the server returns an
    error; its `leaves_changes` says whether some changes could not be rolled back. It raises
    ConnectionLostError if it is unknown what has become of the transaction.
    """

    @property
    def preserves(self) -> bool:
        """Whether each group commits under its own GTID, which it must have."""
        ...

    @property
    def has_gtids(self) -> bool:
        """Whether the target has GTIDs."""
        ...

    @property
    def is_logged(self) -> bool:
        """Whether the session's changes are written to the target's own binlog."""
        ...

    @property
    def creates_and_fills(self) -> bool:
        """Whether the target can create a table and fill it in one transaction."""
        ...

    @property
    def connection_id(self) -> int:
        """The target's id of the session."""
        ...

    @property
    def is_sending(self) -> bool:
        """Whether the target has not yet acknowledged everything that was sent to it."""
        ...

    @property
    def awaited(self) -> Awaited | None:
        """What the target has not answered yet; None where nothing is waited for."""
        ...

    @property
    def closed(self) -> bool:
        """Whether this side of the session is closed."""
        ...

    def close(self) -> None:
        """Close the session immediately; whoever waits for it is woken."""
        ...

    # Groups of rows

    def bundle(self, packet: Packet, *, held: bool = False) -> Bundle | None:
        """Return what to send for a packet of groups of rows; `held`: for `hold`.

        None if it has several transactions and not each of them can be a single statement.
        """
        ...

    def are_safe(self, table_maps: Collection[bytes]) -> bool:
        """Return whether all these tables are known to be transactional on the target."""
        ...

    async def without_transactions(
        self, table_maps: Collection[bytes], steps: Sequence[Step] = ()
    ) -> tuple[str, ...]:
        """Return the tables that are non-transactional on the target, by name.

        Their rows are in these steps, or in the last bundle. Nothing may be in flight.
        """
        ...

    async def may_change_without_transactions(
        self, steps: Sequence[Step], definitions: int
    ) -> bool:
        """Return whether statements may change a non-transactional table of the target.

        `definitions` is another number once a definition has been applied. Nothing may be in
        flight.
        """
        ...

    async def send(self, bundle: Bundle, *, follows: bool) -> int:
        """Send a bundle; `follows`: after one that is in flight.

        Returns how many statements the answer to each of its transactions covers. If this
        fails, `undo` is required.
        """
        ...

    async def hold(self, bundle: Bundle) -> None:
        """Apply a bundle of a single transaction, and leave that open.

        If this fails, `undo` is required.
        """
        ...

    async def send_commit(self, bundle: Bundle) -> int:
        """Send what commits a bundle that is held; see `send`."""
        ...

    async def sessions_waiting(self) -> frozenset[int] | None:
        """Return the ids of the target's sessions that wait for a lock of the open transaction.

        None if the user may not read the server's lock tables.
        """
        ...

    async def answer(self, due: Due) -> None:
        """Await the next answer: the transaction has committed. On an error, `undo` is required."""
        ...

    async def undo(self, error: MtsdError, behind: int) -> None:
        """Leave nothing open after an error; `behind` packets were in flight after it."""
        ...

    async def explain(self, error: ServerError, rows: Sequence[bytes]) -> ServerError:
        """Return what an error of a group with these row events means, after `undo`.

        A server's error may be uninformative; the one returned then names the column.
        """
        ...

    async def read_table(self, database: str, table: str) -> TargetTable:
        """Return what the target knows about a table."""
        ...

    async def has_row(self, worker: int) -> bool:
        """Return whether the worker of that Id has a row, whatever it contains."""
        ...

    # Transactions of statements, and streamed ones

    async def apply_in_order(self, group: Group, row: WorkerRow, *, in_doubt: bool = False) -> None:
        """Apply a transaction's steps in their order, and commit it, or roll it back like it.

        With `in_doubt`, its commit removes its record.
        """
        ...

    async def apply_plain(self, groups: Sequence[Group], row: WorkerRow, definitions: int) -> bool:
        """Apply transactions of statements as one, each one that `is_of_statements`.

        Returns whether that was done: if not, nothing of them remains, and they have to be applied
        one by one. On an error nothing
        remains either, unless it `leaves_changes`. `definitions` is as for
        `may_change_without_transactions`.
        """
        ...

    async def begin(
        self,
        format_description: bytes,
        gtid: Gtid | None,
        *,
        timestamp_defaults: bool | None = None,
    ) -> None:
        """Begin a transaction whose steps arrive chunk by chunk.

        `timestamp_defaults` is the explicit_defaults_for_timestamp of its statements, if known.
        """
        ...

    async def apply_steps(self, steps: Sequence[Step]) -> None:
        """Apply steps inside the open transaction; after an error, `undo` is required."""
        ...

    async def commit(self, row: WorkerRow) -> None:
        """Commit the open transaction."""
        ...

    async def commit_part(self) -> None:
        """Commit the open transaction, without any record of it."""
        ...

    async def commit_in_doubt(self, doubt: InDoubt) -> None:
        """Commit the open part of a streamed group, with the record that it is only a part."""
        ...

    async def rollback(self) -> None:
        """Roll back the open transaction, or the open branch."""
        ...

    # XA transactions

    @property
    def branches(self) -> Branches:
        """Completes XA transactions on the worker's session, and records them."""
        ...

    async def begin_branch(
        self,
        format_description: bytes,
        xid: XaXid,
        gtid: str,
        *,
        statements: bool,
        steps: Sequence[Step] = (),
        briefly: bool = False,
    ) -> None:
        """Begin the branch of an XA transaction, for `apply_steps`; see `Branches.begin`."""
        ...

    async def end_branch(self, xid: XaXid, gtid: str, *, one_phase: bool = False) -> None:
        """Prepare the open branch, or commit it in one phase; see `Branches.end`."""
        ...

    @property
    def may_find_nothing(self) -> bool:
        """Whether rows that are missing, or there already, are no error; `branch_rows` has them."""
        ...

    @property
    def branch_rows(self) -> int:
        """How many rows the statements of the last branch have changed."""
        ...

    @property
    def has_branch_sessions(self) -> bool:
        """Whether a branch has a session of its own, without the worker's temporary tables."""
        ...

    # Temporary tables of the source's sessions

    async def use_temporary(self, use: TemporaryUse) -> None:
        """Get ready for a group that uses temporary tables, perhaps again after an error."""
        ...

    def used_temporary(self, use: TemporaryUse) -> None:
        """Note that the group has been applied."""
        ...

    async def end_thread(self, thread_id: int) -> None:
        """Drop what the session has of a thread that has ended without dropping it.

        The next thread with that id would find it, also by statements that use no temporary table.
        """
        ...

    @property
    def can_repeat(self) -> bool:
        """Whether a group that uses them, and has failed, can be applied again on the session.

        It cannot after it has dropped or altered some that it had found: no ROLLBACK undoes that.
        """
        ...

    async def apply_temporary(self, group: Group, row: WorkerRow) -> None:
        """Apply a group that changes nothing but temporary tables, and record it.

        If the session ends in between, the tables are gone, and the group can be applied again.
        """
        ...

    # What cannot commit together with its record

    async def has_executed(self, gtid: str) -> bool:
        """Return whether the target has executed a GTID."""
        ...

    async def has_used(self, uuid: str, number: int) -> bool:
        """Return whether the target has executed a GTID of the daemon's UUID, as `has_executed`.

        Only for definitions, whose GTIDs nobody else uses: what is above all that the target had at
        the first question, and above what was asked since, it has not; so it is not asked.
        """
        ...

    async def have_executed(self, gtids: Sequence[str]) -> tuple[bool, ...]:
        """Return of each GTID whether the target has executed it."""
        ...

    def thread_of_its_own(self) -> int:
        """Return a thread id for a definition that no other has in the target's binlog from now on.

        That of the session itself, if it can have no other.
        """
        ...

    async def log_position(self, *, recent: bool = True) -> tuple[str, int]:
        """Return the end of the target's own binlog, if it contains all that the session does.

        ("", 0) if it does not, or if the user may not query it. Unless `recent`, it may have been
        there a minute ago, in the same run of the target: a restart would have ended the session.
        """
        ...

    async def note(self, doubt: InDoubt, *, anew: bool = False) -> None:
        """Record that a group is in doubt; `anew`: replacing the existing record."""
        ...

    async def note_all(self, doubts: Sequence[InDoubt]) -> None:
        """Record that groups are in doubt, all of them at once."""
        ...

    async def forget(self, number: int) -> None:
        """Remove the record of an in-doubt group that has had no effect."""
        ...

    async def settle(self, row: WorkerRow, number: int) -> None:
        """Record that an in-doubt group is applied."""
        ...

    async def run_definition(self, group: Group, gtid: str, thread: int) -> None:
        """Apply a group that commits implicitly, under a GTID or a thread id of its own."""
        ...

    async def make_table(self, group: Group) -> None:
        """Create the table of a CREATE TABLE … SELECT by itself."""
        ...

    def has_made_table(self, number: int) -> bool:
        """Return whether `make_table` has created the table of that group, the last one."""
        ...

    async def commit_settled(self, row: WorkerRow, number: int) -> None:
        """Commit the open transaction, and settle its group in it."""
        ...

    async def begin_table(self, group: Group, gtid: str, thread: int) -> None:
        """Create the table of a CREATE TABLE … SELECT whose rows arrive chunk by chunk.

        If this fails, `undo` is required.
        """
        ...

    async def commit_table(self) -> None:
        """Commit it together with the rows that have been applied since."""
        ...

    def statement_count(self, group: Group) -> int:
        """Return how many statements a group on non-transactional tables becomes.

        Raises RowTooLargeError if the target cannot accept a statement that large.
        """
        ...

    async def apply_unprotected(self, group: Group, gtid: str, row: WorkerRow) -> None:
        """Apply a group on non-transactional tables, then settle it.

        Raises NotSettledError if it is applied but the record of that could not be written.
        """
        ...

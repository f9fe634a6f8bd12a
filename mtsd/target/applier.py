"""What the replica needs of an applier: it applies groups on one session of the target.

An applier is one file behind this interface. It alone knows how rows become statements, how the
position is written beside them, and what a session of its target is like.
"""

from collections.abc import Collection, Sequence
from typing import Protocol

from mtsd.model.errors import MtsdError, ServerError
from mtsd.model.group import Group
from mtsd.model.gtid import Gtid
from mtsd.model.step import Step
from mtsd.schedule.in_flight import Due, Packet
from mtsd.schedule.worker_row import WorkerRow
from mtsd.target.bundle import Bundle
from mtsd.target.position_tables import InDoubt
from mtsd.wire.connection import Awaited


class Applier(Protocol):
    """Applies groups, each transaction together with the row of its worker.

    Unless said otherwise a method raises ServerError where the server refuses, after a ROLLBACK;
    its `leaves_changes` tells whether some of the changes could not be rolled back. And
    ConnectionLostError, where nobody knows what has become of the transaction.
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
        """Whether what the session does enters the target's own binlog."""
        ...

    @property
    def connection_id(self) -> int:
        """The target's id of the session."""
        ...

    @property
    def awaited(self) -> Awaited | None:
        """What the target has not answered yet; None where nothing is waited for."""
        ...

    @property
    def closed(self) -> bool:
        """Whether the session is closed on this side."""
        ...

    def close(self) -> None:
        """Close the session at once; whoever waits for it is woken."""
        ...

    # Groups of rows

    def bundle(self, packet: Packet) -> Bundle | None:
        """Return what to send of a packet of groups of rows.

        None where it is of several transactions that cannot be single statements each.
        """
        ...

    def are_safe(self, table_maps: Collection[bytes]) -> bool:
        """Tell whether all these tables are known to have transactions on the target."""
        ...

    async def without_transactions(self, table_maps: Collection[bytes]) -> tuple[str, ...]:
        """Return those of the tables that have none on the target, by name.

        Nothing may be on its way.
        """
        ...

    async def without_transactions_in(self, databases: Collection[str]) -> tuple[str, ...]:
        """Return some tables of databases that have none on the target; empty where all have."""
        ...

    async def send(self, bundle: Bundle, *, follows: bool) -> int:
        """Send a bundle; `follows`: behind one that is on its way.

        Returns how many statements the answer of each of its transactions covers. Where this
        fails, `undo` is due.
        """
        ...

    async def answer(self, due: Due) -> None:
        """Await the answer that is due: the transaction has committed. Else `undo` is due."""
        ...

    async def undo(self, error: MtsdError, behind: int) -> None:
        """Leave nothing open after an error; `behind` packets were on their way behind it."""
        ...

    async def explain(self, error: ServerError, rows: Sequence[bytes]) -> ServerError:
        """Return what an error of a group with these row events means, after `undo`.

        A server may name an error that tells nothing for one that tells the column.
        """
        ...

    # Transactions of statements, and streamed ones

    async def apply_in_order(self, group: Group, row: WorkerRow) -> None:
        """Apply a transaction's steps in their order, and commit it."""
        ...

    async def begin(self, format_description: bytes, gtid: Gtid | None) -> None:
        """Begin a transaction whose steps come chunk by chunk."""
        ...

    async def apply_steps(self, steps: Sequence[Step]) -> None:
        """Apply steps inside the transaction that is open; after an error, `undo` is due."""
        ...

    async def commit(self, row: WorkerRow) -> None:
        """Commit the open transaction."""
        ...

    async def commit_in_doubt(self, doubt: InDoubt) -> None:
        """Commit what is open of a streamed group, with the record that it is only a part."""
        ...

    async def rollback(self) -> None:
        """Undo the open transaction."""
        ...

    # What cannot commit together with its record

    async def has_executed(self, gtid: str) -> bool:
        """Tell whether the target has executed a GTID."""
        ...

    async def log_position(self) -> tuple[str, int]:
        """Return the end of the target's own binlog, where that holds all that the session does.

        ("", 0) where it does not, or where the user may not ask.
        """
        ...

    async def note(self, doubt: InDoubt, *, anew: bool = False) -> None:
        """Record that a group is in doubt; `anew`: over the record that is there."""
        ...

    async def forget(self, number: int) -> None:
        """Remove the record of a group in doubt that has had no effect."""
        ...

    async def settle(self, row: WorkerRow, number: int) -> None:
        """Record that a group in doubt is applied."""
        ...

    async def run_definition(self, group: Group, gtid: str, thread: int) -> None:
        """Apply a group that commits by itself, under a GTID or a thread id of its own."""
        ...

    async def make_table(self, group: Group) -> None:
        """Make the table of a CREATE TABLE … SELECT by itself."""
        ...

    async def fill_table(self, group: Group, row: WorkerRow) -> None:
        """Apply the rows of a CREATE TABLE … SELECT, and settle it in the same transaction."""
        ...

    def statement_count(self, group: Group) -> int:
        """Return how many statements a group on tables without transactions becomes.

        Raises RowTooLargeError where the target takes none so large.
        """
        ...

    async def apply_unprotected(self, group: Group, gtid: str, row: WorkerRow) -> None:
        """Apply a group on tables without transactions, then settle it.

        Raises NotSettledError where it is applied and the record of that could not be written.
        """
        ...

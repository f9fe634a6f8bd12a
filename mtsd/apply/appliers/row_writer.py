"""How rows reach the target: the few things in which BINLOG and SQL differ.

There are two: `BinlogRows`, which passes row events on undecoded, and `SqlRows`, which makes SQL of
them. All else that a session does is the same for both (`mtsd.apply.appliers.applier`).
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from mtsd.apply.rows.bundle import Bundle
from mtsd.apply.session.session import TargetSession
from mtsd.model.errors import ServerError
from mtsd.model.group import Group
from mtsd.model.step import Rows
from mtsd.schedule.batches.in_flight import Packet


def nothing_else() -> None:
    """Do nothing while the target works."""


class RowWriter(Protocol):
    """Writes rows on one session, in one of two ways.

    Rows of many groups come as a packet: `bundle` is handed all of it at once, before anything is
    sent, and so may join the rows of its groups as it likes. A packet has some transactions, each
    with its groups in the source's order and the worker's row after the last of them; what is
    joined has to commit with that row. For example, a packet of one transaction with the groups 7,
    8 and 9 becomes BEGIN, the rows of the three, the worker's row as it is after 9, and COMMIT.
    `send` sends the whole bundle, `hold` all but its `ending`; a session that has one bundle held
    needs another writer and session for the next one.

    Rows of a group that arrive chunk by chunk come by `begin` and `write`, inside a transaction
    that somebody else opens and commits.

    Unless stated otherwise, a method raises ServerError, after which the transaction is still to be
    rolled back and then `restore` is due, and ConnectionLostError.
    """

    @property
    def creates_and_fills(self) -> bool:
        """Whether the target can create a table and fill it with such rows in one transaction."""
        ...

    @property
    def may_find_nothing(self) -> bool:
        """Whether rows that are missing, or there already, are no error."""
        ...

    @property
    def needs_guard(self) -> bool:
        """Whether a target that loses errors inside cascades loses them for such rows, too."""
        ...

    def use(self, session: TargetSession) -> None:
        """Write on that session from now on: the worker's, or that of a branch."""
        ...

    def bundle(self, packet: Packet, *, held: bool = False) -> Bundle | None:
        """Return what to send for a packet of groups of rows; `held`: for `hold`.

        None if it has several transactions and not each of them can be a single statement.
        """
        ...

    async def send(self, bundle: Bundle, *, follows: bool) -> int:
        """Send a bundle; `follows`: after one that is in flight.

        Returns how many statements the answer to each of its transactions covers.
        """
        ...

    async def hold(self, bundle: Bundle, meanwhile: Callable[[], None] = nothing_else) -> None:
        """Apply a bundle of a single transaction, and leave that open.

        `meanwhile` is called at most once, when something else may be made and sent.
        """
        ...

    async def begin(self, format_description: bytes, *, creates: bool = False) -> None:
        """Get ready for the rows of a transaction, which comes by `write`; none may be open.

        `creates`: it creates their table first.
        """
        ...

    async def write(self, rows: Rows) -> None:
        """Apply row events inside the open transaction."""
        ...

    async def restore(self) -> None:
        """Undo what an error among rows may have left of the session's state."""
        ...

    async def explain(self, error: ServerError, rows: Sequence[bytes]) -> ServerError:
        """Return what an error of a group with these row events means, after a rollback.

        A server's error may be uninformative; the one returned then names the column.
        """
        ...

    def statement_count(self, group: Group) -> int:
        """Return how many statements a group on non-transactional tables becomes.

        Raises RowTooLargeError if the target cannot accept a statement that large.
        """
        ...

    async def goes_step_by_step(self, group: Group) -> bool:
        """Get ready for the rows of a group; return whether its steps are applied one by one.

        Only where none of them needs anything else may all be sent at once. Raises RowTooLargeError
        before the first of a group that cannot be rolled back.
        """
        ...

"""The temporary tables of the source's threads that one session of the target has."""

from mtsd.apply.session.session import TargetSession
from mtsd.binlog.sql.temporary_tables import replaces
from mtsd.model.step import Statement, StatementKind
from mtsd.model.temporary_tables import TableName, TemporaryUse


class SessionTables:
    """What the session has of each thread, by the thread's id, as far as this run has created it.

    It may have tables that their thread does not: of an attempt that has failed.
    """

    def __init__(self, session: TargetSession) -> None:
        self._session = session
        self._has: dict[int, frozenset[TableName]] = {}
        self._use: TemporaryUse | None = None
        self.are_spent = False
        """Whether the last group has changed them in a way that no ROLLBACK undoes.

        If it has failed after that, it cannot be applied again: it would not find those that it had
        found before, but perhaps the base tables that they had hidden.
        """

    @property
    def are_in_use(self) -> bool:
        """Whether the group that is being applied has to do with temporary tables."""
        return self._use is not None

    def of(self, thread_id: int) -> frozenset[TableName]:
        """Return those of a thread."""
        return self._has.get(thread_id, frozenset())

    async def use(self, use: TemporaryUse) -> None:
        """Get ready for a group, perhaps again: drop what its thread does not have before it."""
        self._use = use
        self.are_spent = False
        thread_id = use.thread[1]
        has = self._has.get(thread_id, frozenset())
        self._has[thread_id] = (has & use.before) | use.created
        if stale := has - use.before:
            await self._session.drop_temporary(thread_id, stale)

    async def end(self, thread_id: int) -> None:
        """Drop what the session has of a thread that has ended without dropping it."""
        if stale := self._has.pop(thread_id, None):
            await self._session.drop_temporary(thread_id, stale)

    def ran(self, statement: Statement) -> None:
        """Note that a statement of the group has succeeded."""
        use = self._use
        if use is None:
            return
        match statement.kind:
            case StatementKind.DROP_TEMPORARY:
                # Those that the group itself has created are created again.
                self.are_spent |= bool(use.before - use.left or use.before & use.created)
            case StatementKind.TEMPORARY:
                self.are_spent |= bool(use.before) and replaces(statement.query)
            case StatementKind.DDL:
                self.are_spent |= use.only

    def used(self, use: TemporaryUse) -> None:
        """Note that the group has been applied; only then is that of a streamed one known."""
        self._use = None
        self.are_spent = False
        left = (self._has.pop(use.thread[1], frozenset()) | use.created) & use.left
        if left:
            self._has[use.thread[1]] = left

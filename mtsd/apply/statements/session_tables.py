"""The temporary tables of the source's threads that one session of the target has."""

from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet

from mtsd.apply.session.session import TargetSession
from mtsd.apply.session.session_state import THREAD_ID
from mtsd.apply.sql import literals
from mtsd.binlog.sql.created_alike import are_alike
from mtsd.binlog.sql.temporary_tables import replaces
from mtsd.model.group import Group
from mtsd.model.step import Statement, StatementKind
from mtsd.model.temporary_tables import SourceThread, TableName, TemporaryUse
from mtsd.schedule.batches.temporary_runs import CreatedAlike


class SessionTables:
    """What the session has of each thread, by the thread's id, as far as this run has created it.

    It may have tables that their thread does not: of an attempt that has failed.
    """

    def __init__(self, session: TargetSession) -> None:
        self._session = session
        self._has: dict[int, frozenset[TableName]] = {}
        self._can_roll_back: dict[int, frozenset[TableName]] = {}
        """Those, by the thread's id, in which a ROLLBACK undoes what has been changed."""
        self._created: dict[tuple[int, TableName], tuple[Statement, int]] = {}
        """By thread and table: what has created it, and how many definitions there were by then."""
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
            await self._drop(thread_id, stale)

    def roll_back(self, use: TemporaryUse, *, created: bool) -> bool:
        """Return whether a ROLLBACK is known to undo what a group changes in temporary tables.

        `created`: whether that holds for those that it creates.
        """
        thread_id = use.thread[1]
        known = self._can_roll_back.get(thread_id, frozenset())
        known = known | use.created if created else known - use.created
        self._can_roll_back[thread_id] = known
        return use.before | use.created <= known

    async def use_run(self, uses: Sequence[TemporaryUse]) -> None:
        """Get ready for groups that share a transaction: see `temporary_runs`."""
        for use in _firsts(uses):
            await self.use(use)
        for use in uses:
            thread_id = use.thread[1]
            self._has[thread_id] = self.of(thread_id) | use.created
        self._use = None

    async def undo_run(self, uses: Sequence[TemporaryUse]) -> None:
        """Drop what such groups have created, after the ROLLBACK of their transaction.

        A statement of the same thread that comes before them would find it.
        """
        for use in _firsts(uses):
            thread_id = use.thread[1]
            has = self.of(thread_id)
            self._has[thread_id] = has & use.before
            if stale := has - use.before:
                await self._session.clean_left(self._dropping(thread_id, stale))

    def dropping(self, drops: Mapping[SourceThread, AbstractSet[TableName]]) -> list[bytes]:
        """Return the statements for what such groups drop behind their commit."""
        return [
            each for thread, tables in drops.items() for each in self._dropping(thread[1], tables)
        ]

    def used_run(self, groups: Sequence[Group], definitions: int) -> None:
        """Note that such groups have committed, while there were so many definitions."""
        known = dict(self._can_roll_back)
        for group in groups:
            use = group.uses_temporary
            if use is None:
                continue
            self.used(use)
            thread_id = use.thread[1]
            if use.left:
                self._can_roll_back[thread_id] = known.get(thread_id, use.left) & use.left
            if len(group.steps) == len(use.created) == 1 and isinstance(group.steps[0], Statement):
                (table,) = use.created
                self._created[thread_id, table] = group.steps[0], definitions

    def creates_alike(self, definitions: int) -> CreatedAlike:
        """Return how to tell what creates a table as it was, see `temporary_run`.

        Nothing may have been defined since that its text does not say.
        """

        def alike(thread: SourceThread, table: TableName, statement: Statement) -> bool:
            found = self._created.get((thread[1], table))
            if found is None or found[1] != definitions or not "".join(table).isascii():
                return False
            return are_alike(found[0], statement)

        return alike

    async def end(self, thread_id: int) -> None:
        """Drop what the session has of a thread that has ended without dropping it."""
        self._can_roll_back.pop(thread_id, None)
        for table in self.of(thread_id):
            self._created.pop((thread_id, table), None)
        if stale := self._has.pop(thread_id, None):
            await self._drop(thread_id, stale)

    def ran(self, statement: Statement) -> None:
        """Note that a statement of the group has succeeded."""
        if statement.kind is StatementKind.DDL:
            thread_id = statement.query.thread_id
            self._created = {
                key: made for key, made in self._created.items() if key[0] != thread_id
            }
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
        thread_id = use.thread[1]
        left = (self._has.pop(thread_id, frozenset()) | use.created) & use.left
        known = self._can_roll_back.pop(thread_id, frozenset())
        for table in use.before - left:
            self._created.pop((thread_id, table), None)
        if left:
            self._has[thread_id] = left
            self._can_roll_back[thread_id] = known & left

    async def _drop(self, thread_id: int, tables: Collection[TableName]) -> None:
        dropping = self._dropping(thread_id, tables)
        await self._session.connection.run(b";".join(dropping), len(dropping))

    def _dropping(self, thread_id: int, tables: Collection[TableName]) -> tuple[bytes, ...]:
        """Return how to drop what statements of this thread of the source have created."""
        names = b",".join(
            literals.quoted(database) + b"." + literals.quoted(table)
            for database, table in sorted(tables)
        )
        return (
            b"SET @@session.pseudo_thread_id=%d" % thread_id,
            b"DROP TEMPORARY TABLE IF EXISTS " + names,
            b"SET @@session.pseudo_thread_id=" + self._session.states.own[THREAD_ID],
        )


def _firsts(uses: Sequence[TemporaryUse]) -> list[TemporaryUse]:
    """Return the first one of each thread."""
    firsts: dict[int, TemporaryUse] = {}
    for use in uses:
        firsts.setdefault(use.thread[1], use)
    return list(firsts.values())

"""What a session of the target asks about its tables before it changes them."""

from collections.abc import Collection, Iterable, Sequence

from mtsd.apply.rows.bundle import table_maps
from mtsd.apply.rows.row_states import RowStates
from mtsd.apply.session.session import TargetSession
from mtsd.apply.tables.known_tables import KnownTables
from mtsd.apply.tables.table_layout import TargetTable
from mtsd.apply.tables.table_loading import load_table
from mtsd.binlog.events.table_map import name_of
from mtsd.model.errors import ServerError
from mtsd.model.group import Group
from mtsd.model.session import RowState
from mtsd.model.step import QueryEvent, Rows, Statement, StatementKind, Step, state_of_rows


class TableQuestions:
    """The target's tables as a worker's session finds them; `known` are those of all workers.

    `states` are those that rows are applied in. Nothing may be in flight on the session while it
    asks: then methods raise ServerError, ConnectionLostError.
    """

    def __init__(self, session: TargetSession, known: KnownTables, states: RowStates) -> None:
        self._connection = session.connection
        self.known = known
        self.states = states

    def are_safe(self, maps: Collection[bytes]) -> bool:
        """Return whether all these tables are known to be transactional on the target."""
        return self.known.are_safe(maps)

    async def learn(self, maps: Collection[bytes], state: RowState | None) -> None:
        """Find out about tables, of which rows with that state come next."""
        await self.known.learn(self._connection, maps, self.states.opening(state))

    async def learn_of(self, maps: Collection[bytes], steps: Iterable[Step]) -> None:
        """Find out about tables whose rows are in these steps."""
        left = set(maps).difference(self.known.of(maps))
        alike: dict[tuple[bytes, bytes], set[bytes]] = {}
        for step in steps:
            if not left:
                break
            if isinstance(step, Rows) and (found := left.intersection(table_maps(step.events))):
                alike.setdefault(self.states.opening(step.state), set()).update(found)
                left -= found
        if left:
            alike.setdefault(self.states.opening(None), set()).update(left)
        for opening, found in alike.items():
            await self.known.learn(self._connection, found, opening)
        # A definition of another worker may have let some be forgotten meanwhile.
        await self.learn(maps, None)

    async def are_others(self, group: Group) -> bool:
        """Return whether a group has failed by a table that is another one than was known.

        Somebody may have changed it on the target; it is looked at anew. Raises
        ConnectionLostError alone.
        """
        maps = frozenset(table_maps(group.rows))
        state = self.states.opening(state_of_rows(group.steps))
        try:
            return await self.known.are_others(self._connection, maps, state)
        except ServerError:
            # The error to report is what the group has failed with.
            return False

    async def without_transactions(
        self, maps: Collection[bytes], steps: Iterable[Step]
    ) -> tuple[str, ...]:
        """Return the tables that are non-transactional on the target, by name.

        Their rows are in these steps.
        """
        await self.learn_of(maps, steps)
        found = self.known.of(maps)
        return tuple(sorted({name_of(each) for each in found if found[each].without_transactions}))

    async def are_transactional(self, maps: Collection[bytes], steps: Iterable[Step]) -> bool:
        """Return whether all these tables are transactional on the target; see above."""
        return self.are_safe(maps) or not await self.without_transactions(maps, steps)

    async def may_change_without_transactions(
        self, steps: Sequence[Step], definitions: int
    ) -> bool:
        """Return whether statements may change a non-transactional table of the target.

        `definitions` is another number once a definition has been applied.
        """
        return await self.known.engines.may_change(self._connection, _queries(steps), definitions)

    async def may_run_routines(self, steps: Sequence[Step], definitions: int) -> bool:
        """Return whether statements may run a function or trigger of the target, or use a view."""
        queries = _queries(steps)
        return await self.known.engines.may_run_routines(self._connection, queries, definitions)

    async def may_create_without_transactions(
        self, steps: Sequence[Step], definitions: int
    ) -> bool:
        """Return whether statements may create a temporary table that cannot roll back."""
        for step in steps:
            if isinstance(step, Statement) and step.kind is StatementKind.TEMPORARY:
                engines = self.known.engines
                if await engines.may_create_temporary(self._connection, step.query, definitions):
                    return True
        return False

    async def read(self, database: str, table: str) -> TargetTable:
        """Return what the target knows about a table."""
        return await load_table(self._connection, database, table)


def _queries(steps: Sequence[Step]) -> list[QueryEvent]:
    return [step.query for step in steps if isinstance(step, Statement)]

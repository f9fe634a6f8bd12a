"""Definitions on a worker's own session: each commits by itself."""

from mtsd.apply.appliers.row_writer import RowWriter
from mtsd.apply.session.session import TargetSession
from mtsd.apply.statements.definitions import (
    Definition,
    apply_definition,
    definition_of,
    make_table,
    ready_definition,
)
from mtsd.apply.statements.session_tables import SessionTables
from mtsd.model.fault_points import FaultHook
from mtsd.model.group import Group


class OwnDefinitions:
    """Runs definitions on a worker's session; `temporary` are the temporary tables that it has.

    Methods raise ServerError with nothing left open, NotSupportedError, ConnectionLostError.
    """

    def __init__(
        self, session: TargetSession, rows: RowWriter, temporary: SessionTables, reached: FaultHook
    ) -> None:
        self._session = session
        self._rows = rows
        self._temporary = temporary
        self._reached = reached
        self._made = 0
        """The last group whose table was created by itself."""

    async def ready(self, group: Group, gtid: str, thread: int) -> Definition:
        """Get a group ready that commits implicitly, under a GTID or a thread id of its own."""
        definition = definition_of(group, thread)
        # A format description would reset the GTID, so it comes first.
        await self._rows.begin(group.format_description)
        return await ready_definition(self._session, definition, gtid, self._temporary)

    async def run(self, definition: Definition) -> None:
        """Run it, once the target has been sent what comes before it."""
        await apply_definition(self._session, definition, self._temporary, self._reached)

    async def make_table(self, group: Group) -> None:
        """Create the table of a CREATE TABLE … SELECT by itself."""
        await make_table(self._session, definition_of(group), self._reached)
        self._made = group.number

    def has_made_table(self, number: int) -> bool:
        """Return whether `make_table` has created the table of that group, the last one."""
        return self._made == number

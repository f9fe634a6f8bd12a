"""Notices triggers that are created on the target while rows are applied there as SQL.

They fire for such rows, and the source's rows have what its own triggers did: it would be there
twice. A table that has some is refused when its definition is read, which is once. Nothing tells
cheaply which table has a new one (a MariaDB opens all tables for that), but how many were created.
"""

from mtsd.apply.tables.known_tables import KnownTables
from mtsd.wire.connection import Connection

_QUERY = b"SHOW GLOBAL STATUS LIKE 'Com_create_trigger'"


class NewTriggers:
    """Lets all tables be read anew after a trigger was created, so that theirs are seen."""

    def __init__(self, known: KnownTables) -> None:
        self._known = known
        self._created: str | None = None

    async def check(self, connection: Connection) -> None:
        """Look at the target. Raises ServerError, ConnectionLostError."""
        rows = await connection.query(_QUERY)
        created = str(rows[0][1]) if rows else None
        if self._created is not None and created != self._created:
            self._known.clear()
        self._created = created

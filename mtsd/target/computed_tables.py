"""Tables of the target from whose rows it computes something: what it is may depend on the session.

A generated column, a CHECK constraint and a functional key are expressions over the columns of a
row, and the server evaluates them under the session's sql_mode, time_zone and lc_time_names
(measured with MySQL 9.7: a DATETIME generated from a TIMESTAMP, the name of a month, a difference
of unsigned numbers).
"""

from collections.abc import Collection
from typing import Final

from mtsd.binlog.table_map import parse_table_map
from mtsd.model.names import folded
from mtsd.model.server import Flavour, ServerVersion
from mtsd.target import literals
from mtsd.wire.connection import Connection

_FUNCTIONAL_KEYS: Final = (8, 0, 13)
"""The first version with them."""
_CHECKS: Final = (8, 0, 16)
_MANY: Final = 8192


class ComputedTables:
    """Those that one session has found on a target."""

    __slots__ = ("_connection", "_found", "_plain", "_query")

    def __init__(self, connection: Connection, target: ServerVersion) -> None:
        self._connection = connection
        self._query = _query(target)
        self._plain: set[bytes] = set()
        self._found: set[bytes] = set()

    def are_plain(self, table_maps: Collection[bytes]) -> bool:
        """Return whether nothing is computed from rows of these tables, as far as is known."""
        return self._plain.issuperset(table_maps)

    def are_known(self, table_maps: Collection[bytes]) -> bool:
        """Return whether `learn` has found these tables."""
        return self._plain.issuperset(table_maps) or (self._plain | self._found).issuperset(
            table_maps
        )

    async def learn(self, table_maps: Collection[bytes]) -> None:
        """Find out about tables. Nothing may be in flight on the session.

        Raises ServerError, ConnectionLostError.
        """
        if self.are_known(table_maps):
            return
        if len(self._plain) + len(self._found) > _MANY:
            self._plain.clear()
            self._found.clear()
        tables = {event: parse_table_map(event) for event in table_maps}
        names = {(table.database, table.table) for table in tables.values()}
        listed = b",".join(b"(%b,%b)" % (_utf8(schema), _utf8(name)) for schema, name in names)
        rows = await self._connection.query(self._query.replace(b"(?)", b"(%b)" % listed))
        computed = {(folded(str(schema)), folded(str(name))) for schema, name in rows}
        for event, table in tables.items():
            name = folded(table.database), folded(table.table)
            (self._found if name in computed else self._plain).add(event)


def _query(target: ServerVersion) -> bytes:
    """Return the query for those of the tables (?), by schema and name."""
    of_columns = "SELECT table_schema,table_name FROM information_schema.columns WHERE {}"
    of_keys = "SELECT table_schema,table_name FROM information_schema.statistics WHERE {}"
    of_checks = "SELECT table_schema,table_name FROM information_schema.table_constraints WHERE {}"
    parts = [of_columns.format("generation_expression<>''")]
    if target.flavour is Flavour.MARIADB or target.number >= _CHECKS:
        parts.append(of_checks.format("constraint_type='CHECK'"))
    if target.flavour is Flavour.MYSQL and target.number >= _FUNCTIONAL_KEYS:
        parts.append(of_keys.format("expression IS NOT NULL"))
    among = " AND (table_schema,table_name) IN (?)"
    return " UNION ".join(part + among for part in parts).encode()


def _utf8(name: str) -> bytes:
    """Return a literal that compares with names as names do, not as bytes."""
    return b"_utf8mb4 " + literals.text(name)

"""Tables of MySQL with a generated invisible primary key, whose rows BINLOG could misread.

A row event of a source without that key skips it. Whether the source has it is said by its table
maps, from 8.0.30 on. But a session that does not know the source's version only counts columns: it
takes a target with one column more for one that alone has the key, and writes every value into the
next column, without an error; other counts are "Unknown error" (1105). A server's own replica knows
the version; a session is told it before each transaction, by `immediate_server_version` (MySQL
manual, "Generated Invisible Primary Keys and Replication"; measured with 9.7).
"""

from collections.abc import Collection

from mtsd.apply.session.family import MYSQL, TARGETS
from mtsd.apply.sql import literals
from mtsd.apply.tables.known_tables import KnownTables
from mtsd.binlog.events.format_description import parse_format_description
from mtsd.binlog.events.table_map import TableMap, parse_table_map
from mtsd.model.error_numbers import ER
from mtsd.model.errors import ServerError
from mtsd.model.names import folded
from mtsd.model.server import ServerVersion, version_of
from mtsd.wire.connection import Connection
from mtsd.wire.understood import understood


class GeneratedKeys:
    """Those that one session has found on a target."""

    __slots__ = ("_connection", "_possible", "known")

    def __init__(self, connection: Connection, target: ServerVersion) -> None:
        self._connection = connection
        self._possible = target.number >= TARGETS[target.flavour].generates_keys_since
        self.known = KnownTables()
        """What is not plain has such a key and needs the version."""

    def are_plain(self, table_maps: Collection[bytes]) -> bool:
        """Return whether rows of these tables are known to be read as they are meant."""
        return not self._possible or self.known.are_plain(table_maps)

    async def statement_before(
        self, format_description: bytes, table_maps: Collection[bytes]
    ) -> bytes:
        """Return the statement that each BINLOG statement with rows of these tables needs first.

        b"" if they need none. Nothing may be in flight on the session. Raises ServerError 1677 if
        the source is too old for one of them, ServerError, ConnectionLostError.
        """
        if self.are_plain(table_maps):
            return b""
        self.known.make_room()
        # A definition of another worker may let some be forgotten meanwhile.
        while unknown := self.known.unknown(table_maps):
            await self._learn(unknown)
        found = self.known.special(table_maps)
        if not found:
            return b""
        before = self.version_told(format_description)
        if not before:
            text = parse_format_description(format_description).server_version
            raise self._refusal(parse_table_map(min(found)), text)
        return before

    def version_told(self, format_description: bytes) -> bytes:
        """Return the statement that tells the source's version, for one transaction.

        b"" if that means nothing to the target, or the source has no such keys.
        """
        text = parse_format_description(format_description).server_version
        version = version_of(text) or (0, 0, 0)
        if not self._possible or version < MYSQL.generates_keys_since:
            return b""
        return b"SET @@session.immediate_server_version=%d%02d%02d" % version

    async def _learn(self, table_maps: Collection[bytes]) -> None:
        tables = {event: parse_table_map(event) for event in table_maps}
        counts = await self._counts({(each.database, each.table) for each in tables.values()})
        for event, table in tables.items():
            count = counts.get((folded(table.database), folded(table.table)))
            events = len(table.column_types) + (not table.has_generated_key)
            self.known.note(event, "" if count in {None, events} else "generated key")

    @understood("target")
    async def _counts(self, names: Collection[tuple[str, str]]) -> dict[tuple[str, str], int]:
        """Return the number of columns, by name in lower case, of the tables with such a key.

        A functional key part has a hidden column.
        """
        rows = await self._connection.query(
            b"SELECT k.table_schema,k.table_name,"
            b"(SELECT COUNT(*) FROM information_schema.columns c"
            b" WHERE c.table_schema=k.table_schema AND c.table_name=k.table_name)"
            b"+(SELECT COUNT(s.expression) FROM information_schema.statistics s"
            b" WHERE s.table_schema=k.table_schema AND s.table_name=k.table_name)"
            b" FROM information_schema.columns k WHERE k.column_name=%b AND k.ordinal_position=1"
            b" AND k.extra LIKE %b AND (k.table_schema,k.table_name) IN (%b)"
            % (literals.utf8("my_row_id"), literals.utf8("%INVISIBLE%"), literals.tables(names))
        )
        return {
            (folded(str(schema)), folded(str(name))): literals.number(count)
            for schema, name, count in rows
        }

    def _refusal(self, table: TableMap, source: str) -> ServerError:
        error = ServerError(
            ER.SLAVE_CONVERSION_FAILED,
            "HY000",
            f"table {table.database}.{table.table} has a generated invisible primary key on the"
            f" target, and beside it other columns than on the source, whose version, {source},"
            " does not say which of them correspond. Give it the source's columns and functional"
            " indexes, or a primary key of its own (ALTER TABLE on the target)",
        )
        error.server = f"target {self._connection.endpoint}"
        return error

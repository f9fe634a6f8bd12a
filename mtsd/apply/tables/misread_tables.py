"""Tables of MariaDB whose rows BINLOG would turn into others, would not find, or may not change.

The end of a current row's period in a table with system versioning is the latest TIMESTAMP that the
server has: 2038-01-19 before 11.5, 2106-02-07 from then on. A server's own replica puts one in the
place of the other; BINLOG on a newer server does not, and current rows of an older source would be
history there (MariaDB documentation, "TIMESTAMP"; measured with 10.11 and 11.8. The other way
round, BINLOG does).

A newer server does not log generated columns when it changes or deletes a row, and an older one
does not generate them for such a row: STORED columns keep their former values, in silence, also in
its own replica, and without a primary key no row is found (measured from 11.8 to 10.11; the
versions in between are taken for the worse).

A MariaDB does not look whether the user of a BINLOG statement may change the tables of its rows, as
MySQL does since 8.0.18 (measured with 10.11 and 11.8): whoever may replay could write anywhere. So
it is asked by a statement that needs the same privileges and changes nothing.
"""

from collections.abc import Collection
from typing import Final

from mtsd.apply.sql import literals
from mtsd.apply.tables.known_tables import KnownTables
from mtsd.binlog.events.format_description import parse_format_description
from mtsd.binlog.events.table_map import parse_table_map
from mtsd.model.error_numbers import ER, NOT_ALLOWED
from mtsd.model.errors import ServerError
from mtsd.model.outcome.reason import Reason, refuse
from mtsd.model.server import ServerVersion, flavour_of, version_of
from mtsd.wire.connection import Connection
from mtsd.wire.family import SERVERS

HISTORY = Reason(
    "table {table} has system versioning on the target, a MariaDB from 11.5 on, where rows of an"
    " older source, as this one is, would be history at once: a current row ends at another time"
    " there",
    "drop system versioning from the table on both servers, or upgrade the source to 11.5 or later",
)
NOT_GENERATED = Reason(
    "table {table} has generated columns, which the source, a newer MariaDB, does not log when it"
    " changes a row: the target would keep their former values, or not find the row",
    'set [target] apply_mode = "sql", and the target generates them, or upgrade the target to the'
    " source's version",
)
GENERATED: Final = (
    "c.is_generated = 'ALWAYS' AND c.generation_expression NOT IN ('ROW START', 'ROW END')"
    " AND (c.extra LIKE 'STORED%' OR NOT EXISTS (SELECT 1 FROM information_schema.statistics s"
    " WHERE s.table_schema = c.table_schema AND s.table_name = c.table_name"
    " AND s.index_name = 'PRIMARY'))"
)
"""The condition, in information_schema.columns c, for a table to be one of `NOT_GENERATED`."""
_UNTIL_2106: Final = (11, 5)
_NOT_LOGGED: Final = (11, 0)
_GENERATED_AGAIN: Final = (11, 8)


def turns_into_history(source: ServerVersion, target: ServerVersion) -> bool:
    """Return whether rows of tables with system versioning would be history on the target."""
    if not _are_mariadb(source, target):
        return False
    return source.number[:2] < _UNTIL_2106 <= target.number[:2]


def does_not_generate(source: ServerVersion, target: ServerVersion) -> bool:
    """Return whether the target would not generate what the source does not log."""
    if not _are_mariadb(source, target):
        return False
    of_source, of_target = source.number[:2], target.number[:2]
    return of_source >= _NOT_LOGGED and of_target < min(of_source, _GENERATED_AGAIN)


class MisreadTables:
    """Those that one session has found on a target."""

    __slots__ = ("_connection", "_format", "_is_mariadb", "_reasons", "_target", "known")

    def __init__(self, connection: Connection, target: ServerVersion) -> None:
        self._connection = connection
        self._target = target
        self._is_mariadb = SERVERS[target.flavour].has_history
        self._format = b""
        self._reasons: tuple[Reason, ...] = ()
        self.known = KnownTables()
        """Those that are passed, as plain; others are refused."""

    def are_passed(self, table_maps: Collection[bytes]) -> bool:
        """Return whether rows of these tables are known to be allowed, and what they are."""
        return not self._is_mariadb or self.known.are_plain(table_maps)

    async def check(self, format_description: bytes, table_maps: Collection[bytes]) -> None:
        """Raise ServerError 1677 if rows of one of the tables would not remain what they are.

        And ServerError 1142 or 1044 if the session's user may not change one of the tables.
        Nothing may be in flight on the session. Raises ServerError, ConnectionLostError.
        """
        if format_description != self._format:
            self._format = format_description
            self._reasons = self._reasons_for(format_description)
            self.known.clear()
        if self.are_passed(table_maps):
            return
        self.known.make_room()
        for event in self.known.unknown(table_maps):
            table = parse_table_map(event)
            await _require_grants(self._connection, table.database, table.table)
            for reason in self._reasons:
                if await _CONCERNS[reason](self._connection, table.database, table.table):
                    raise self._refusal(reason, f"{table.database}.{table.table}")
            self.known.note(event, "")

    def _reasons_for(self, format_description: bytes) -> tuple[Reason, ...]:
        text = parse_format_description(format_description).server_version
        source = ServerVersion(flavour_of(text), version_of(text) or (0, 0, 0))
        found = []
        if turns_into_history(source, self._target):
            found.append(HISTORY)
        if does_not_generate(source, self._target):
            found.append(NOT_GENERATED)
        return tuple(found)

    def _refusal(self, reason: Reason, table: str) -> ServerError:
        error = ServerError(ER.SLAVE_CONVERSION_FAILED, "HY000", str(refuse(reason, table=table)))
        error.server = f"target {self._connection.endpoint}"
        return error


async def is_versioned(connection: Connection, database: str, table: str) -> bool:
    """Return whether a table of the target has system versioning.

    Raises ServerError, ConnectionLostError.
    """
    return bool(
        await connection.query(
            b"SELECT 1 FROM information_schema.tables WHERE table_type = 'SYSTEM VERSIONED' AND %b"
            % _is_table(database, table)
        )
    )


async def _require_grants(connection: Connection, database: str, table: str) -> None:
    """Raise ServerError 1142 or 1044 if the session's user may not INSERT and DELETE."""
    name = literals.quoted(database) + b"." + literals.quoted(table)
    try:
        await connection.query(b"EXPLAIN REPLACE INTO %b VALUES ()" % name)
    except ServerError as error:
        # Whatever else is wrong with the table, the rows themselves show.
        if error.number in NOT_ALLOWED:
            raise


async def _is_generated(connection: Connection, database: str, table: str) -> bool:
    """Return whether a table has STORED columns, or others and no primary key."""
    return bool(
        await connection.query(
            b"SELECT 1 FROM information_schema.columns c WHERE %b AND %b LIMIT 1"
            % (_is_table(database, table), GENERATED.encode())
        )
    )


_CONCERNS: Final = {HISTORY: is_versioned, NOT_GENERATED: _is_generated}


def _is_table(database: str, table: str) -> bytes:
    return (
        b"table_schema = CONVERT(%b USING utf8mb4) AND table_name = CONVERT(%b USING utf8mb4)"
        % (
            literals.text(database),
            literals.text(table),
        )
    )


def _are_mariadb(*servers: ServerVersion) -> bool:
    return all(SERVERS[server.flavour].has_history for server in servers)

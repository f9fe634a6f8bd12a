"""System-versioned tables of MariaDB, as far as BINLOG would turn their rows into others.

The end of a current row's period is the latest TIMESTAMP that the server has: 2038-01-19 before
11.5, 2106-02-07 from then on. A server's own replica puts one in the place of the other; BINLOG on
a newer server does not, and current rows of an older source would be history there (MariaDB
documentation, "TIMESTAMP"; measured with 10.11 and 11.8. The other way round, BINLOG does).
"""

from collections.abc import Collection
from typing import Final

from mtsd.binlog.format_description import parse_format_description
from mtsd.binlog.table_map import parse_table_map
from mtsd.model.errors import ServerError
from mtsd.model.server import Flavour, ServerVersion, flavour_of, version_of
from mtsd.target import literals
from mtsd.wire.connection import Connection

_UNTIL_2106: Final = (11, 5, 0)
_DOES_NOT_FIT: Final = 1677
_MANY: Final = 8192


class VersionedTables:
    """Those that one session has found on a target."""

    __slots__ = ("_connection", "_format", "_is_newer", "_passed", "_refuses")

    def __init__(self, connection: Connection, target: ServerVersion) -> None:
        self._connection = connection
        self._is_newer = target.flavour is Flavour.MARIADB and target.number >= _UNTIL_2106
        self._format = b""
        self._refuses = self._is_newer
        self._passed: set[bytes] = set()

    def are_passed(self, table_maps: Collection[bytes]) -> bool:
        """Return whether rows of these tables are known to remain what they are."""
        return not self._refuses or self._passed.issuperset(table_maps)

    async def check(self, format_description: bytes, table_maps: Collection[bytes]) -> None:
        """Raise ServerError 1677 if one of the tables is versioned, and the source is older.

        Nothing may be in flight on the session. Raises ServerError, ConnectionLostError.
        """
        if format_description != self._format:
            self._format = format_description
            self._refuses = self._is_newer and _is_older(format_description)
            self._passed.clear()
        if self.are_passed(table_maps):
            return
        if len(self._passed) > _MANY:
            self._passed.clear()
        for event in table_maps:
            if event not in self._passed:
                table = parse_table_map(event)
                if await is_versioned(self._connection, table.database, table.table):
                    raise self._refusal(f"{table.database}.{table.table}")
                self._passed.add(event)

    def _refusal(self, table: str) -> ServerError:
        error = ServerError(
            _DOES_NOT_FIT,
            "HY000",
            f"table {table} has system versioning on the target, a MariaDB from 11.5 on, where rows"
            " of this older source would be history at once: a current row ends at another time"
            " there. Drop system versioning from the table on both servers, or upgrade the source"
            " to 11.5 or later",
        )
        error.server = f"target {self._connection.endpoint}"
        return error


async def is_versioned(connection: Connection, database: str, table: str) -> bool:
    """Return whether a table of the target has system versioning.

    Raises ServerError, ConnectionLostError.
    """
    return bool(
        await connection.query(
            b"SELECT 1 FROM information_schema.tables WHERE table_type = 'SYSTEM VERSIONED' AND"
            b" table_schema = CONVERT(%b USING utf8mb4) AND table_name = CONVERT(%b USING utf8mb4)"
            % (literals.text(database), literals.text(table))
        )
    )


def _is_older(format_description: bytes) -> bool:
    text = parse_format_description(format_description).server_version
    version = version_of(text)
    return flavour_of(text) is Flavour.MARIADB and version is not None and version < _UNTIL_2106

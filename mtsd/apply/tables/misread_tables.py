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

from collections.abc import Callable, Collection, Mapping
from typing import Final

from mtsd.apply.sql import literals
from mtsd.apply.tables.facts import Name, TableFacts
from mtsd.model.error_numbers import ER
from mtsd.model.errors import ServerError
from mtsd.model.outcome.reason import Reason, Refused, refuse
from mtsd.model.server import ServerVersion
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
_DENIED: Final = frozenset({ER.DBACCESS_DENIED_ERROR, ER.TABLEACCESS_DENIED_ERROR})


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


def reasons_for(source: ServerVersion, target: ServerVersion) -> tuple[Reason, ...]:
    """Return why rows of such a source may not remain what they are on such a target."""
    reasons = []
    if turns_into_history(source, target):
        reasons.append(HISTORY)
    if does_not_generate(source, target):
        reasons.append(NOT_GENERATED)
    return tuple(reasons)


def why_misread(facts: TableFacts, reasons: Collection[Reason]) -> Refused | None:
    """Return why rows of a table would not remain what they are, for one of these reasons."""
    for reason in reasons:
        if _CONCERNS[reason](facts):
            return refuse(reason, table=str(facts))
    return None


def misread(refused: Refused) -> ServerError:
    """Return error 1677, of rows that are refused."""
    return ServerError(ER.SLAVE_CONVERSION_FAILED, "HY000", str(refused))


async def why_denied(connection: Connection, name: Name) -> ServerError | None:
    """Return error 1142 or 1044 if the session's user may not INSERT into a table and DELETE.

    Raises ServerError, ConnectionLostError.
    """
    database, table = map(literals.quoted, name)
    try:
        await connection.query(b"EXPLAIN REPLACE INTO %b.%b VALUES ()" % (database, table))
    except ServerError as error:
        # Whatever else is wrong with the table, the rows themselves show.
        return error if error.number in _DENIED else None
    return None


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


def _is_generated(facts: TableFacts) -> bool:
    """Return whether a table has STORED columns, or others and no primary key."""
    return any(each.stored or not facts.has_primary_key for each in facts.columns if each.generated)


_CONCERNS: Final[Mapping[Reason, Callable[[TableFacts], bool]]] = {
    HISTORY: lambda facts: facts.versioned,
    NOT_GENERATED: _is_generated,
}


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

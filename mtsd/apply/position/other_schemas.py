"""Positions of mtsd in other schemas of the target: of another daemon, or from before a move."""

import re
from collections.abc import Iterable
from typing import Final

from mtsd.apply.sql import literals
from mtsd.model.error_numbers import NOT_ALLOWED
from mtsd.model.errors import ServerError
from mtsd.wire.connection import Connection

"""Errors of missing privileges on a table."""
_GRANT: Final = re.compile(
    r"(?P<verb>GRANT|REVOKE) (?P<privileges>.+?) ON `?(?P<database>[^`]+?)`?\.\* (TO|FROM) "
)
_SELECT: Final = re.compile(r"\b(SELECT|ALL PRIVILEGES)\b")
_OF_THE_SERVER: Final = frozenset({"mysql", "sys", "performance_schema"})
_WITH_POSITIONS: Final = (
    b"SELECT table_schema FROM information_schema.columns WHERE table_name='slave_relay_log_info'"
    b" AND column_name='Source_uuid' AND table_schema<>%b ORDER BY 1"
)


async def schemas_with_positions(connection: Connection, except_for: str = "") -> list[str]:
    """Return the schemas of a server with positions of mtsd, as far as the user may see them.

    Raises ServerError, ConnectionLostError.
    """
    schemas: list[str] = []
    for (schema,) in await connection.query(_WITH_POSITIONS % literals.text(except_for)):
        try:
            literals.name(str(schema))
        except ValueError:
            # No name that [target] schema accepts.
            continue
        schemas.append(str(schema))
    return schemas


async def sees_all_databases(connection: Connection) -> bool:
    """Return whether the user may see every table of the server, as far as its grants tell.

    Raises ServerError, ConnectionLostError.
    """
    return shows_all([str(grant) for (grant,) in await connection.query(b"SHOW GRANTS")])


def shows_all(grants: Iterable[str]) -> bool:
    """Decide that by what SHOW GRANTS returns: SELECT on everything, none of it taken away."""
    granted = False
    for grant in grants:
        match = _GRANT.match(grant)
        if match is None or not _SELECT.search(match["privileges"]):
            continue
        if match["verb"] == "REVOKE":
            # The servers' own databases are no place for a position.
            if match["database"] not in _OF_THE_SERVER:
                return False
        elif match["database"] == "*":
            granted = True
    return granted


async def positions_elsewhere(connection: Connection, schema: str) -> tuple[tuple[str, str], ...]:
    """Return where else than in `schema` there are positions, each with its source's UUID.

    As far as the user may see them. Raises ServerError, ConnectionLostError.
    """
    positions: list[tuple[str, str]] = []
    for other in await schemas_with_positions(connection, schema):
        table = literals.name(other) + b".`slave_relay_log_info`"
        try:
            rows = await connection.query(b"SELECT DISTINCT `Source_uuid` FROM " + table)
        except ServerError as error:
            if error.number not in NOT_ALLOWED:
                raise
            continue
        positions += [(other, str(uuid).lower()) for (uuid,) in rows]
    return tuple(positions)

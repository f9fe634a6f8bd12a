"""Positions of mtsd in other schemas of the target: of another daemon, or from before a move."""

from typing import Final

from mtsd.model.errors import ServerError
from mtsd.target import literals
from mtsd.wire.connection import Connection

_NOT_ALLOWED: Final = frozenset({1044, 1142, 1143})
_WITH_POSITIONS: Final = (
    b"SELECT table_schema FROM information_schema.columns WHERE table_name='slave_relay_log_info'"
    b" AND column_name='Source_uuid' AND table_schema<>%b ORDER BY 1"
)


async def positions_elsewhere(connection: Connection, schema: str) -> tuple[tuple[str, str], ...]:
    """Return where else than in `schema` there are positions, each with its source's UUID.

    As far as the user may see them. Raises ServerError, ConnectionLostError.
    """
    found: list[tuple[str, str]] = []
    for (other,) in await connection.query(_WITH_POSITIONS % literals.text(schema)):
        try:
            table = literals.name(str(other)) + b".`slave_relay_log_info`"
        except ValueError:
            # No name that [target] schema accepts.
            continue
        try:
            rows = await connection.query(b"SELECT DISTINCT `Source_uuid` FROM " + table)
        except ServerError as error:
            if error.number not in _NOT_ALLOWED:
                raise
            continue
        found += [(str(other), str(uuid).lower()) for (uuid,) in rows]
    return tuple(found)

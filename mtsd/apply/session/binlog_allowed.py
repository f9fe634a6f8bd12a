"""Whether the target accepts BINLOG statements from this user: managed services often do not."""

from typing import Final

from mtsd.model.errors import ServerError
from mtsd.wire.connection import Connection

_NOT_ALLOWED: Final = frozenset({1227, 1142})
"""Without the privilege; it is checked before the statement's text."""


async def allows_binlog(connection: Connection) -> bool:
    """Return whether BINLOG statements are allowed.

    Raises ConnectionLostError.
    """
    try:
        # Empty, it is a syntax error to a server that would accept others.
        await connection.query(b"BINLOG ''")
    except ServerError as error:
        return error.number not in _NOT_ALLOWED
    return True

"""Whether the target accepts BINLOG statements from this user: managed services often do not."""

from mtsd.model.error_numbers import NOT_ALLOWED
from mtsd.model.errors import ServerError
from mtsd.wire.connection import Connection

"""Without the privilege; it is checked before the statement's text."""


async def allows_binlog(connection: Connection) -> bool:
    """Return whether BINLOG statements are allowed.

    Raises ConnectionLostError.
    """
    try:
        # Empty, it is a syntax error to a server that would accept others.
        await connection.query(b"BINLOG ''")
    except ServerError as error:
        return error.number not in NOT_ALLOWED
    return True

"""Where the target's own binary log ends."""

from mtsd.apply.sql import literals
from mtsd.model.error_numbers import NOT_ALLOWED
from mtsd.model.errors import ServerError
from mtsd.wire.binlog_status import binlog_status
from mtsd.wire.connection import Connection
from mtsd.wire.traits import ServerTraits


async def own_log_end(connection: Connection, traits: ServerTraits) -> tuple[str, int]:
    """Return file and offset; ("", 0) if the log leaves databases out, or the user may not ask."""
    try:
        rows = await connection.query(binlog_status(traits.version))
    except ServerError as error:
        if error.number not in NOT_ALLOWED:
            raise
        return "", 0
    file, offset, only, ignored, *_ = rows[0]
    return ("", 0) if only or ignored else (str(file), literals.number(offset))

"""Keeping the group that stopped the replica on record, for `mtsd status` and `mtsd skip`."""

from dataclasses import replace

import structlog

from mtsd.apply.position.position_tables import PositionTables
from mtsd.apply.session.retry import write
from mtsd.model.errors import ConnectionLostError, MtsdError, ServerError
from mtsd.wire.connection import Connection

_TIMEOUT_S = 10.0

log = structlog.get_logger(__name__)


async def record_stopped(
    connection: Connection, tables: PositionTables, error: BaseException, *, highest_done: int = 0
) -> None:
    """Record the group of an error that stops the replica; does nothing if it has none.

    `highest_done` is the highest number that has been applied, if it is known better than from
    the error. If it cannot be recorded, the next start stops at the group again and may record it.
    """
    if not isinstance(error, MtsdError) or error.group is None or connection.closed:
        return
    later = error.group.later_applied or highest_done > error.group.number
    group = replace(error.group, later_applied=later)
    try:
        async with connection.answering(_TIMEOUT_S):
            await write(connection, [tables.failed.replace_stopped(group, str(error))])
    except (ServerError, ConnectionLostError) as refused:
        log.warning(
            "the group that stopped the replica could not be recorded: mtsd skip needs another try",
            group=group.number, reason=str(refused),
        )  # fmt: skip

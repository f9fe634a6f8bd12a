"""The place that a target was cloned at (MySQL's CLONE INSTANCE).

It stands in performance_schema.clone_status of the server that received the copy (manual, "Cloning
for Replication").
"""

from collections.abc import Sequence
from typing import Final

from mtsd.model.error_numbers import ER
from mtsd.model.errors import NeedsPersonError, ServerError
from mtsd.model.gtid import GtidSet
from mtsd.model.outcome.reason import Reason, refuse
from mtsd.model.position import Position
from mtsd.operations.copies.copied import Copied
from mtsd.wire.connection import Connection
from mtsd.wire.exchange import Value

NOT_CLONED = Reason(
    "the target was not cloned: performance_schema.clone_status says {state}",
    "CLONE INSTANCE on the target first, or say the place with FILE:POS or gtid:SET",
)
_STATUS: Final = (
    "SELECT state, binlog_file, binlog_position, gtid_executed"
    " FROM performance_schema.clone_status ORDER BY id DESC LIMIT 1"
)


def copied_by(rows: Sequence[tuple[Value, ...]]) -> Copied:
    """Return the place in the row of `_STATUS`. Raises NeedsPersonError if there is none."""
    if not rows or rows[0][0] != "Completed" or not rows[0][1]:
        state = str(rows[0][0]) if rows else "nothing"
        raise NeedsPersonError(str(refuse(NOT_CLONED, state=state)))
    _, file, offset, gtids = rows[0]
    text = str(gtids or "")
    return Copied(
        "CLONE", Position(str(file), int(str(offset))), GtidSet.parse(text) if text else None
    )


async def copied_by_clone(connection: Connection) -> Copied:
    """Query the target. Raises NeedsPersonError, ServerError, ConnectionLostError."""
    try:
        return copied_by(await connection.query(_STATUS))
    except ServerError as error:
        # The table comes with the plugin.
        if error.number != ER.NO_SUCH_TABLE:
            raise
        return copied_by([])

"""Where a single event shows that one group ends and the next begins."""

import enum
from typing import Final

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.events.dialect import Dialect
from mtsd.binlog.events.query import parse_query
from mtsd.binlog.sql.statement import classify
from mtsd.model.step import StatementKind

QUERY: Final[int] = EventType.QUERY_EVENT.value
"""Events of this type end a group or not, depending on the statement."""
ENDS: Final = frozenset({
    EventType.XID_EVENT.value, EventType.XA_PREPARE_LOG_EVENT.value,
})  # fmt: skip
"""Types of events that end a group."""
_ENDING: Final = frozenset({StatementKind.COMMIT, StatementKind.ROLLBACK})


class Boundary(enum.Enum):
    """Where the boundary is that an event shows."""

    BEFORE = enum.auto()
    AFTER = enum.auto()


def boundary_at(event: bytes, dialect: Dialect) -> Boundary | None:
    """Return the boundary that a plain event shows; None if it shows none.

    Raises BinlogError if a Query event cannot be parsed.
    """
    code = event[4]
    if code in dialect.heads:
        return Boundary.BEFORE
    if code in ENDS:
        return Boundary.AFTER
    if code == QUERY:
        query = parse_query(event)
        if classify(query.text) in _ENDING:
            return Boundary.AFTER
    return None

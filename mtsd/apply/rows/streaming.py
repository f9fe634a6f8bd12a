"""Splits the row events of a streamed group into statements that are each complete."""

from collections.abc import Iterator

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.events.rows import STMT_END
from mtsd.binlog.groups.rewrite import statements_of

_TABLE_MAP = EventType.TABLE_MAP_EVENT.value


class RowStream:
    """Remembers the table maps of the source's unfinished statement between chunks."""

    def __init__(self, statement_bytes: int) -> None:
        self._statement_bytes = statement_bytes
        self._maps: dict[bytes, bytes] = {}
        self._ended = True

    def statements(self, events: tuple[bytes, ...]) -> Iterator[bytes]:
        """Yield the chunk's events as statements; the last event of each ends it."""
        known = [] if self._ended else list(self._maps.values())
        for event in events:
            if event[4] == _TABLE_MAP:
                if self._ended:
                    self._maps = {}
                    self._ended = False
                self._maps[event[19:25]] = event
            else:
                self._ended = bool(event[25] & STMT_END)
        yield from statements_of([*known, *events], self._statement_bytes, merge=False)

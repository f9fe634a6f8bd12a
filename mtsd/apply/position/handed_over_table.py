"""The table slave_handed_over: somebody else applies the source now, so mtsd must not.

A row is the fence of a channel: `mtsd run` refuses while it is there. Without it, a unit that is
still enabled would apply everything a second time after the machine's next start. It goes with the
old position: `mtsd takeover`, `mtsd switchover` and `mtsd position set` record another one. Nothing
here waits: this module builds statements and parses rows.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from mtsd.apply.position.table_declaration import (
    ONE_A_CHANNEL,
    ChannelTable,
    Table,
    moment,
    shown_text,
)
from mtsd.wire.exchange import Row

HANDED_OVER: Final = "slave_handed_over"
_TO: Final = shown_text("Handed_to", "TEXT NOT NULL")
_BACK: Final = shown_text("Comes_back_by", "TEXT NOT NULL")
_SINCE: Final = moment("Handed_over_at")
_TABLE: Final = Table(HANDED_OVER, (ONE_A_CHANNEL, _TO, _BACK, _SINCE))


@dataclass(frozen=True, slots=True)
class HandedOver:
    """Who has the channel's work now, and the words of `mtsd` by which it comes back."""

    to: str
    comes_back_by: str
    since: datetime | None = None
    """In whole seconds, by the target's clock; None while it is not recorded."""


class HandedOverTable(ChannelTable):
    """Statements on the table for one channel in one schema."""

    def __init__(self, schema: str, channel: str) -> None:
        super().__init__(_TABLE, schema, channel)

    def replace_fence(self, fence: HandedOver) -> bytes:
        """Return the statement that sets the fence, at the target's time."""
        return self.replace(_TO.of(fence.to), _BACK.of(fence.comes_back_by))

    def fence(self, rows: list[Row]) -> HandedOver | None:
        """Parse the rows of `select`: there is one at most."""
        if not rows:
            return None
        found = _TABLE.read(rows[0])
        return HandedOver(found[_TO], found[_BACK], found[_SINCE])

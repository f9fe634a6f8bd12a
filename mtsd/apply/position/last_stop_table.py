"""The table slave_last_stop: how a channel's last daemon has ended.

Written when it ends, and removed by the next start: a daemon that is killed leaves none. Nothing
here waits: this module builds statements and parses rows.
"""

from typing import Final

from mtsd.apply.position.table_declaration import (
    ONE_A_CHANNEL,
    ChannelTable,
    Table,
    flag,
    moment,
    shown_text,
    whole,
)
from mtsd.model.outcome.last_stop import LastStop
from mtsd.wire.exchange import Row

LAST_STOP: Final = "slave_last_stop"
_GRACEFUL: Final = flag("Graceful")
_ERROR: Final = whole("Error_number", "INT UNSIGNED")
_NUMBER: Final = whole("Group_number")
_MESSAGE: Final = shown_text("Message", "TEXT NOT NULL")
_STOPPED: Final = moment("Stopped_at")
_TABLE: Final = Table(LAST_STOP, (ONE_A_CHANNEL, _GRACEFUL, _ERROR, _NUMBER, _MESSAGE, _STOPPED))


class LastStopTable(ChannelTable):
    """Statements on the table for one channel in one schema."""

    def __init__(self, schema: str, channel: str) -> None:
        super().__init__(_TABLE, schema, channel)

    def replace_stop(self, stop: LastStop) -> bytes:
        """Return the statement that records a stop, at the target's time."""
        return self.replace(
            _GRACEFUL.of(stop.graceful),
            _ERROR.of(stop.number),
            _NUMBER.of(stop.group),
            _MESSAGE.of(stop.text),
        )

    def stop(self, row: Row) -> LastStop:
        """Parse a row of `select`."""
        stored = _TABLE.read(row)
        return LastStop(
            int(stored[_STOPPED].timestamp()),
            stored[_GRACEFUL],
            stored[_MESSAGE],
            stored[_ERROR],
            stored[_NUMBER],
        )

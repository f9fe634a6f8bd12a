"""The table slave_last_stop: how a channel's last daemon has ended.

Written when it ends, and removed by the next start: a daemon that is killed leaves none. Nothing
here waits: this module builds statements and parses rows.
"""

from typing import Final

from mtsd.apply.position.worker_info import TABLE_OPTIONS
from mtsd.apply.sql import literals
from mtsd.model.outcome.last_stop import LastStop
from mtsd.wire.connection import Row

LAST_STOP: Final = "slave_last_stop"
_LONGEST_TEXT: Final = 10_000
"""Characters: a TEXT column has room for them at four bytes each."""


class LastStopTable:
    """Statements on the table for one channel in one schema."""

    def __init__(self, schema: str, channel: str) -> None:
        self._name = literals.name(schema) + b"." + literals.name(LAST_STOP)
        self._channel = literals.text(channel)

    def definition(self) -> bytes:
        """Return the statement that creates the table if it does not exist."""
        return f"""CREATE TABLE IF NOT EXISTS {self._name.decode()} (
  `Channel_name` VARCHAR(64) NOT NULL PRIMARY KEY,
  `Graceful` TINYINT UNSIGNED NOT NULL,
  `Error_number` INT UNSIGNED NOT NULL,
  `Group_number` BIGINT UNSIGNED NOT NULL,
  `Message` TEXT NOT NULL,
  `Stopped_at` TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)
) {TABLE_OPTIONS}""".encode()

    def replace(self, stop: LastStop) -> bytes:
        """Return the statement that records a stop, at the target's time."""
        text = stop.text[:_LONGEST_TEXT].encode("utf-8", "replace")
        insert = literals.insert(
            self._name,
            [
                (b"`Channel_name`", self._channel),
                (b"`Graceful`", b"%d" % stop.graceful),
                (b"`Error_number`", b"%d" % stop.number),
                (b"`Group_number`", b"%d" % stop.group),
                (b"`Message`", literals.blob(text)),
            ],
        )
        return b"REPLACE" + insert.removeprefix(b"INSERT")

    def select(self) -> bytes:
        """Return the query for the channel's row, for `stop`."""
        return (
            b"SELECT `Graceful`,`Error_number`,`Group_number`,`Message`,"
            b"CAST(FLOOR(UNIX_TIMESTAMP(`Stopped_at`)) AS SIGNED) FROM %b WHERE `Channel_name`=%b"
            % (self._name, self._channel)
        )

    def stop(self, row: Row) -> LastStop:
        """Parse a row of `select`."""
        graceful, number, group, text, time = row
        return LastStop(
            literals.number(time),
            bool(graceful),
            str(text),
            literals.number(number),
            literals.number(group),
        )

    def delete(self) -> bytes:
        """Return the statement after which nothing is known of a stop."""
        return b"DELETE FROM %b WHERE `Channel_name`=%b" % (self._name, self._channel)

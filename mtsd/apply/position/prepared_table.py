"""The table slave_prepared_transaction: what the channel has prepared and not yet completed.

A row is written with the record that the prepare is applied, and removed with the completion's. So
a restart knows the partitions of what is prepared; and of one that has changed nothing, that the
server may have forgotten it: a restart of the server leaves nothing of it. Nothing here waits.
"""

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from mtsd.apply.position.worker_info import TABLE_OPTIONS
from mtsd.apply.sql import literals
from mtsd.model.xa_xid import XaXid
from mtsd.wire.connection import Row


@dataclass(frozen=True, slots=True)
class PreparedRow:
    """A transaction that group `number` has prepared.

    `alone`: the databases do not tell everything that it depends on. `changes`: whether there is
    something to commit or roll back. `skipped`: the group was passed over because of its error, so
    that what the target may have prepared under this xid is not the channel's.
    """

    xid: XaXid
    number: int
    databases: tuple[str, ...]
    alone: bool
    changes: bool
    skipped: bool = False


_HAS_CHANGED: Final = 1
_SKIPPED: Final = 2


def xid_of_row(format_id: object, gtrid: object, bqual: object) -> XaXid:
    """Return an xid from its columns, with its parts in hex."""
    return XaXid(literals.number(format_id), bytes.fromhex(str(gtrid)), bytes.fromhex(str(bqual)))


class PreparedTable:
    """Statements on the table for one channel in one schema."""

    def __init__(self, schema: str, channel: str) -> None:
        self._name = literals.name(schema) + b".`slave_prepared_transaction`"
        self._channel = literals.text(channel)
        self._of_channel = b" WHERE `Channel_name`=" + self._channel

    def definition(self) -> bytes:
        """Return the statement that creates the table if it does not exist."""
        return f"""CREATE TABLE IF NOT EXISTS {self._name.decode()} (
  `Channel_name` VARCHAR(64) NOT NULL,
  `Format_id` BIGINT UNSIGNED NOT NULL,
  `Gtrid` VARBINARY(64) NOT NULL,
  `Bqual` VARBINARY(64) NOT NULL,
  `Group_number` BIGINT UNSIGNED NOT NULL,
  `Databases` LONGTEXT NOT NULL COMMENT 'JSON',
  `Runs_alone` TINYINT UNSIGNED NOT NULL,
  `Changes` TINYINT UNSIGNED NOT NULL COMMENT '0: it has changed nothing, 2: it was skipped',
  `Prepared_at` TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  PRIMARY KEY (`Channel_name`, `Format_id`, `Gtrid`, `Bqual`)
) {TABLE_OPTIONS}""".encode()

    def select(self) -> bytes:
        """Return the query for all rows of the channel, for `row`."""
        return self.select_of_all() + self._of_channel + b" ORDER BY `Group_number`"

    def select_of_all(self) -> bytes:
        """Return the query for the rows of all channels, for `row`."""
        return (
            b"SELECT `Format_id`,HEX(`Gtrid`),HEX(`Bqual`),`Group_number`,`Databases`,`Runs_alone`,"
            b"`Changes` FROM " + self._name
        )

    def select_of(self, xids: Collection[XaXid]) -> bytes:
        """Return the query for those rows of the channel that have one of these xids, for `row`."""
        listed = b",".join(
            b"(%d,%b,%b)" % (xid.format_id, literals.blob(xid.gtrid), literals.blob(xid.bqual))
            for xid in xids
        )
        return b"%b%b AND (`Format_id`,`Gtrid`,`Bqual`) IN (%b)" % (
            self.select_of_all(), self._of_channel, listed,
        )  # fmt: skip

    def select_of_others(self) -> bytes:
        """Return the query for the channel and the xid (its parts in hex) of other channels' rows.

        What has changed nothing may not be prepared any more, or have been passed over.
        """
        return (
            b"SELECT `Channel_name`,`Format_id`,HEX(`Gtrid`),HEX(`Bqual`) FROM %b"
            b" WHERE `Channel_name`<>%b AND `Changes`=%d"
            % (self._name, self._channel, _HAS_CHANGED)
        )

    def row(self, row: Row) -> PreparedRow:
        """Parse a row of `select`."""
        format_id, gtrid, bqual, number, databases, alone, changes = row
        xid = xid_of_row(format_id, gtrid, bqual)
        names = tuple(str(name) for name in json.loads(str(databases)))
        kind = literals.number(changes)
        return PreparedRow(
            xid,
            literals.number(number),
            names,
            bool(alone),
            changes=kind == _HAS_CHANGED,
            skipped=kind == _SKIPPED,
        )

    def replace(self, prepared: PreparedRow) -> bytes:
        """Return the statement that writes a row; an earlier one of the same xid is overwritten."""
        changes = _SKIPPED if prepared.skipped else prepared.changes * _HAS_CHANGED
        insert = literals.insert(
            self._name,
            [
                (b"`Channel_name`", self._channel),
                (b"`Format_id`", b"%d" % prepared.xid.format_id),
                (b"`Gtrid`", literals.blob(prepared.xid.gtrid)),
                (b"`Bqual`", literals.blob(prepared.xid.bqual)),
                (b"`Group_number`", b"%d" % prepared.number),
                (b"`Databases`", literals.text(json.dumps(prepared.databases))),
                (b"`Runs_alone`", b"%d" % prepared.alone),
                (b"`Changes`", b"%d" % changes),
            ],
        )
        return b"REPLACE" + insert.removeprefix(b"INSERT")

    def delete(self, xid: XaXid) -> bytes:
        """Return the statement that removes the row of a transaction that is completed."""
        return b"DELETE FROM %b%b AND `Format_id`=%d AND `Gtrid`=%b AND `Bqual`=%b" % (
            self._name,
            self._of_channel,
            xid.format_id,
            literals.blob(xid.gtrid),
            literals.blob(xid.bqual),
        )

    def delete_before(self, xid: XaXid, number: int) -> bytes:
        """Return the statement that removes the row of a transaction prepared before that group."""
        return self.delete(xid) + b" AND `Group_number`<%d" % number

    def delete_all(self) -> bytes:
        """Return the statement that forgets what the channel has prepared."""
        return b"DELETE FROM " + self._name + self._of_channel

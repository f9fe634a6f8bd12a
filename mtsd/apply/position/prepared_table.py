"""The table slave_prepared_transaction: what the channel has prepared and not yet completed.

A row is written with the record that the prepare is applied, and removed with the completion's. So
a restart knows the partitions of what is prepared; and of one that has changed nothing, that the
server may have forgotten it: a restart of the server leaves nothing of it. Nothing here waits.
"""

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from mtsd.apply.position.table_declaration import (
    CHANNEL,
    ChannelTable,
    StoredRow,
    Table,
    flag,
    in_hex,
    moment,
    text,
    whole,
)
from mtsd.apply.sql import literals
from mtsd.model.xa_xid import XaXid
from mtsd.wire.exchange import Row


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


_FORMAT: Final = whole("Format_id")
_GTRID: Final = in_hex("Gtrid", "VARBINARY(64) NOT NULL")
_BQUAL: Final = in_hex("Bqual", "VARBINARY(64) NOT NULL")
_XID: Final = (_FORMAT, _GTRID, _BQUAL)
_NUMBER: Final = whole("Group_number")
_DATABASES: Final = text("Databases", "LONGTEXT NOT NULL COMMENT 'JSON'")
_ALONE: Final = flag("Runs_alone")
_CHANGES: Final = whole(
    "Changes",
    "TINYINT UNSIGNED",
    "NOT NULL COMMENT '0: it has changed nothing, 2: it was skipped'",
)
_TABLE: Final = Table(
    "slave_prepared_transaction",
    (CHANNEL, *_XID, _NUMBER, _DATABASES, _ALONE, _CHANGES, moment("Prepared_at", is_read=False)),
    "PRIMARY KEY (`Channel_name`, `Format_id`, `Gtrid`, `Bqual`)",
)


def xid_of_row(format_id: object, gtrid: object, bqual: object) -> XaXid:
    """Return an xid from its columns, with its parts in hex."""
    return XaXid(_FORMAT.parse(format_id), _GTRID.parse(gtrid), _BQUAL.parse(bqual))


class PreparedTable(ChannelTable):
    """Statements on the table for one channel in one schema."""

    def __init__(self, schema: str, channel: str) -> None:
        super().__init__(_TABLE, schema, channel)

    def select_prepared(self) -> bytes:
        """Return the query for all rows of the channel, for `row`."""
        return self.select(condition=b" ORDER BY " + _NUMBER.quoted)

    def select_of_all(self) -> bytes:
        """Return the query for the rows of all channels, for `row`."""
        return b"SELECT %b FROM %b" % (_TABLE.selected, self.name)

    def select_of(self, xids: Collection[XaXid]) -> bytes:
        """Return the query for those rows of the channel that have one of these xids, for `row`."""
        listed = b",".join(
            b"(%d,%b,%b)" % (xid.format_id, literals.blob(xid.gtrid), literals.blob(xid.bqual))
            for xid in xids
        )
        names = b",".join((_FORMAT.quoted, _GTRID.quoted, _BQUAL.quoted))
        return self.select(condition=b" AND (%b) IN (%b)" % (names, listed))

    def select_of_others(self) -> bytes:
        """Return the query for the channel and the xid (its parts in hex) of other channels' rows.

        What has changed nothing may not be prepared any more, or have been passed over.
        """
        selected = b",".join((CHANNEL.selected, *(column.selected for column in _XID)))
        return b"SELECT %b FROM %b WHERE %b AND %b" % (
            selected, self.name, self.of_others, _CHANGES.equals(_HAS_CHANGED),
        )  # fmt: skip

    def row(self, row: Row) -> PreparedRow:
        """Parse a row of `select_prepared`."""
        stored = _TABLE.read(row)
        kind = stored[_CHANGES]
        return PreparedRow(
            _xid(stored),
            stored[_NUMBER],
            tuple(str(name) for name in json.loads(stored[_DATABASES])),
            stored[_ALONE],
            changes=kind == _HAS_CHANGED,
            skipped=kind == _SKIPPED,
        )

    def replace_prepared(self, prepared: PreparedRow) -> bytes:
        """Return the statement that writes a row; an earlier one of the same xid is overwritten."""
        xid = prepared.xid
        return self.replace(
            _FORMAT.of(xid.format_id),
            _GTRID.of(xid.gtrid),
            _BQUAL.of(xid.bqual),
            _NUMBER.of(prepared.number),
            _DATABASES.of(json.dumps(prepared.databases)),
            _ALONE.of(prepared.alone),
            _CHANGES.of(_SKIPPED if prepared.skipped else prepared.changes * _HAS_CHANGED),
        )

    def delete_completed(self, xid: XaXid) -> bytes:
        """Return the statement that removes the row of a transaction that is completed."""
        conditions = (
            _FORMAT.equals(xid.format_id), _GTRID.equals(xid.gtrid), _BQUAL.equals(xid.bqual),
        )  # fmt: skip
        return self.delete(b"".join(b" AND " + each for each in conditions))

    def delete_before(self, xid: XaXid, number: int) -> bytes:
        """Return the statement that removes the row of a transaction prepared before that group."""
        return self.delete_completed(xid) + b" AND %b<%d" % (_NUMBER.quoted, number)


def _xid(stored: StoredRow) -> XaXid:
    return XaXid(stored[_FORMAT], stored[_GTRID], stored[_BQUAL])

"""The table slave_despite_executed: what a person wants applied although it was executed before.

Nothing here waits: this module builds statements and parses rows.
"""

from mtsd.apply.position.position_schema import DESPITE_EXECUTED
from mtsd.apply.position.table_declaration import ONE_A_CHANNEL, ChannelTable, Table, moment, text
from mtsd.model.gtid import GtidSet
from mtsd.wire.exchange import Row

_GTIDS = text("Gtids", "LONGTEXT NOT NULL")
_TABLE = Table(DESPITE_EXECUTED, (ONE_A_CHANNEL, _GTIDS, moment("Said_at", is_read=False)))


class DespiteTable(ChannelTable):
    """Statements on the table for one channel in one schema."""

    def __init__(self, schema: str, channel: str) -> None:
        super().__init__(_TABLE, schema, channel)

    def replace_gtids(self, gtids: GtidSet) -> bytes:
        """Return the statement that records such GTIDs."""
        return self.replace(_GTIDS.of(str(gtids)))

    def gtids(self, rows: list[Row]) -> GtidSet:
        """Parse the rows of `select`: there is one at most."""
        return GtidSet.parse(_TABLE.read(rows[0])[_GTIDS]) if rows else GtidSet()

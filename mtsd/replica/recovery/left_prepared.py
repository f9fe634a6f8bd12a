"""What a restart finds prepared: the channel's records, brought up to date with what it settles."""

from collections.abc import Iterable

import structlog

from mtsd.apply.position.in_doubt_table import InDoubt
from mtsd.apply.position.position_tables import PositionTables
from mtsd.apply.position.prepared_table import PreparedRow
from mtsd.apply.session.xa import listed_xids
from mtsd.binlog.sql.xa_statement import xid_of
from mtsd.model.group import GroupKind
from mtsd.model.statement_text import StatementText
from mtsd.model.xa_xid import XaXid
from mtsd.wire.connection import Connection

log = structlog.get_logger(__name__)

OF_ROWS = b" /* changes rows */"
"""At the end of the statement in the record of a prepare in doubt that contains row events."""
_PREPARE = GroupKind.XA_PREPARE.value
_COMPLETE = GroupKind.XA_COMPLETE.value


async def left_prepared(
    connection: Connection, tables: PositionTables, applied: Iterable[InDoubt]
) -> tuple[list[PreparedRow], list[bytes]]:
    """Return what the channel has prepared, and the statements that make the table say so.

    `applied` are in-doubt groups that have turned out to be applied. Of what such a prepare
    depends on, its record does not tell everything. Raises ServerError, ConnectionLostError.
    """
    table = tables.prepared
    rows = [table.row(row) for row in await connection.query(table.select())]
    known = {row.xid: row for row in rows}
    statements: list[bytes] = []
    listed = await listed_xids(connection)
    for doubt in applied:
        if doubt.kind == _COMPLETE:
            xid = xid_in_doubt(doubt)
            known.pop(xid, None)
            statements.append(table.delete_completed(xid))
        elif doubt.kind == _PREPARE:
            xid = xid_in_doubt(doubt)
            # What has changed nothing, the server forgets when it restarts.
            changes = listed is None or xid in listed or doubt.statement.endswith(OF_ROWS)
            if not (changes or doubt.end.file):
                # A streamed one has changes: it was committed, in one phase.
                continue
            known[xid] = PreparedRow(xid, doubt.number, doubt.group.databases, True, changes)
            statements.append(table.replace_prepared(known[xid]))
    gone = [
        row
        for row in known.values()
        if row.changes and row.xid not in (known if listed is None else listed)
    ]
    if gone:
        log.warning(
            "the target no longer has what was prepared: somebody has completed it, or the server"
            " has rolled it back in a crash; the group that completes it will stop the replica",
            xids=[str(row.xid) for row in gone], groups=[row.number for row in gone],
        )  # fmt: skip
    return list(known.values()), statements


def is_of_xa(doubt: InDoubt) -> bool:
    """Return whether an in-doubt group prepares or completes a transaction."""
    return doubt.kind in {_PREPARE, _COMPLETE}


def xid_in_doubt(doubt: InDoubt) -> XaXid:
    """Return the xid of an in-doubt group that prepares or completes a transaction."""
    return xid_of(StatementText(doubt.statement))

"""What a restart finds prepared: the channel's records, brought up to date with what it settles."""

from collections.abc import Iterable

from mtsd.binlog.xa_statement import xid_of
from mtsd.model.errors import ServerError
from mtsd.model.group import GroupKind
from mtsd.model.session import SessionContext
from mtsd.model.xa_xid import XaXid
from mtsd.target.position_tables import InDoubt, PositionTables
from mtsd.target.prepared_table import PreparedRow
from mtsd.target.xa import NOT_ALLOWED, prepared_xids
from mtsd.wire.connection import Connection

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
    for doubt in applied:
        if doubt.kind == _COMPLETE:
            xid = xid_in_doubt(doubt)
            known.pop(xid, None)
            statements.append(table.delete(xid))
        elif doubt.kind == _PREPARE:
            xid = xid_in_doubt(doubt)
            changes = await _may_have_changes(connection, xid)
            if not (changes or doubt.end.file):
                # A streamed one has changes: it was committed, in one phase.
                continue
            known[xid] = PreparedRow(xid, doubt.number, doubt.group.databases, True, changes)
            statements.append(table.replace(known[xid]))
    return list(known.values()), statements


def is_of_xa(doubt: InDoubt) -> bool:
    """Return whether an in-doubt group prepares or completes a transaction."""
    return doubt.kind in {_PREPARE, _COMPLETE}


def xid_in_doubt(doubt: InDoubt) -> XaXid:
    """Return the xid of an in-doubt group that prepares or completes a transaction."""
    return xid_of(doubt.statement, SessionContext())


async def _may_have_changes(connection: Connection, xid: XaXid) -> bool:
    """Return False for what the server has prepared and does not list: it had no changes."""
    try:
        return xid in await prepared_xids(connection)
    except ServerError as error:
        if error.number != NOT_ALLOWED:
            raise
        return True

"""XA statements on a connection to the target, and what a server has prepared."""

from typing import Final

from mtsd.apply.session.family import TARGETS
from mtsd.apply.sql import literals
from mtsd.model.error_numbers import ER
from mtsd.model.errors import ConnectionLostError, ServerError
from mtsd.model.server import flavour_of
from mtsd.model.xa_xid import XaXid
from mtsd.wire.connection import Connection
from mtsd.wire.understood import understood

UNKNOWN_XID: Final = ER.XAER_NOTA
XID_EXISTS: Final = ER.XAER_DUPID
RB_ROLLBACK: Final = ER.XA_RBROLLBACK
RB_TIMEOUT: Final = ER.XA_RBTIMEOUT
RB_DEADLOCK: Final = ER.XA_RBDEADLOCK
ROLLED_BACK: Final = frozenset({RB_ROLLBACK, RB_TIMEOUT, RB_DEADLOCK})
"""The branch has been rolled back, and only has to be ended."""
RETRY: Final = ER.XA_RETRY
"""An XA COMMIT that could not get a lock; what is prepared still is."""
_HAS_ENDED: Final = ROLLED_BACK | {ER.XAER_RMFAIL, UNKNOWN_XID}


def needs_branch_sessions(connection: Connection) -> bool:
    """Return whether a server keeps what is prepared attached to the session that prepared it."""
    return TARGETS[flavour_of(connection.server_version)].attaches_prepared


def statement(verb: bytes, xid: XaXid) -> bytes:
    """Return an XA statement, which means the same in every sql_mode and character set."""
    return b"XA %b %b,%b,%d" % (
        verb,
        literals.blob(xid.gtrid),
        literals.blob(xid.bqual),
        xid.format_id,
    )


async def roll_back(connection: Connection, xid: XaXid) -> None:
    """Roll back the branch that is open on a session, in whichever state it is.

    Raises ConnectionLostError, after which the server rolls it back, if that is impossible.
    """
    for verb in (b"END", b"ROLLBACK"):
        try:
            await connection.run(statement(verb, xid), 1)
        except ServerError as error:
            if error.number not in _HAS_ENDED:
                raise unusable(connection, error) from error


def unusable(connection: Connection, error: ServerError) -> ConnectionLostError:
    """Close a connection whose branch cannot be ended; return the error that says so."""
    connection.close()
    return ConnectionLostError("target", f"its XA transaction cannot be ended: {error}")


@understood("target")
async def prepared_xids(connection: Connection) -> frozenset[XaXid]:
    """Return the xids of all transactions that a server has prepared.

    Raises ServerError ER.XAER_RMERR without the privilege XA_RECOVER_ADMIN.
    """
    if not TARGETS[flavour_of(connection.server_version)].lists_xids_in_hex:
        return frozenset(_xid(*row) for row in await connection.query(b"XA RECOVER"))
    rows = await connection.query(b"XA RECOVER CONVERT XID")
    return frozenset(_xid(a, b, c, _of_hex(data)) for a, b, c, data in rows)


def _of_hex(data: object) -> bytes:
    return bytes.fromhex(str(data).removeprefix("0x"))


def _xid(format_id: object, gtrid_size: object, bqual_size: object, data: object) -> XaXid:
    parts = data if isinstance(data, bytes) else str(data).encode()
    end = literals.number(gtrid_size)
    bqual = parts[end : end + literals.number(bqual_size)]
    return XaXid(literals.number(format_id), parts[:end], bqual)


async def listed_xids(connection: Connection) -> frozenset[XaXid] | None:
    """Return what a server has prepared; None if the user may not list that."""
    try:
        return await prepared_xids(connection)
    except ServerError as error:
        if error.number != ER.XAER_RMERR:
            raise
        return None

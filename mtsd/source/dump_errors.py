"""Why a source has ended a dump, sends none, or nothing more, as a person is told it."""

import asyncio

from mtsd.model.error_numbers import ER
from mtsd.model.errors import ConnectionLostError, ServerError
from mtsd.model.outcome.reason import Reason, refuse
from mtsd.source.continuation import (
    AHEAD,
    PURGED,
    shown,
)
from mtsd.source.received import Received
from mtsd.wire.connection import Connection
from mtsd.wire.refusal import explained

_CANNOT_SEND = "the source cannot send its binlog from {position} (GTID set '{gtids}'): {answer}"
_NO_EVENT_THERE = (
    "whatever the source says of its disk: if its binary log was begun anew (RESET BINARY LOGS AND"
    " GTIDS), or it was restored, no event begins there, so compare the two servers, then say where"
    " to continue with mtsd position set; if not, the file is damaged, so copy the data again"
)
_REMEDIES = {
    "purged": PURGED.remedy,
    "could not find first log file name": PURGED.remedy,
    "truncated in the middle of event": _NO_EVENT_THERE,
    "bogus data in log event": _NO_EVENT_THERE,
    "anonymous": (
        "set gtid_mode = ON_PERMISSIVE on the source until mtsd has read that: while its gtid_mode"
        " is ON it sends nothing from before it had GTIDs"
    ),
}
"""By a part of the error's text: the number is the same for all of them."""
_TAKEN_OVER = "same server_uuid/server_id"
"""In the text of a MySQL's error."""


def explained_dump(error: ServerError, received: Received) -> str:
    """Return an error as a person is told it; what has been `received` says from where."""
    if error.number != ER.MASTER_FATAL_ERROR_READING_BINLOG:
        return explained(error)
    text = error.text.lower()
    remedy = next((what for sign, what in _REMEDIES.items() if sign in text), AHEAD.remedy)
    gtids = shown(received.gtids) if received.gtids else ""
    answer = error.text.rstrip(".")
    reason = Reason(_CANNOT_SEND, remedy)
    return str(refuse(reason, position=received.position, gtids=gtids, answer=answer))


def is_taken_over(error: ServerError) -> bool:
    """Return whether a source has ended a dump for a newer one of the same replica."""
    if error.number == ER.MASTER_FATAL_ERROR_READING_BINLOG:
        return _TAKEN_OVER in error.text
    return error.number == ER.SLAVE_SAME_ID


async def heard(connection: Connection, longest_silence: float) -> bytes:
    """Return what a source sends next; raises ConnectionLostError, also after seconds of silence.

    A source without news sends signs of life.
    """
    try:
        async with asyncio.timeout(longest_silence):
            return await connection.read()
    except TimeoutError:
        raise ConnectionLostError(
            connection.endpoint.role,
            f"nothing has come from {connection.endpoint} for {longest_silence:g} s, though it"
            " should send a sign of life every [source] heartbeat_period: that server hangs, or"
            " the network is cut",
        ) from None

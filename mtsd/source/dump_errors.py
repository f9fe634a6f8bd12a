"""Why a source has ended a dump, or sends none, as its error says it."""

from mtsd.model.error_numbers import ER
from mtsd.model.errors import ServerError
from mtsd.model.outcome.reason import Reason, refuse
from mtsd.source.continuation import (
    AHEAD,
    PURGED,
    shown,
)
from mtsd.source.received import Received
from mtsd.wire.refusal import explained

_CANNOT_SEND = "the source cannot send its binlog from {position} (GTID set '{gtids}'): {answer}"
_REMEDIES = {
    "purged": PURGED.remedy,
    "could not find first log file name": PURGED.remedy,
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

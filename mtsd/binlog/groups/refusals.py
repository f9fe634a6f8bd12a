"""Why a group that has been read is not applied: the reasons that its statements give."""

from collections.abc import Iterable
from typing import Final

from mtsd.binlog.events.query import INTERRUPTIONS
from mtsd.binlog.sql.one_statement import why_not_one
from mtsd.model.step import QueryEvent

XA_UNDER_RULES: Final = (
    "an XA transaction, which together with replication filters can leave the replica"
    " in an undefined state (MySQL's own replica reports error 3898)"
)


def why_not_applied(applied: QueryEvent, *, loads: bool) -> str:
    """Return what speaks against a statement as it runs on the target; "" if nothing does.

    A LOAD DATA (`loads`) is written anew to be sent, and its text is judged then: the source writes
    its separators with backslashes, whatever these mean in its SQL mode.
    """
    if not loads and (reason := why_not_one(applied.text)):
        return reason
    if applied.error_code in INTERRUPTIONS:
        return (
            f"a statement that was interrupted on the source (error {applied.error_code}),"
            " perhaps after a part of its changes"
        )
    return ""


def torn_apart(channels: Iterable[str]) -> str:
    """Return why a transaction is refused of which other channels replicate a part."""
    return (
        f"changes that this channel replicates, and others for channel"
        f" {', '.join(map(repr, channels))}: they would no longer be one transaction"
    )

"""Texts in the position tables that mtsd did not write, and so cannot read."""

from collections.abc import Callable
from typing import TypeVar

from mtsd.model.errors import NeedsPersonError
from mtsd.model.outcome.reason import Reason, Refused, refuse

UNREADABLE = Reason(
    "{column} of channel {channel!r} in {schema}.{table} holds {held!r}, which mtsd did not write",
    "put back what was there; if that is lost, delete the channel's rows in"
    " {schema}.slave_relay_log_info and {schema}.slave_worker_info, compare the servers, and say"
    " where to continue with mtsd position set{config}",
)
_SHOWN = 60

T = TypeVar("T")


class UnreadableError(NeedsPersonError):
    """Raised for such a text; `refused` says where it is."""

    def __init__(self, refused: Refused) -> None:
        super().__init__(str(refused))
        self.refused = refused


def parsed(parse: Callable[[str], T], held: str, **place: str) -> T:
    """Return the value of a text; `place` is its schema, channel, table and column.

    Raises UnreadableError. Without that it would look like an answer to another query, after which
    to connect again may help.
    """
    try:
        return parse(held)
    except (ValueError, LookupError, TypeError, AttributeError):
        raise UnreadableError(refuse(UNREADABLE, held=held[:_SHOWN], **place)) from None

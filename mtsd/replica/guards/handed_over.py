"""The fence of a channel that was handed over: whoever has it now applies everything already."""

from mtsd.apply.position.handed_over_table import HandedOver
from mtsd.apply.position.position_tables import PositionTables
from mtsd.model.error_numbers import NO_SUCH_TABLE
from mtsd.model.errors import NeedsPersonError, ServerError
from mtsd.model.outcome.command import options
from mtsd.model.outcome.reason import Reason, Refused, refuse
from mtsd.wire.connection import Connection

FENCED = Reason(
    "this channel was handed over to {to} at {since}: both would apply everything",
    "leave mtsd stopped; mtsd {comes_back_by} takes it back",
)
AWAITED = Reason(
    "this channel was handed over to {to} at {since}",
    "it begins by itself once mtsd {comes_back_by} takes it back",
)


def fenced(fence: HandedOver | None) -> Refused | None:
    """Refuse a channel that has a fence."""
    return None if fence is None else _said(FENCED, fence)


def awaited(fence: HandedOver) -> str:
    """Return what a daemon waits for that stands by."""
    return str(_said(AWAITED, fence))


def _said(reason: Reason, fence: HandedOver) -> Refused:
    since = "" if fence.since is None else fence.since.strftime("%Y-%m-%d %H:%M:%S UTC")
    # A switch has two files of settings, and the one of this process may be either.
    own = "" if " --config" in fence.comes_back_by else options()
    return refuse(reason, to=fence.to, since=since, comes_back_by=fence.comes_back_by + own)


async def read_fence(connection: Connection, tables: PositionTables) -> HandedOver | None:
    """Query the fence of a channel; None, too, where nothing was ever handed over.

    Raises ServerError, ConnectionLostError.
    """
    try:
        rows = await connection.query(tables.handed_over.select())
    except ServerError as error:
        if error.number not in NO_SUCH_TABLE:
            raise
        return None
    return tables.handed_over.fence(rows)


async def require_no_fence(connection: Connection, tables: PositionTables) -> None:
    """Raise NeedsPersonError if the channel was handed over; ServerError, ConnectionLostError."""
    refused = fenced(await read_fence(connection, tables))
    if refused is not None:
        raise NeedsPersonError(str(refused))

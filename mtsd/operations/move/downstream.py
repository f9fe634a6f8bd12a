"""What replicas of the target need, once somebody else applies the source there."""

from typing import Final

from mtsd.config import Settings
from mtsd.model.error_numbers import NOT_ALLOWED
from mtsd.model.errors import ServerError
from mtsd.operations.move.admin import AdminSession
from mtsd.wire.replica_status import registered_replicas
from mtsd.wire.traits import ServerTraits

_KEEP: Final = frozenset({"preserve", "mirror"})


async def downstream(session: AdminSession, target: ServerTraits, settings: Settings) -> list[str]:
    """Return lines about the replicas that read from the target, as `takeover` finds them.

    Raises ServerError, ConnectionLostError.
    """
    who = await readers_of(session, target)
    if not who or settings.target.gtid in _KEEP or not target.gtid_mode:
        return [who] if who else []
    they_lack = (
        f"{who}: they go on by themselves, but what mtsd applies has GTIDs of the target there"
        ' ([target] gtid = "off"), so that they cannot change over to the source by GTID'
    )
    return [they_lack]


async def readers_of(session: AdminSession, target: ServerTraits) -> str:
    """Return which replicas read from the target, in words; "" if none, or nobody may see them."""
    try:
        found = await registered_replicas(await session.connection(), target.version)
    except ServerError as error:
        if error.number not in NOT_ALLOWED:
            raise
        return ""
    ids = ", ".join(str(each.server_id) for each in found)
    return f"replicas read from the target (server_id {ids})" if ids else ""

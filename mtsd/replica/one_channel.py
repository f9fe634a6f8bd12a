"""A source may be replicated on one channel of a target only: on two, all is applied twice.

The channels' rows say which sources they have; a lock named after the source, which the coordinator
holds as long as it lives, keeps apart two daemons that start at once, or in two position schemas.
"""

from collections.abc import Iterable

from mtsd.model.errors import NeedsPersonError
from mtsd.model.reason import Reason, Refused, refuse
from mtsd.target.fencing import release_lock, take_lock
from mtsd.target.position_tables import PositionTables
from mtsd.wire.connection import Connection

ON_ANOTHER_CHANNEL = Reason(
    "channel '{other}' of this target replicates the same source, {uuid}: everything would be"
    " applied twice",
    "replicate it on one channel; if '{other}' is no longer used, mtsd position reset --set"
    " replica.channel={other} forgets it",
)
RUNS_ALREADY = Reason(
    "another mtsd replicates the same source, {uuid}, to this target: everything would be applied"
    " twice",
    "stop it; its position is in another schema ([target] schema)",
)
_PATIENCE_S = 2
_ATTEMPTS = 5


def rival(channels: Iterable[tuple[str, str]], own: str, source_uuid: str) -> Refused | None:
    """Decide whether a channel other than `own` already has the source.

    `channels` are names, each with its source's UUID.
    """
    for name, uuid in channels:
        if name != own and uuid and uuid.lower() == source_uuid.lower():
            return refuse(ON_ANOTHER_CHANNEL, other=name, uuid=source_uuid)
    return None


async def claim_source(connection: Connection, tables: PositionTables, source_uuid: str) -> None:
    """Take the source for the life of the session, before the channel's row names it.

    Raises NeedsPersonError if another channel has it, ServerError, ConnectionLostError.
    """
    lock = _lock_name(source_uuid)
    for attempt in range(1, _ATTEMPTS + 1):
        held = await take_lock(connection, lock, _PATIENCE_S)
        # A daemon that starts at the same time gets the lock first, and then its row.
        rows = await connection.query(tables.select_sources())
        channels = [(str(name), str(uuid)) for name, uuid in rows]
        refused = rival(channels, tables.channel, source_uuid)
        if refused is None and held:
            return
        if held:
            await release_lock(connection, lock)
        if refused is not None:
            raise NeedsPersonError(str(refused))
        if attempt == _ATTEMPTS:
            raise NeedsPersonError(str(refuse(RUNS_ALREADY, uuid=source_uuid)))


async def release_source(connection: Connection, source_uuid: str) -> None:
    """Release a source that the channel has left. Raises ServerError, ConnectionLostError."""
    await release_lock(connection, _lock_name(source_uuid))


def _lock_name(source_uuid: str) -> str:
    return f"mtsd-source:{source_uuid.lower()}"

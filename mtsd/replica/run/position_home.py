"""Whether the position tables are at home on the target, or a copy of another one's."""

import structlog

from mtsd.apply.position.position_tables import PositionTables
from mtsd.apply.position.target_identity import TargetIdentity, copied
from mtsd.apply.session.retry import write
from mtsd.model.errors import NeedsPersonError
from mtsd.replica.core.earlier_runs import EarlierRuns
from mtsd.replica.recovery.recovery import read_channel
from mtsd.wire.connection import Connection
from mtsd.wire.traits import ServerTraits

log = structlog.get_logger(__name__)


def identity_now(traits: ServerTraits) -> TargetIdentity:
    """Return the identity of the target of a session with these traits."""
    return TargetIdentity(traits.uuid, traits.place)


async def read_home(connection: Connection, tables: PositionTables) -> TargetIdentity | None:
    """Return on which server the channel's position is at home; None if that is not recorded."""
    rows = await connection.query(tables.identity.select())
    return tables.identity.identity(rows[0]) if rows else None


async def record_home(
    connection: Connection, tables: PositionTables, now: TargetIdentity, earlier: EarlierRuns
) -> None:
    """Record that the position is at home on this target, the one `now`.

    Raises NeedsPersonError if it is another one's, ServerError, ConnectionLostError.
    """
    home = await read_home(connection, tables)
    before, earlier.home = earlier.home, now
    if home == now:
        return
    refused = copied(tables.schema, home, now, before)
    # Without a position nothing of another one is gone on with.
    if refused is not None and await read_channel(connection, tables) is not None:
        raise NeedsPersonError(str(refused))
    if home is not None and home.uuid != now.uuid:
        log.warning(
            "the target is another server now, which has its position: a replica of the former one",
            before=f"{home.uuid} ({home.place})", now=f"{now.uuid} ({now.place})",
        )  # fmt: skip
    elif home is not None:
        log.warning(
            "the target has another host name or port than before: if it is a copy of the server"
            " before, with all of its files, run mtsd position adopt on one of the two",
            before=home.place, now=now.place, uuid=now.uuid,
        )  # fmt: skip
    await write(connection, [tables.identity.replace_identity(now)])

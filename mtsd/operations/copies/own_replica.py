"""The place that a server's own replica has stopped at: `mtsd` takes over from it.

With GTIDs that is everything that it has executed of the source, which survives a crash. By file it
is Exec_Source_Log_Pos, unless a worker has gone past it: after a crash of several workers only the
server itself can fill what is between (START REPLICA UNTIL SQL_AFTER_MTS_GAPS).
"""

from collections.abc import Iterable

from mtsd.model.error_numbers import NOT_ALLOWED
from mtsd.model.errors import NeedsPersonError, ServerError
from mtsd.model.gtid import GtidSet
from mtsd.model.outcome.reason import Reason, Refused, refuse
from mtsd.model.position import Position
from mtsd.model.server import ServerVersion
from mtsd.operations.copies.copied import Copied
from mtsd.replica.guards.own_replica import KnownServer, channels_of
from mtsd.wire.connection import Connection
from mtsd.wire.family import SERVERS
from mtsd.wire.replica_status import ReplicaStatus, own_channels

STILL_APPLIES = Reason(
    "channel {channel!r} of the server's own replica still applies: it has no place that lasts",
    "STOP REPLICA there, and take the place then",
)
NO_CHANNEL = Reason(
    "the target's own replica has no channel that reads from {source}",
    "point [source] at the server that it reads from, or say the place with FILE:POS or gtid:SET",
)
PAST_THE_MARK = Reason(
    "a worker of the target's own replica is at {worker}, past the place {place} of its channel:"
    " some transactions between are applied, and some are not",
    "let the server fill that: START REPLICA UNTIL SQL_AFTER_MTS_GAPS, wait until its SQL thread"
    " has stopped, STOP REPLICA, and try again",
)
NOT_SHOWN = Reason(
    "where the target's own replica is cannot be seen: {error}",
    "GRANT {privilege} ON *.* on the target to the user of [target] user",
)
UNSEEN = Reason(
    "whether a worker of the target's own replica is past its place cannot be seen: {error}",
    "GRANT SELECT ON mysql.slave_worker_info on the target to the user of [target] user",
)


def copied_by(channel: ReplicaStatus) -> Copied:
    """Return the place of a channel. Raises NeedsPersonError if it still applies."""
    if channel.applying:
        raise NeedsPersonError(str(refuse(STILL_APPLIES, channel=channel.channel)))
    return Copied(
        "the server's own replica",
        channel.executed if channel.executed.file else None,
        GtidSet.parse(channel.executed_gtids),
        channel.source_uuid,
        of_replica=True,
    )


async def copied_by_own_replica(
    connection: Connection, target: ServerVersion, source: KnownServer
) -> Copied:
    """Return the place of the channel of the target, at `connection`, that reads from the source.

    Raises NeedsPersonError, ServerError, ConnectionLostError.
    """
    family = SERVERS[target.flavour]
    try:
        channels = await own_channels(connection, target)
    except ServerError as error:
        if error.number not in NOT_ALLOWED:
            raise
        refused = refuse(NOT_SHOWN, error=error.text, privilege=family.shows_replica)
        raise NeedsPersonError(str(refused)) from None
    matching = [channel for channel, matches in channels_of(channels, source) if matches]
    if len(matching) != 1:
        raise NeedsPersonError(
            str(refuse(NO_CHANNEL, source=f"{source.host}:{source.port} ({source.uuid})"))
        )
    copied = copied_by(matching[0])
    if not copied.gtids and not family.has_domains:
        gap = await gap_of(connection, matching[0])
        if gap is not None:
            raise NeedsPersonError(str(gap))
    return copied


def past_the_mark(
    channel: ReplicaStatus, workers: Iterable[tuple[str, Position]]
) -> Refused | None:
    """Refuse if a worker is past the place of a channel; `workers` are (channel, place) of each."""
    own = [place for name, place in workers if name == channel.channel and place.file]
    furthest = max(own, default=channel.executed)
    if furthest <= channel.executed:
        return None
    return refuse(PAST_THE_MARK, worker=furthest, place=channel.executed)


async def gap_of(connection: Connection, channel: ReplicaStatus) -> Refused | None:
    """Refuse a channel of a MySQL that has transactions missing between its workers.

    Raises NeedsPersonError if that cannot be seen; ServerError, ConnectionLostError.
    """
    try:
        rows = await connection.query(
            "SELECT Channel_name, Master_log_name, Master_log_pos FROM mysql.slave_worker_info"
        )
    except ServerError as error:
        if error.number not in NOT_ALLOWED:
            raise
        raise NeedsPersonError(str(refuse(UNSEEN, error=error.text))) from None
    return past_the_mark(
        channel,
        [(str(name), Position(str(file), int(str(offset)))) for name, file, offset in rows],
    )

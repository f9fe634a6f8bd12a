"""A server's own replica beside mtsd: with the same source, both apply everything.

Nothing fails then: rows of tables without a key are there twice, others go back to old values for a
moment. What counts is the applier: it also applies what is in the relay log while nothing more is
received. A receiver alone changes nothing, and some keep one for the way back, so it is only told,
like a channel that is stopped. The filters of the server's own replica are not considered: they
let statements pass by their default database, so that they do not say what it changes.

Of a MariaDB only the server_id of its source is known, and that only since it has last connected;
of a MySQL the server_uuid, once it has ever connected. Until then host and port are all there is.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mtsd.config.settings import SourceSettings
from mtsd.model.error_numbers import NOT_ALLOWED
from mtsd.model.errors import ServerError
from mtsd.model.outcome.findings import Findings
from mtsd.model.outcome.reason import Reason, Refused, refuse
from mtsd.model.server import Flavour, ServerVersion, flavour_of, server_id_of, version_of
from mtsd.wire.connection import Connection
from mtsd.wire.family import SERVERS
from mtsd.wire.replica_status import ReplicaStatus, own_channels
from mtsd.wire.traits import ServerTraits

RUNS = Reason(
    "the target itself replicates from the same source, {source} (channel {channel!r} of its own"
    " replica): everything would be applied twice",
    "STOP REPLICA on the target, and let mtsd go on where that has stopped: mtsd takeover{config}"
    " does both. If each is to replicate a part of the databases, let mtsd do both, on two channels"
    " with [filter] do_db: the filters of the server's own replica are not considered",
)
CONFIGURED = Reason(
    "the target's own replica has the same source, {source} (channel {channel!r}), and applies"
    " nothing now: with START REPLICA, or when the target starts without skip_replica_start,"
    " everything would be applied twice",
    "RESET REPLICA ALL on the target once that channel is no longer needed",
)
UNKNOWN = Reason(
    "channel {channel!r} of the target's own replica ({source}) is not connected, so which server"
    " that is is not known: if it is the same source, everything would be applied twice",
    "RESET REPLICA ALL on the target once that channel is no longer needed",
)
UNSEEN = Reason(
    "whether the target itself replicates from the same source cannot be seen: {error}",
    "GRANT {privilege} ON *.* on the target to the user of [target] user",
)


@dataclass(frozen=True, slots=True)
class KnownServer:
    """What is known of a server: its identity (`ServerTraits.uuid`), its id, and where it is.

    `server_id` is 0 and `host` "" if they are not known.
    """

    uuid: str
    server_id: int = 0
    host: str = ""
    port: int = 0


def channels_of(
    channels: Iterable[ReplicaStatus], server: KnownServer
) -> Iterator[tuple[ReplicaStatus, bool]]:
    """Yield the channels that read from a server, or may, and whether that is known.

    One whose source is not known counts as reading from the server at the same host and port.
    """
    server_id = server.server_id or server_id_of(server.uuid)
    for channel in channels:
        if channel.source_uuid:
            if channel.source_uuid == server.uuid.lower():
                yield channel, True
        elif channel.source_server_id and server_id:
            if channel.source_server_id == server_id:
                yield channel, True
        else:
            same_place = (channel.host, channel.port) == (server.host, server.port)
            yield channel, same_place


def beside(channels: Iterable[ReplicaStatus], source: KnownServer) -> Findings:
    """Decide whether channels of the target's own replica let mtsd replicate from the source."""
    stops: list[Refused] = []
    warns: list[Refused] = []
    for channel, known in channels_of(channels, source):
        reason = UNKNOWN if not known else RUNS if channel.applying else CONFIGURED
        refused = refuse(reason, channel=channel.channel, source=f"{channel.host}:{channel.port}")
        (stops if reason is RUNS else warns).append(refused)
    return Findings(tuple(stops), tuple(warns))


def unseen(target: Flavour, error: str) -> Findings:
    """Return what is found where the target does not show its own replica."""
    privilege = SERVERS[target].shows_replica
    return Findings(warns=(refuse(UNSEEN, error=error, privilege=privilege),))


async def require_alone(
    connection: Connection, settings: SourceSettings, source: ServerTraits
) -> None:
    """Raise NeedsPersonError if the replica of the target, to which `connection` is, runs.

    A position that is recorded in the meantime would be wrong when it has stopped. Raises
    ServerError, ConnectionLostError.
    """
    target = ServerVersion(
        flavour_of(connection.server_version), version_of(connection.server_version) or (0, 0, 0)
    )
    known = KnownServer(source.uuid, source.server_id, settings.host, settings.port)
    (await read_beside(connection, target, known)).require()


async def read_beside(
    connection: Connection, target: ServerVersion, source: KnownServer
) -> Findings:
    """Query the target's own replica and decide. Raises ServerError, ConnectionLostError."""
    try:
        channels = await own_channels(connection, target)
    except ServerError as error:
        if error.number not in NOT_ALLOWED:
            raise
        return unseen(target.flavour, error.text)
    return beside(channels, source)

"""Circles: the source is itself fed by the target, and every change would go round for ever.

What mtsd applies is in the target's binary log under the target's server_id, so nothing in it tells
the source that it is its own. The evidence is on the source: a position of an mtsd whose source is
the target, or a channel of the source's own replica. It stops mtsd if that one runs now (an mtsd
holds a lock while it does) and is a warning if not: each looks when it starts, and when it connects
to its source again. One that is fenced off, as the way there is after a switch, cannot start: it is
none. A chain A to B to C is no circle, and a circle of more than two is not seen.

With GTIDs that are kept in both directions (`[target] gtid = "preserve"`) nothing goes round: what
a server has executed is not applied again. An mtsd that keeps them holds a second lock.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from mtsd.apply.position.lock_names import CHANNEL, PRESERVING, read_locks
from mtsd.apply.position.other_schemas import schemas_with_positions
from mtsd.apply.position.position_tables import PositionTables
from mtsd.apply.sql import literals
from mtsd.model.error_numbers import NOT_ALLOWED
from mtsd.model.errors import ServerError
from mtsd.model.outcome.findings import Findings
from mtsd.model.outcome.reason import Reason, Refused, refuse
from mtsd.model.server import ServerVersion
from mtsd.replica.guards.handed_over import read_fence
from mtsd.replica.guards.own_replica import KnownServer, channels_of
from mtsd.wire.connection import Connection
from mtsd.wire.replica_status import ReplicaStatus, own_channels

_REMEDY: Final = (
    'set [target] gtid = "preserve" for both, if both servers are MySQL with gtid_mode = ON; else'
    " stop one of them (mtsd position reset forgets an old position)"
)
LOOPS = Reason(
    "another mtsd replicates from the target to the source (channel {channel!r}, its position is in"
    " {schema} on the source): every change would go round in a circle, for ever",
    _REMEDY,
)
WOULD_LOOP = Reason(
    "an mtsd that does not run now has replicated from the target to the source (channel"
    " {channel!r}, its position is in {schema} on the source): if both ran, every change would go"
    " round in a circle",
    _REMEDY,
)
OWN_LOOPS = Reason(
    "the source's own replica applies what mtsd writes to the target (channel {channel!r}): every"
    " change would go round in a circle, for ever",
    'STOP REPLICA on the source, or set [target] gtid = "preserve", if both servers are MySQL with'
    " gtid_mode = ON",
)
UNSEEN = Reason(
    "whether the source is itself fed by the target, in a circle, cannot be seen",
    "GRANT SELECT ON {schema}.* on the source to user {user}",
)


@dataclass(frozen=True, slots=True)
class Feeding:
    """A position that is stored on the source, of an mtsd that writes to it."""

    schema: str
    channel: str
    source_uuid: str
    runs: bool
    """Whether a daemon holds that channel now."""
    preserves: bool
    """Whether it keeps the GTIDs of its source."""
    fenced: bool = False
    """Whether it was handed over, so that it does not start."""


def circle(
    feeding: Iterable[Feeding],
    channels: Iterable[ReplicaStatus],
    target: KnownServer,
    *,
    preserves: bool,
) -> Findings:
    """Decide by what is on the source; `channels` are those of its own replica.

    `preserves`: this mtsd keeps the source's GTIDs on the target.
    """
    stops: list[Refused] = []
    warns: list[Refused] = []
    for each in feeding:
        if each.source_uuid.lower() != target.uuid.lower():
            continue
        # One that starts later looks whether this one keeps them.
        if not each.runs and (preserves or each.fenced):
            continue
        if preserves and each.preserves:
            continue
        reason = LOOPS if each.runs else WOULD_LOOP
        refused = refuse(reason, channel=each.channel, schema=each.schema)
        (stops if each.runs else warns).append(refused)
    if not preserves:
        stops += (
            refuse(OWN_LOOPS, channel=channel.channel)
            for channel, known in channels_of(channels, target)
            if known and channel.applying
        )
    return Findings(tuple(stops), tuple(warns))


def cannot_see(schema: str, user: str) -> Findings:
    """Return what is found where the source does not show its positions."""
    return Findings(warns=(refuse(UNSEEN, schema=schema, user=user),))


async def read_feeding(connection: Connection) -> tuple[list[Feeding], list[str]]:
    """Query a source; return also the schemas with positions that the user may not read.

    Raises ServerError, ConnectionLostError.
    """
    feedings: list[Feeding] = []
    hidden: list[str] = []
    for schema in await schemas_with_positions(connection):
        try:
            feedings += await _feeding_of(connection, schema)
        except ServerError as error:
            if error.number not in NOT_ALLOWED:
                raise
            hidden.append(schema)
    return feedings, hidden


async def _feeding_of(connection: Connection, schema: str) -> list[Feeding]:
    rows = await connection.query(
        b"SELECT `Channel_name`, `Source_uuid` FROM %b.`slave_relay_log_info`"
        % literals.name(schema)
    )
    feedings: list[Feeding] = []
    for name, uuid in rows:
        locks = await read_locks(connection, schema, str(name))
        # An mtsd that runs has made it.
        runs: object = False
        preserves: object = False
        if locks is not None:
            names = (locks.session(each).encode() for each in (CHANNEL, PRESERVING))
            query = b"SELECT IS_USED_LOCK('%b') IS NOT NULL, IS_USED_LOCK('%b') IS NOT NULL"
            ((runs, preserves),) = await connection.query(query % tuple(names))
        fence = await read_fence(connection, PositionTables(schema, str(name)))
        feedings.append(
            Feeding(schema, str(name), str(uuid), bool(runs), bool(preserves), fence is not None)
        )
    return feedings


async def read_circle(
    connection: Connection, source: ServerVersion, target: KnownServer, *, preserves: bool
) -> Findings:
    """Query the source and decide. Raises ServerError, ConnectionLostError."""
    feeding, hidden = await read_feeding(connection)
    try:
        channels = await own_channels(connection, source)
    except ServerError as error:
        if error.number not in NOT_ALLOWED:
            raise
        channels = []
    findings = circle(feeding, channels, target, preserves=preserves)
    for schema in hidden:
        findings |= cannot_see(schema, connection.endpoint.user)
    return findings

"""A source is replicated on several channels of a target only if they share no database.

On two channels that do, changes would be applied twice. The channels' rows say which sources and
filters they have. That may change only under a lock named after the source, so it is seen by
whoever starts next. Two daemons that have their rows in two position schemas are kept apart by
`other_daemons`.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mtsd.apply.position.fencing import release_locks, take_lock
from mtsd.apply.position.lock_names import LockNames
from mtsd.apply.position.position_tables import PositionTables
from mtsd.apply.session.retry import write
from mtsd.filter.channels import meeting
from mtsd.filter.rules import NO_RULES, Rules
from mtsd.model.errors import NeedsPersonError
from mtsd.model.outcome.reason import Reason, Refused, refuse
from mtsd.replica.guards.other_daemons import RUNS_ALREADY, own_place, release_places
from mtsd.wire.connection import Connection

_REMEDY = (
    "if '{other}' is no longer used, mtsd position reset{config} --set replica.channel={other}"
    " forgets it"
)
ON_ANOTHER_CHANNEL = Reason(
    "channel '{other}' of this target replicates the same source, {uuid}: everything would be"
    " applied twice",
    "replicate it on one channel, or give each channel databases of its own ([filter] do_db);"
    f" {_REMEDY}",
)
MEETING = Reason(
    "channel '{other}' of this target replicates the same source, {uuid}, and the filters of both"
    " let database {database} pass: it would be applied twice",
    f"give each channel databases of its own ([filter] do_db); {_REMEDY}",
)
_TIMEOUT_S = 2
_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel of the target: its name, its source's UUID, and its filter."""

    name: str
    source_uuid: str
    rules: Rules = NO_RULES


def rival(channels: Iterable[Channel], own: Channel, *, fold_case: bool = False) -> Refused | None:
    """Decide whether another channel prevents this one from replicating its source.

    `fold_case`: the target does not distinguish names by case.
    """
    uuid = own.source_uuid
    for other in _of_source(channels, own):
        database = meeting(own.rules, other.rules, fold_case=fold_case)
        if database is None:
            continue
        if own.rules and other.rules:
            return refuse(MEETING, other=other.name, uuid=uuid, database=database)
        return refuse(ON_ANOTHER_CHANNEL, other=other.name, uuid=uuid)
    return None


def _of_source(channels: Iterable[Channel], own: Channel) -> list[Channel]:
    return [
        channel
        for channel in channels
        if channel.name != own.name
        and channel.source_uuid
        and channel.source_uuid.lower() == own.source_uuid.lower()
    ]


async def claim_source(
    connection: Connection,
    tables: PositionTables,
    locks: LockNames,
    source_uuid: str,
    rules: Rules,
    *,
    then: Sequence[bytes] = (),
    fold_case: bool = False,
) -> Mapping[str, Rules]:
    """Take the source for the life of the session, and record that in one transaction.

    `then` are statements of the same transaction, after which the channel's row names the source.
    Returns the filters of the source's other channels, by their names. Raises NeedsPersonError if
    another channel has a part of what the rules let pass, ServerError, ConnectionLostError.
    """
    own = Channel(tables.channel, source_uuid, rules)
    start = locks.start(source_uuid)
    beside: Refused | None = None
    for attempt in range(1, _ATTEMPTS + 1):
        # A daemon that starts at the same time gets this lock first, and then its row.
        alone = await take_lock(connection, start, _TIMEOUT_S)
        try:
            channels = await read_channels(connection, tables)
            refused = rival(channels, own, fold_case=fold_case)
            if refused is not None:
                raise NeedsPersonError(str(refused))
            others = _of_source(channels, own)
            if alone:
                names = [other.name for other in others]
                beside = await own_place(connection, tables.schema, locks, source_uuid, names)
                if beside is None:
                    await write(connection, [tables.replace_rules(rules.text()), *then])
                    return {other.name: other.rules for other in others}
        except asyncio.CancelledError:
            # An answer is still to come, and would be taken for that of the release. Whoever
            # cancels closes the session, which releases it too.
            alone = False
            raise
        finally:
            if alone:
                await release_locks(connection, [start])
        if attempt < _ATTEMPTS:
            await asyncio.sleep(_TIMEOUT_S)
    beside = beside or refuse(RUNS_ALREADY, uuid=source_uuid, schema=tables.schema)
    raise NeedsPersonError(str(beside))


async def read_channels(
    connection: Connection, tables: PositionTables, *, rules: bool = True
) -> list[Channel]:
    """Return all channels of the position tables; `rules`: the table of their filters exists."""
    rows = await connection.query(tables.select_sources(rules=rules))
    return [
        Channel(str(name), str(uuid), Rules.parse(str(recorded)) if recorded else NO_RULES)
        for name, uuid, recorded in rows
    ]


async def release_source(connection: Connection, source_uuid: str) -> None:
    """Release a source that the channel has left. Raises ServerError, ConnectionLostError."""
    await release_places(connection, source_uuid)

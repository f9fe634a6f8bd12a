"""Daemons of one source that have their positions in two schemas of a target do not run together.

They share no secret, so the locks by which they could see each other have names that anybody can
know: one for each place among the source's channels, which a coordinator holds as long as it lives.
A held place alone therefore proves nothing where mtsd can look for itself: who may read all
databases sees the other schemas, their tokens, and by these whether a daemon of one holds its own
locks. Such a daemon is refused; any other holder of a place is a stranger, and only told. Where a
schema may be hidden, a held place is refused, since changes that are applied twice are worse than a
daemon that does not start; the message then says who holds it, and what lets mtsd see more.

Whoever begins holds its schema's lock of the source from before it takes a place until its row is
written, and looks again once it has its place. So of two at once, one sees the other: places are
read first, then that lock, and the rows after it.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import structlog

from mtsd.apply.position.fencing import release_locks, take_lock
from mtsd.apply.position.lock_holder import holder_text, sessions
from mtsd.apply.position.lock_names import CHANNEL, LockNames, read_locks
from mtsd.apply.position.other_schemas import schemas_with_positions, sees_all_databases
from mtsd.apply.sql import literals
from mtsd.model.error_numbers import NOT_ALLOWED
from mtsd.model.errors import ServerError
from mtsd.model.outcome.reason import Reason, Refused, refuse
from mtsd.wire.connection import Connection

RUNS_ALREADY = Reason(
    "another mtsd replicates the same source, {uuid}, to this target: everything would be applied"
    " twice",
    "stop it; its position is in schema {schema} ([target] schema)",
)
MAY_RUN = Reason(
    "another mtsd may replicate the same source, {uuid}, to this target, and everything would be"
    " applied twice: {held}",
    "stop it, or grant [target] user SELECT on *.*, by which mtsd sees whether it is one",
)
_PLACES = 16
"""The most channels of one source."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """What the other position schemas say of a source."""

    running: tuple[str, ...] = ()
    """Schemas of daemons that run now."""
    hides: bool = False
    """Whether there may be one that the user may not see."""


def beside(
    uuid: str, strange: Collection[int], elsewhere: Elsewhere, held: str = ""
) -> Refused | None:
    """Decide whether a daemon that is not of the own schema may replicate the source as well.

    `strange` are the connections that hold a place and are not known, and `held` says who they are.
    """
    for schema in elsewhere.running:
        return refuse(RUNS_ALREADY, uuid=uuid, schema=schema)
    if strange and elsewhere.hides:
        return refuse(MAY_RUN, uuid=uuid, held=held)
    return None


async def own_place(
    connection: Connection, schema: str, locks: LockNames, source_uuid: str, others: Iterable[str]
) -> Refused | None:
    """Take a place among the source's channels, or return why another daemon prevents that.

    The session holds `locks.start(source_uuid)`; `others` are the source's other channels in the
    own `schema`. Raises ServerError, ConnectionLostError.
    """
    places = [_place(source_uuid, place) for place in range(_PLACES)]
    coordinators = [LockNames(locks.token, name).session(CHANNEL) for name in others]
    # CONNECTION_ID() would be the pseudo_thread_id.
    own_id = connection.thread_id
    taken = ""
    while True:
        holders = await _holders(connection, [*places, *coordinators])
        known = {holders[lock] for lock in coordinators} | {own_id, None}
        strange = [id_ for place in places if (id_ := holders[place]) not in known and id_]
        elsewhere = await _elsewhere(connection, schema, source_uuid, known)
        text = await _described(connection, strange) if strange else ""
        refused = beside(source_uuid, strange, elsewhere, text)
        if refused is not None:
            if taken:
                await release_locks(connection, [taken])
            return refused
        free = [place for place in places if holders[place] is None]
        if taken or own_id in (holders[place] for place in places) or not free:
            if strange:
                log.warning("a stranger holds a lock of the source", source=source_uuid, held=text)
            return None
        if await take_lock(connection, free[0]):
            taken = free[0]


async def _described(connection: Connection, holders: Sequence[int]) -> str:
    return holder_text(holders[0], (await sessions(connection)).get(holders[0]), own=False)


async def _holders(connection: Connection, locks: Sequence[str]) -> dict[str, int | None]:
    """Return the connection that holds each lock, None for one that is free."""
    asked = ",".join(f"IS_USED_LOCK('{lock}')" for lock in locks)
    (row,) = await connection.query(f"SELECT {asked}")
    ids = (None if id_ is None else int(str(id_)) for id_ in row)
    return dict(zip(locks, ids, strict=True))


async def _elsewhere(
    connection: Connection, own_schema: str, uuid: str, known: Collection[int | None]
) -> Elsewhere:
    running: list[str] = []
    hides = not await sees_all_databases(connection)
    for schema in await schemas_with_positions(connection, own_schema):
        try:
            holders = await _holders_in(connection, schema, uuid)
        except ServerError as error:
            if error.number not in NOT_ALLOWED:
                raise
            hides = True
            continue
        # A copy of the own schema has the same token, and so the same locks.
        if not holders <= set(known):
            running.append(schema)
    return Elsewhere(tuple(running), hides)


async def _holders_in(connection: Connection, schema: str, uuid: str) -> set[int | None]:
    """Return the connections of the daemons of another schema that have the source."""
    locks = await read_locks(connection, schema, "")
    if locks is None:
        # A daemon makes the token before it takes anything.
        return set()
    beginning = await _holders(connection, [locks.start(uuid)])
    rows = await connection.query(
        b"SELECT `Channel_name` FROM %b.`slave_relay_log_info` WHERE `Source_uuid`=%b"
        % (literals.name(schema), literals.text(uuid))
    )
    names = [LockNames(locks.token, str(name)).session(CHANNEL) for (name,) in rows]
    going_on = await _holders(connection, names) if names else {}
    return {*beginning.values(), *going_on.values()}


async def release_places(connection: Connection, source_uuid: str) -> None:
    """Release the session's place. Raises ServerError, ConnectionLostError."""
    await release_locks(connection, [_place(source_uuid, place) for place in range(_PLACES)])


def _place(source_uuid: str, place: int) -> str:
    lock = f"mtsd-source:{source_uuid.lower()}"
    return f"{lock}:{place}" if place else lock

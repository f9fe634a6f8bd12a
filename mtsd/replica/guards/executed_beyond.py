"""What the target has executed of its source's transactions, past the position of the channel.

mtsd would apply them a second time. There are such where the server's own replica has gone on after
mtsd, where the position is of an older backup, or where it was set to a wrong place. Only GTIDs
show it. Under "preserve" nothing is refused: the target passes over what it has executed itself.
The daemon, `mtsd position set` and `mtsd check` all decide here.

MariaDB's numbers count within a domain, and what mtsd writes there has the target's own server id.
So only what other servers have written is compared, and only in domains in which the source's
numbers grow: elsewhere a number does not tell what comes before.
"""

from dataclasses import dataclass, field

from mtsd.apply.position.executed_gtids import held_gtids
from mtsd.apply.position.position_tables import PositionTables
from mtsd.model.gtid import GtidSet
from mtsd.model.outcome.reason import Reason, Refused, refuse
from mtsd.replica.core.gtid_mode import Gtids
from mtsd.source.continuation import LONGEST_SET, shown
from mtsd.wire.connection import Connection
from mtsd.wire.traits import ServerTraits
from mtsd.wire.understood import understood

WORD = "--despite-executed-gtids"
"""The option of `mtsd position set` by which a person says that the changes are not there."""
EXECUTED_BEYOND = Reason(
    "the target has executed {count} of the source's transactions after the position {place}, which"
    " would be applied a second time: {gtids}",
    "if the target has their changes (its own replica has run, or the position is an old one),"
    " continue after them with mtsd position set {after} --forward{config}; if it has not, say so"
    f" with mtsd position set {{again}} {WORD}{{config}}",
)


@dataclass(frozen=True, slots=True)
class HeldGtids:
    """What the target has executed by GTID, and which of that a person wants applied again."""

    gtids: GtidSet
    despite: GtidSet = field(default_factory=GtidSet)


@understood("target")
async def read_held(
    connection: Connection, traits: ServerTraits, tables: PositionTables
) -> HeldGtids:
    """Query the target. Raises ServerError, ConnectionLostError."""
    despite = tables.despite.gtids(await connection.query(tables.despite.select()))
    return HeldGtids(await held_gtids(connection, traits), despite)


def refusal(
    mode: Gtids, held: HeldGtids, covered: GtidSet | None, place: object, source: GtidSet
) -> Refused | None:
    """Decide whether something would be applied twice.

    `covered` is what the channel's position says to be executed, None if that is not known by GTID:
    then nothing is known here either. `place` names the position; `source` is what the source has
    executed, read after `held`.
    """
    if mode is Gtids.PRESERVE or covered is None:
        return None
    beyond = executed_beyond(held.gtids, source, covered.union(held.despite))
    if not beyond:
        return None
    return refuse(
        EXECUTED_BEYOND,
        count=count_missing(beyond, covered),
        place=place,
        gtids=shown(beyond),
        after=_place(covered.union(beyond), "these and what mtsd position show has"),
        again=_place(covered, "what mtsd position show has"),
    )


def _place(gtids: GtidSet, named: str) -> str:
    """Return the place after a set, for a command; `named` says what it is if it is too long."""
    text = str(gtids)
    if not text:
        return "earliest"
    return f"gtid:{text}" if len(text) <= LONGEST_SET else f"gtid:SET (SET: {named})"


def executed_beyond(held: GtidSet, source: GtidSet, covered: GtidSet) -> GtidSet:
    """Return what both the target and the source have executed, and is not covered.

    On MariaDB, `held` is as `held_gtids` reads it.
    """
    places = held.last_numbers()
    if not places:
        return held.intersection(source).minus(covered)
    growing = _growing_domains(source)
    beyond = GtidSet()
    for origin, number in places.items():
        if origin.partition("-")[0] not in growing:
            continue
        common = min(number, source.last_numbers().get(origin, 0))
        if common > _reached(covered, origin):
            beyond.update(GtidSet.parse(f"{origin}-{common}"))
    return beyond


def _growing_domains(gtids: GtidSet) -> frozenset[str]:
    """Return the domains of MariaDB whose last GTID also has the highest number."""
    highest: dict[str, int] = {}
    for origin, number in gtids.last_numbers().items():
        domain = origin.partition("-")[0]
        highest[domain] = max(number, highest.get(domain, 0))
    return frozenset(
        domain
        for place in gtids.places()
        if highest[domain := place.uuid.partition("-")[0]] == place.number
    )


def count_missing(gtids: GtidSet, other: GtidSet) -> int:
    """Return how many transactions of `gtids` are not in `other`.

    On MariaDB by their numbers, between which there may be holes: then it is the most.
    """
    left = gtids.minus(other)
    count = sum(end - start for _, _, start, end in left.intervals())
    return count + sum(
        max(number - _reached(other, origin), 0) for origin, number, _ in left.places()
    )


def _reached(gtids: GtidSet, origin: str) -> int:
    """Return the highest number that is listed in the domain of an origin."""
    domain = origin.partition("-")[0] + "-"
    listed = gtids.last_numbers().items()
    return max((number for each, number in listed if each.startswith(domain)), default=0)

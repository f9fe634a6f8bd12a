"""What would be on one of the two servers only after a switch: filters, sources, events."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from mtsd.apply.position.position_tables import PositionTables
from mtsd.apply.sql.literals import shown_name
from mtsd.config import Settings
from mtsd.config.settings import FilterSettings
from mtsd.model.errors import ServerError
from mtsd.operations.move.accounts import Privilege, privileges_in
from mtsd.operations.move.admin import AdminSession
from mtsd.operations.move.own_settings import Difference
from mtsd.operations.move.writers import may_ignore_read_only
from mtsd.replica.core.endpoints import endpoint
from mtsd.replica.core.filters import rules_of
from mtsd.replica.guards.one_channel import read_channels
from mtsd.wire.neutral_session import neutral_connection
from mtsd.wire.replica_status import ReplicaStatus
from mtsd.wire.replica_words import sql_text

_SHOWN: Final = 5


def filtered(filters: Iterable[tuple[str, FilterSettings]]) -> list[Difference]:
    """Return what the directions leave out or rename: the file of each, and its filters."""
    given = [(file, rules_of(each)) for file, each in filters]
    found = "; ".join(f"[filter] of {file} has {rules}" for file, rules in given if rules)
    if not found:
        return []
    what = "what is left out, or renamed, is not on the server that is to be written to"
    return [Difference("filter", f"{found}: {what}, or does not come back from it")]


def more_sources(own: Iterable[ReplicaStatus], channels: Sequence[str]) -> list[Difference]:
    """Return whom the target follows beside the source: its own replica, or other `channels`."""
    found = [
        f"the target's own replica reads from {each.host}:{each.port} (channel {each.channel!r})"
        for each in own
    ]
    found += [f"mtsd's channel {name!r} has a position on the target" for name in channels]
    if not found:
        return []
    what = "what comes from there is not on the source, and the way back stops where it is changed"
    return [Difference("more_sources", f"{'; '.join(found)}: {what}")]


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a server: its name as SQL, and its definer as `user@host`."""

    name: str
    definer: str


def events_that_go_on(
    events: Iterable[Event], privileges: Mapping[str, Collection[Privilege]]
) -> list[Difference]:
    """Return the events that write to a server that is read only; `privileges` are by definer."""
    found = [each for each in events if may_ignore_read_only(privileges.get(each.definer, ()))]
    if not found:
        return []
    shown = ", ".join(f"{each.name} of {each.definer}" for each in found[:_SHOWN])
    return [
        Difference(
            "events",
            f"{len(found)} events are enabled on the source whose definers may write although it is"
            f" read only: {shown}; --enable-events lets the target run them instead",
        )
    ]


async def read_events(session: AdminSession, status: str) -> tuple[Event, ...]:
    """Query a server's events with a status like that. Raises ServerError, ConnectionLostError."""
    rows = await session.query(
        "SELECT event_schema, event_name, definer FROM information_schema.events"
        f" WHERE status LIKE {sql_text(status)}"
    )
    return tuple(
        Event(".".join(shown_name(str(each)) for each in name), str(definer))
        for *name, definer in rows
    )


async def read_definers(
    session: AdminSession, events: Iterable[Event]
) -> dict[str, frozenset[Privilege]]:
    """Query what the definers of events may do. Raises ServerError, ConnectionLostError."""
    found = {}
    for definer in {each.definer for each in events}:
        account = "@".join(map(sql_text, definer.rsplit("@", 1)))
        try:
            grants = await session.query(f"SHOW GRANTS FOR {account}")
        except ServerError:
            # It is gone, and its events do nothing.
            continue
        found[definer] = privileges_in(str(grant) for (grant,) in grants)
    return found


async def schedules(session: AdminSession) -> bool:
    """Query whether a server runs its events. Raises ServerError, ConnectionLostError."""
    ((value,),) = await session.query("SELECT @@GLOBAL.event_scheduler")
    return str(value) == "ON"


async def other_channels(settings: Settings) -> list[str]:
    """Query the names of the target's other channels of mtsd.

    Raises ServerError, ConnectionLostError.
    """
    tables = PositionTables(settings.target.schema, settings.replica.channel)
    async with neutral_connection(endpoint("target", settings.target)) as connection:
        channels = await read_channels(connection, tables)
    return [each.name for each in channels if each.name != settings.replica.channel]

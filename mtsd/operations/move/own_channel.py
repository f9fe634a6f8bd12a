"""The channel of the target's own replica that a move is about, as it is now."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from mtsd.model.error_numbers import NOT_ALLOWED
from mtsd.model.errors import NeedsPersonError, ServerError
from mtsd.model.outcome.reason import refuse
from mtsd.model.server import ServerVersion, of_version
from mtsd.operations.copies.own_replica import NO_CHANNEL, gap_of
from mtsd.operations.move.admin import AdminSession
from mtsd.operations.move.own_settings import OwnSettings, own_settings
from mtsd.replica.guards.own_replica import KnownServer, channels_of
from mtsd.wire.exchange import Value
from mtsd.wire.family import SERVERS
from mtsd.wire.replica_status import ReplicaStatus, channels_shown, today_named
from mtsd.wire.replica_words import UNTIL_NO_GAPS, ReplicaWords

_LOOK_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class OwnChannel:
    """What the target shows of it: parsed, and the row itself, for the way back."""

    status: ReplicaStatus
    settings: OwnSettings
    row: Mapping[str, Value]

    @property
    def is_filling(self) -> bool:
        """Whether it applies what is missing between its workers, and stops by itself after it."""
        columns = {today_named(name): value for name, value in self.row.items()}
        return self.status.applying and columns.get("until_condition") == UNTIL_NO_GAPS

    def lines(self) -> list[str]:
        """Return its row, column by column, without what is empty."""
        given = {name: str(value) for name, value in self.row.items() if value is not None}
        return [f"{name}: {value}" for name, value in given.items() if value]


def words_of(server: ServerVersion) -> ReplicaWords:
    """Return how a server words statements about its own replica."""
    return of_version(SERVERS[server.flavour].replica_words, server.number)


async def find_channel(
    session: AdminSession, server: ServerVersion, source: KnownServer
) -> OwnChannel:
    """Return the one channel that reads from the source.

    Raises NeedsPersonError if there is none, or several, ServerError, ConnectionLostError.
    """
    rows = await channels_shown(session.named, server)
    found = [channel for channel, _ in channels_of(rows, source)]
    if len(found) != 1:
        refused = refuse(NO_CHANNEL, source=f"{source.host}:{source.port} ({source.uuid})")
        raise NeedsPersonError(str(refused))
    (status,) = found
    more = await _more(session, server, status.channel)
    return OwnChannel(status, own_settings(rows[status], more), rows[status])


async def _more(session: AdminSession, server: ServerVersion, channel: str) -> Mapping[str, Value]:
    """Return what a MySQL keeps of a channel that its status does not show."""
    if SERVERS[server.flavour].has_domains:
        return {}
    try:
        rows = await session.named("SELECT * FROM mysql.slave_relay_log_info")
    except ServerError as error:
        if error.number not in NOT_ALLOWED:
            raise
        # Only an admin sees it, and a dry run may have none.
        return {}
    return next((row for row in rows if row["Channel_name"] == channel), {})


async def has_gap(session: AdminSession, server: ServerVersion, channel: OwnChannel) -> bool:
    """Return whether something is missing between its workers, which by file has no place.

    Raises NeedsPersonError if that cannot be seen; ServerError, ConnectionLostError.
    """
    if not words_of(server).fills_gaps:
        return False
    return await gap_of(await session.connection(), channel.status) is not None


async def wait_until_stopped(
    session: AdminSession, server: ServerVersion, source: KnownServer
) -> str:
    """Wait until its applier has stopped by itself. Raises NeedsPersonError if on an error."""
    channel = await find_channel(session, server, source)
    while channel.status.applying:
        await asyncio.sleep(_LOOK_S)
        channel = await find_channel(session, server, source)
    if channel.status.error:
        raise NeedsPersonError(
            f"the server's own replica could not apply what is missing: {channel.status.error}"
        )
    return f"nothing is missing up to {channel.status.executed}"

"""What a source says now: who it is, and all that decides whether a place on it is good."""

from dataclasses import dataclass

from mtsd.config import Settings
from mtsd.replica.core.endpoints import endpoint, identity
from mtsd.replica.guards.own_replica import KnownServer
from mtsd.source.handshake import open_source
from mtsd.source.read_state import read_source_state
from mtsd.source.source_state import SourceState
from mtsd.wire.traits import ServerTraits


@dataclass(frozen=True, slots=True)
class SourceNow:
    """A source at one moment; `encrypted`: mtsd's connection to it is."""

    traits: ServerTraits
    state: SourceState
    known: KnownServer
    encrypted: bool


async def read_source_now(settings: Settings) -> SourceNow:
    """Query the source as mtsd's own user.

    Raises NeedsPersonError, ServerError, ConnectionLostError.
    """
    source = await open_source(endpoint("source", settings.source), identity(settings.source, ""))
    try:
        traits = source.traits
        state = await read_source_state(source.connection, traits)
        where = source.connection.endpoint
        known = KnownServer(traits.uuid, traits.server_id, where.host, where.port)
        return SourceNow(traits, state, known, source.connection.encrypted)
    finally:
        source.connection.close()

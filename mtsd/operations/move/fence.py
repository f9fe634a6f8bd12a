"""Sets and removes the fence of a channel on which no daemon runs."""

from collections.abc import Callable

from mtsd.apply.position.handed_over_table import HandedOver
from mtsd.apply.position.position_tables import PositionTables
from mtsd.apply.session.retry import write
from mtsd.config import Settings
from mtsd.operations.stopped_channel import StoppedChannel, begin, stopped_channel
from mtsd.replica.core.endpoints import endpoint
from mtsd.replica.guards.handed_over import read_fence
from mtsd.wire.connection import Connection
from mtsd.wire.neutral_session import make_neutral


async def set_fence(
    settings: Settings,
    to: str,
    *,
    command_words: str,
    require: Callable[[StoppedChannel], None] = lambda _: None,
) -> None:
    """Record that somebody else applies the source now, and by which words it comes back.

    `require` raises if the channel is not as it has to be. Raises NeedsPersonError if a daemon is
    running, ServerError, ConnectionLostError.
    """
    async with stopped_channel(settings) as channel:
        require(channel)
        # Without a position there would be no tables, and [source] start would begin all the same.
        await begin(channel)
        fence = HandedOver(to, command_words)
        await write(channel.connection, [channel.tables.handed_over.replace_fence(fence)])


async def remove_fence(settings: Settings) -> None:
    """Let mtsd run again. Raises as `set_fence` does."""
    async with stopped_channel(settings) as channel:
        if channel.locks is not None:
            await write(channel.connection, [channel.tables.handed_over.delete()])


async def read_fence_of(settings: Settings) -> HandedOver | None:
    """Query who applies in a channel's stead; None: nobody, or there are no position tables yet.

    Raises ServerError, ConnectionLostError.
    """
    connection = await Connection.open(endpoint("target", settings.target))
    try:
        tables = PositionTables(settings.target.schema, settings.replica.channel)
        await make_neutral(connection)
        return await read_fence(connection, tables)
    finally:
        connection.close()

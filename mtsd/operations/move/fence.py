"""Sets and removes the fence of a channel on which no daemon runs."""

from collections.abc import Callable

from mtsd.apply.position.handed_over_table import HandedOver
from mtsd.apply.session.retry import write
from mtsd.config import Settings
from mtsd.operations.stopped_channel import StoppedChannel, begin, stopped_channel


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

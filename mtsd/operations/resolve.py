"""What a person says about an in-doubt group for which the target shows no evidence."""

from mtsd.config import Settings
from mtsd.model.errors import NeedsPersonError
from mtsd.operations.stopped_channel import stopped_channel
from mtsd.replica.verdict import Verdict
from mtsd.target.position_tables import InDoubt
from mtsd.target.retry import write


async def list_in_doubt(settings: Settings) -> tuple[InDoubt, ...]:
    """Return the in-doubt groups of a channel on which no daemon is running.

    Raises as `stopped_channel` does.
    """
    async with stopped_channel(settings) as channel:
        return channel.in_doubt


async def resolve(settings: Settings, number: int, *, applied: bool) -> InDoubt:
    """Record whether an in-doubt group was applied; the next start follows it. Returns the group.

    Raises NeedsPersonError if there is no such group, and as `stopped_channel` does.
    """
    async with stopped_channel(settings) as channel:
        for doubt in channel.in_doubt:
            if doubt.number == number:
                said = Verdict.APPLIED if applied else Verdict.NOT_APPLIED
                statement = channel.tables.update_resolution(number, said.value)
                await write(channel.connection, [statement])
                return doubt
        there = ", ".join(str(doubt.number) for doubt in channel.in_doubt) or "none"
        raise NeedsPersonError(f"group {number} is not in doubt; in doubt: {there}")

"""What a person says about an in-doubt group for which the target shows no evidence."""

from mtsd.apply.position.in_doubt_table import InDoubt
from mtsd.apply.session.retry import write
from mtsd.config import Settings
from mtsd.model.errors import NeedsPersonError
from mtsd.operations.recorded import read_recorded
from mtsd.operations.stopped_channel import stopped_channel
from mtsd.replica.recovery.verdict import Verdict
from mtsd.wire.binlog_status import has_executed
from mtsd.wire.connection import Connection


async def list_in_doubt(settings: Settings) -> tuple[InDoubt, ...]:
    """Return the in-doubt groups, whether a daemon is running or not.

    Raises as `read_recorded` does.
    """
    recorded = await read_recorded(settings)
    return () if recorded is None else recorded.in_doubt


async def _refuse_if_used_up(connection: Connection, doubt: InDoubt) -> None:
    """Raise NeedsPersonError if the target would skip the group because of its GTID."""
    gtid = doubt.source_gtid
    if gtid and await has_executed(connection, gtid):
        raise NeedsPersonError(
            f"group {doubt.number} cannot be applied again: it has to run under its GTID {gtid}"
            ' ([target] gtid = "preserve"), which the target has executed, so it would skip the'
            " group. Make all of its changes there manually, then say --applied"
        )


async def resolve(settings: Settings, number: int, *, applied: bool) -> InDoubt:
    """Record whether an in-doubt group was applied; the next start follows it. Returns the group.

    Raises NeedsPersonError if there is no such group, and as `stopped_channel` does.
    """
    async with stopped_channel(settings) as channel:
        for doubt in channel.in_doubt:
            if doubt.number == number:
                if not applied and settings.target.gtid == "preserve":
                    await _refuse_if_used_up(channel.connection, doubt)
                verdict = Verdict.APPLIED if applied else Verdict.NOT_APPLIED
                statement = channel.tables.doubts.update_resolution(number, verdict.value)
                await write(channel.connection, [statement])
                return doubt
        there = ", ".join(str(doubt.number) for doubt in channel.in_doubt) or "none"
        raise NeedsPersonError(f"group {number} is not in doubt; in doubt: {there}")

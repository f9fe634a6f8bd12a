"""Skipping the one group that stopped the replica, because a person says so."""

from dataclasses import dataclass

from mtsd.apply.position.failed_groups import SkippedGroup, StoppedGroup
from mtsd.apply.position.in_doubt_table import InDoubt, InDoubtTable
from mtsd.apply.position.position_tables import ChannelRow
from mtsd.apply.position.split_table import SPLIT
from mtsd.apply.session.retry import write
from mtsd.config import Settings
from mtsd.model.errors import NeedsPersonError
from mtsd.model.gtid import Gtid
from mtsd.model.outcome.failed_group import FailedGroup
from mtsd.model.position import Position
from mtsd.operations.recorded import read_recorded
from mtsd.operations.stopped_channel import StoppedChannel, stopped_channel
from mtsd.replica.recovery.evidence import verdict
from mtsd.replica.recovery.recovery import row_of_recovery
from mtsd.replica.recovery.verdict import Verdict
from mtsd.schedule.done.executed_groups import recovered
from mtsd.schedule.done.repair import is_passed


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which group a person means: by GTID, by the position of its end, or by number."""

    gtid: Gtid | None = None
    position: Position | None = None
    number: int | None = None

    def means(self, group: FailedGroup) -> bool:
        """Return whether it is this group."""
        if self.gtid is not None:
            return group.gtid == str(self.gtid)
        if self.position is not None:
            return group.end == self.position
        return group.number == self.number

    def __str__(self) -> str:
        """Return it for a message."""
        if self.gtid is not None:
            return f"the group with GTID {self.gtid}"
        if self.position is not None:
            return f"the group that ends at {self.position}"
        return f"group {self.number}"


@dataclass(frozen=True, slots=True)
class Skipped:
    """The outcome of a skip."""

    group: FailedGroup
    former: SkippedGroup | None = None
    """The record of an earlier skip of the group; if there is one, nothing has been changed."""
    may_be_applied: str = ""
    """The kind of the group, if a part of it, or all, may be on the target; else ""."""


@dataclass(frozen=True, slots=True)
class Failures:
    """The group that a channel's replica stopped at, or None, and all skipped groups."""

    stopped: StoppedGroup | None
    skipped: tuple[SkippedGroup, ...]


async def list_failures(settings: Settings) -> Failures:
    """Return what can be skipped, and what has been, whether a daemon is running or not.

    Raises as `read_recorded` does.
    """
    recorded = await read_recorded(settings)
    return Failures(None, ()) if recorded is None else Failures(recorded.stopped, recorded.skipped)


async def skip(settings: Settings, wanted: Wanted, *, who: str, why: str) -> Skipped:
    """Count the group that stopped the replica as executed, without applying it.

    One transaction records that and who said so, so that the next start continues after the
    group. Repeating it changes nothing. Raises NeedsPersonError if `wanted` is not the group that
    stopped the replica or has been applied, and as `stopped_channel` does.
    """
    async with stopped_channel(settings) as channel:
        stopped, row = channel.stopped, channel.row
        if stopped is None or row is None or not wanted.means(stopped.group):
            for former in reversed(channel.skipped):
                if wanted.means(former.group):
                    return Skipped(former.group, former)
            raise NeedsPersonError(_refusal(wanted, stopped))
        return await _skip(channel, row, stopped, who, why)


async def _skip(
    channel: StoppedChannel, row: ChannelRow, stopped: StoppedGroup, who: str, why: str
) -> Skipped:
    group = stopped.group
    doubts = [doubt for doubt in channel.in_doubt if doubt.number == group.number]
    may_be_applied = ""
    applied = _is_passed(channel, group.number)
    for doubt in doubts:
        if doubt.kind == SPLIT:
            raise NeedsPersonError(
                f"{group}, was split into branches, and something of them may be left on the"
                " target: start mtsd, which commits it or rolls it back, or says what to resolve"
            )
        verdict = await _verdict(channel, doubt)
        applied = applied or verdict is Verdict.APPLIED
        if verdict is not Verdict.NOT_APPLIED:
            may_be_applied = doubt.kind
    if applied:
        raise NeedsPersonError(
            f"{group}, stopped the replica and has been applied since: there is nothing to skip,"
            " start mtsd"
        )
    tables = channel.tables
    await write(
        channel.connection,
        [
            tables.failed.insert_skipped(group, stopped.message, who, why),
            tables.workers.replace(row_of_recovery(row.mark, channel.workers, [group])),
            *(_forget(tables.doubts, doubt) for doubt in doubts),
            tables.failed.delete_stopped(),
        ],
    )
    return Skipped(group, may_be_applied=may_be_applied)


def _forget(table: InDoubtTable, doubt: InDoubt) -> bytes:
    return table.delete_run(doubt) if doubt.is_of_run else table.delete(doubt.number)


async def _verdict(channel: StoppedChannel, doubt: InDoubt) -> Verdict | None:
    """Return what the target shows about an in-doubt group; None if it shows nothing."""
    try:
        return await verdict(channel.connection, channel.tables, doubt)
    except NeedsPersonError:
        return None


def _is_passed(channel: StoppedChannel, number: int) -> bool:
    """Return whether a group does not have to be applied any more."""
    if channel.row is None:
        return False
    mark = channel.row.mark.number
    executed = recovered(mark, (row.executed for row in channel.workers))
    skipped = [each.group.number for each in channel.skipped]
    return is_passed(number, mark, executed, skipped, ordered=channel.row.ordered)


def _refusal(wanted: Wanted, stopped: StoppedGroup | None) -> str:
    if stopped is None:
        return (
            f"{wanted} is not skipped: no group is on record as having stopped the replica. Start"
            " mtsd: if a group cannot be applied, it stops there and says so"
        )
    return (
        f"{wanted} is not skipped: what stopped the replica is {stopped.group}, in databases"
        f" {', '.join(stopped.group.databases) or 'not known'}"
    )

"""`mtsd position adopt`: copied position tables go on as another replica than the original."""

import uuid
from dataclasses import dataclass

from mtsd.apply.position.in_doubt_table import InDoubt
from mtsd.apply.position.split_table import SPLIT
from mtsd.apply.position.target_identity import TargetIdentity
from mtsd.apply.session.retry import write
from mtsd.config import Settings
from mtsd.model.errors import NeedsPersonError
from mtsd.model.outcome.command import command
from mtsd.operations.stopped_channel import StoppedChannel, stopped_channel
from mtsd.replica.recovery.left_split import complete, left_split
from mtsd.replica.recovery.verdict import Verdict, judge
from mtsd.replica.run.position_home import identity_now, read_home
from mtsd.wire.binlog_status import has_executed
from mtsd.wire.traits import read_traits


@dataclass(frozen=True, slots=True)
class Adopted:
    """What has changed; `home` is where the position was recorded to be at home, if anywhere."""

    home: TargetIdentity | None
    now: TargetIdentity
    former_uuid: str
    daemon_uuid: str
    settled: tuple[tuple[int, Verdict], ...]
    """Split groups, by number, whose branches are committed now, or rolled back."""


async def adopt_position(settings: Settings) -> Adopted:
    """Make the channel's position that of a replica of its own, at home on this target.

    Raises NeedsPersonError if there is no position, a daemon is running, or nothing here shows what
    became of a group in doubt; ServerError, ConnectionLostError.
    """
    async with stopped_channel(settings) as channel:
        row = channel.row
        if row is None:
            raise NeedsPersonError(
                f"channel {channel.tables.channel!r} has no position in {channel.tables.schema}"
                " on this target: there is nothing to adopt; mtsd run begins at [source] start"
            )
        now = identity_now(await read_traits(channel.connection))
        home = await read_home(channel.connection, channel.tables)
        doubts = channel.in_doubt
        for doubt in doubts:
            await _refuse_without_evidence(channel, doubt)
        settled = []
        resolutions = []
        for doubt in doubts:
            if doubt.kind != SPLIT:
                continue
            left = await left_split(channel.connection, channel.tables, doubt, row.daemon_uuid)
            await complete(channel.connection, left)
            settled.append((doubt.number, left.verdict))
            # The names of its branches have the former UUID: the next start finds none of them.
            resolutions.append(
                channel.tables.doubts.update_resolution(doubt.number, left.verdict.value)
            )
        daemon_uuid = str(uuid.uuid4())
        await write(
            channel.connection,
            [
                *resolutions,
                channel.tables.update_daemon(daemon_uuid),
                channel.tables.identity.replace_identity(now),
                # Who has the original's work has not that of the copy.
                channel.tables.handed_over.delete(),
            ],
        )
        return Adopted(home, now, row.daemon_uuid, daemon_uuid, tuple(settled))


async def _refuse_without_evidence(channel: StoppedChannel, doubt: InDoubt) -> None:
    """Raise NeedsPersonError if only the original's server shows whether a group was applied.

    A GTID shows that it was, wherever it is found. That it is missing shows nothing here: a dump
    contains the changes of transactions, and not their GTIDs.
    """
    if doubt.resolution or doubt.kind == SPLIT:
        return
    if doubt.evidence and await has_executed(channel.connection, doubt.evidence):
        verdict = judge(doubt, executed=True, logs=None)
        if verdict is Verdict.APPLIED:
            return
    raise NeedsPersonError(
        f"group {doubt.number} was in doubt when the tables were copied ({doubt.kind}): the copy"
        " may contain its changes, and nothing here shows whether it does. Compare the two servers,"
        " say what you found with"
        f" {command('resolve', '--group', str(doubt.number), '--applied')} or --not-applied,"
        " and try again"
    )

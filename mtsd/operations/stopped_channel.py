"""The position tables of a channel on which no daemon is running, to be changed deliberately."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from mtsd.apply.position.failed_groups import SkippedGroup, StoppedGroup
from mtsd.apply.position.fencing import fence, take_lock
from mtsd.apply.position.in_doubt_table import InDoubt
from mtsd.apply.position.lock_holder import describe_holder
from mtsd.apply.position.lock_names import CHANNEL, LockNames, make_locks, read_locks
from mtsd.apply.position.position_schema import FIRST_TABLES
from mtsd.apply.position.position_tables import ChannelRow, PositionTables
from mtsd.apply.session.session import TargetSession
from mtsd.apply.session.session_settings import SessionSettings
from mtsd.config import Settings
from mtsd.control.client import DaemonRefusedError, DaemonUnavailableError, fetch_status
from mtsd.control.status import Status
from mtsd.model.errors import NeedsPersonError
from mtsd.operations.recorded import read_rows
from mtsd.replica.core.endpoints import endpoint
from mtsd.replica.recovery.recovery import (
    make_tables,
    read_channel,
    read_failed,
    read_workers,
    require_usable,
    unsettled,
)
from mtsd.schedule.done.executed_groups import ExecutedGroups, recovered
from mtsd.schedule.done.worker_row import WorkerRow
from mtsd.wire.connection import Connection

_TIMEOUT_S = 2
"""Enough for the server to notice that a client is gone, unless its statement still runs."""
_LOCK_WAIT_S = 1
"""Less than that; what is written is tried again, for as long as the command waits."""


@dataclass(frozen=True, slots=True)
class StoppedChannel:
    """A connection that holds the channel's lock, and what the tables contained when it was taken.

    `row` is None if the channel has never begun. `locks` is None, and no lock is held, where the
    target has no position tables yet, or only a dry run looks at them.
    """

    connection: Connection
    tables: PositionTables
    locks: LockNames | None
    row: ChannelRow | None
    workers: tuple[WorkerRow, ...]
    in_doubt: tuple[InDoubt, ...]
    """Those that nothing here settles."""
    stopped: StoppedGroup | None
    """The group that the last run stopped at; it may have been applied since."""
    skipped: tuple[SkippedGroup, ...]

    @property
    def executed(self) -> ExecutedGroups:
        """The groups past the low-water mark that have been applied."""
        number = self.row.mark.number if self.row is not None else 0
        return recovered(number, (row.executed for row in self.workers))

    @property
    def highest_number(self) -> int:
        """The highest group number that appears in the tables."""
        mark = self.row.mark.number if self.row is not None else 0
        executed = (row.executed.highest for row in self.workers)
        skipped = (each.group.number for each in self.skipped)
        doubtful = (doubt.number for doubt in self.in_doubt)
        return max(mark, *executed, *doubtful, *skipped, 0)


@asynccontextmanager
async def stopped_channel(
    settings: Settings, *, dry_run: bool = False
) -> AsyncIterator[StoppedChannel]:
    """Take the channel as a daemon does, and read it once nothing writes to it any more.

    Nothing is created where there are no position tables: a command that is meant for another
    target, or refuses, leaves none behind. A `dry_run` takes nothing and ends no session either.
    Raises NeedsPersonError, at once, if a daemon is running on it; ConnectionLostError,
    ServerError.
    """
    await _refuse_running(settings)
    tables = PositionTables(settings.target.schema, settings.replica.channel)
    # Like the daemon's: not with the target's own defaults, and logged only if the daemon's are.
    session = await TargetSession.open(
        endpoint("target", settings.target),
        SessionSettings(settings.target.binary_log, settings.target.gtid_domain_id),
    )
    connection = session.connection
    try:
        existing = await require_usable(connection, tables)
        # What is given up must not have its effect once a lock is free, maybe hours later.
        await session.limit_lock_waits(_LOCK_WAIT_S)
        if dry_run or not existing.engines.keys() >= set(FIRST_TABLES):
            yield await _looked_at(connection, tables)
            return
        locks = await _taken(connection, tables)
        await make_tables(connection, tables)
        before = await read_channel(connection, tables)
        sessions = [row.id for row in await read_workers(connection, tables)]
        count = max([before.workers if before is not None else 0, *sessions, 0])
        await fence(connection, locks, range(1, count + 1))
        row = await read_channel(connection, tables)
        workers = tuple(await read_workers(connection, tables))
        rows = await connection.query(tables.doubts.select())
        in_doubt = [tables.doubts.record(each) for each in rows]
        if row is not None:
            in_doubt = unsettled(in_doubt, row.mark, workers)
        stopped, skipped = await read_failed(connection, tables)
        yield StoppedChannel(
            connection,
            tables,
            locks,
            row,
            workers,
            tuple(in_doubt),
            stopped,
            skipped,
        )
    finally:
        connection.close()


async def begin(channel: StoppedChannel) -> LockNames:
    """Make the position tables, unless they are there, and hold the channel's lock.

    Raises as `stopped_channel` does, also if a daemon has begun meanwhile.
    """
    if channel.locks is not None:
        return channel.locks
    locks = await _taken(channel.connection, channel.tables)
    await make_tables(channel.connection, channel.tables)
    if await read_channel(channel.connection, channel.tables) is not None:
        raise NeedsPersonError(
            f"channel {channel.tables.channel!r} has begun on this target a moment ago: look at"
            " mtsd status, and try again if this is still meant"
        )
    return locks


async def _taken(connection: Connection, tables: PositionTables) -> LockNames:
    locks = await make_locks(connection, tables.schema, tables.channel)
    if not await take_lock(connection, locks.session(CHANNEL), _TIMEOUT_S):
        raise NeedsPersonError(await _held(connection, locks))
    return locks


async def _looked_at(connection: Connection, tables: PositionTables) -> StoppedChannel:
    """Return what the tables contain at one moment, as far as there are any."""
    locks = await read_locks(connection, tables.schema, tables.channel)
    if locks is not None:
        lock = locks.session(CHANNEL).encode()
        ((holder,),) = await connection.query(b"SELECT IS_USED_LOCK('%b')" % lock)
        if holder is not None:
            raise NeedsPersonError(await _held(connection, locks))
    recorded = await read_rows(connection, tables)
    if recorded is None:
        return StoppedChannel(connection, tables, None, None, (), (), None, ())
    return StoppedChannel(
        connection, tables, None, recorded.channel, recorded.workers, recorded.in_doubt,
        recorded.stopped, recorded.skipped,
    )  # fmt: skip


async def answering_daemon(settings: Settings) -> Status | None:
    """Return the status of the daemon that answers on the status socket; None if none does.

    What answers there may be something else, and the daemon on another machine: only the channel's
    lock tells whether one holds it.
    """
    socket = settings.status.socket
    if socket is None:
        return None
    try:
        return await asyncio.to_thread(fetch_status, socket)
    except (DaemonUnavailableError, DaemonRefusedError):
        return None


async def _refuse_running(settings: Settings) -> None:
    """Raise NeedsPersonError if the channel's daemon answers on this machine."""
    status = await answering_daemon(settings)
    channel = settings.replica.channel
    # One that an error has stopped, and that stays, holds nothing on the target, and one that
    # stands by neither.
    if status is None or status.state in {"failed", "standby"}:
        return
    if (status.channel, status.target) == (channel, settings.target.address):
        raise NeedsPersonError(
            f"a daemon is running on channel {channel!r} of this target, and answers on"
            f" {settings.status.socket}: {_STOP_IT}"
        )


async def _held(connection: Connection, locks: LockNames) -> str:
    holder = await describe_holder(connection, locks.session(CHANNEL))
    return (
        f"a daemon is running on channel {locks.channel!r} of this target: {_STOP_IT}; {holder}. If"
        " it was killed, that connection ends with its last statement: try again then"
    )


_STOP_IT = "stop it first (systemctl stop mtsd, where it is that service)"

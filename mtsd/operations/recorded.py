"""What the target has on record about a channel, whether a daemon is running or not."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from mtsd.apply.position.failed_groups import SkippedGroup, StoppedGroup
from mtsd.apply.position.handed_over_table import HandedOver
from mtsd.apply.position.in_doubt_table import InDoubt
from mtsd.apply.position.last_stop_table import LAST_STOP
from mtsd.apply.position.lock_names import CHANNEL, read_locks
from mtsd.apply.position.position_schema import FIRST_TABLES, OF_FAILED_GROUPS, PREPARED
from mtsd.apply.position.position_tables import ChannelRow, PositionTables
from mtsd.config import Settings
from mtsd.model.error_numbers import NO_SUCH_TABLE
from mtsd.model.errors import ConnectionLostError, ServerError
from mtsd.model.outcome.last_stop import LastStop
from mtsd.replica.core.endpoints import endpoint
from mtsd.replica.guards.handed_over import read_fence
from mtsd.replica.recovery.recovery import read_failed, unsettled
from mtsd.schedule.done.executed_groups import ExecutedGroups, recovered
from mtsd.schedule.done.repair import is_passed
from mtsd.schedule.done.worker_row import WorkerRow
from mtsd.wire.connection import Connection
from mtsd.wire.neutral_session import neutral_connection

T = TypeVar("T")

_LOOKS: Final = 15
_PAUSE_S: Final = 0.2
_LONGEST_LOOK_S: Final = 20.0


@dataclass(frozen=True, slots=True)
class Recorded:
    """The rows of a channel that has begun, all as of one moment.

    `workers` are in the order of their ids; id 0 is what the last recovery found. `stopped` is the
    group that the replica stopped at, if it is still to be applied or skipped. `prepared` counts
    XA transactions. `last_stop` is None if the last daemon has not said how it ended.
    """

    channel: ChannelRow
    workers: tuple[WorkerRow, ...]
    in_doubt: tuple[InDoubt, ...]
    """Those that nothing here settles."""
    stopped: StoppedGroup | None
    skipped: tuple[SkippedGroup, ...]
    prepared: int
    last_stop: LastStop | None

    @property
    def executed(self) -> ExecutedGroups:
        """The groups past the low-water mark that have been applied or skipped."""
        return recovered(self.channel.mark.number, (row.executed for row in self.workers))


async def read_recorded(settings: Settings) -> Recorded | None:
    """Read the channel's rows, or None if it has none; nothing is locked or changed.

    Raises ConnectionLostError, ServerError, NeedsPersonError (tables of another version, a TLS
    file).
    """
    return await _read_by(settings, read_rows)


async def read_last_stop(settings: Settings) -> LastStop | None:
    """Return how the last daemon ended, also of a channel that has never begun; None: not said.

    Raises as `read_recorded` does.
    """
    return await _read_by(settings, _stop)


async def _stop(connection: Connection, tables: PositionTables) -> LastStop | None:
    present = {str(name) for name, _ in await connection.query(tables.select_tables())}
    ended = await connection.query(tables.last_stop.select()) if LAST_STOP in present else []
    return tables.last_stop.stop(ended[0]) if ended else None


async def read_fence_of(settings: Settings) -> HandedOver | None:
    """Query who applies in a channel's stead; None: nobody, or there are no position tables yet.

    Raises ServerError, ConnectionLostError.
    """
    return await _read_by(settings, read_fence)


async def read_with_fence(settings: Settings) -> tuple[Recorded | None, HandedOver | None]:
    """Return what `read_recorded` and `read_fence_of` do, by one session. Raises as they do."""

    async def read(
        connection: Connection, tables: PositionTables
    ) -> tuple[Recorded | None, HandedOver | None]:
        return await read_rows(connection, tables), await read_fence(connection, tables)

    return await _read_by(settings, read)


async def _read_by(
    settings: Settings, read: Callable[[Connection, PositionTables], Awaitable[T]]
) -> T:
    """Return what is read of the channel's tables, by a session of its own."""
    tables = PositionTables(settings.target.schema, settings.replica.channel)
    async with neutral_connection(endpoint("target", settings.target)) as connection:
        try:
            # Another session may hold a table's metadata lock; the server would wait for a year.
            async with asyncio.timeout(settings.target.connect_timeout):
                return await read(connection, tables)
        except TimeoutError as error:
            raise ConnectionLostError("target", "no answer in time") from error


async def read_holder(settings: Settings) -> int | None:
    """Return the target's connection that has the channel, None if none has it for long.

    A daemon that has ended a moment ago may. Raises as `read_recorded` does.
    """
    async with (
        neutral_connection(endpoint("target", settings.target)) as connection,
        connection.answering(_LONGEST_LOOK_S),
    ):
        locks = await read_locks(connection, settings.target.schema, settings.replica.channel)
        if locks is None:
            return None
        lock = locks.session(CHANNEL).encode()
        holder: object = None
        for _ in range(_LOOKS):
            ((holder,),) = await connection.query(b"SELECT IS_USED_LOCK('%b')" % lock)
            if holder is None:
                return None
            await asyncio.sleep(_PAUSE_S)
        return int(str(holder))


async def read_rows(connection: Connection, tables: PositionTables) -> Recorded | None:
    """Read the channel's rows as of one moment, or None if it has none.

    Raises ServerError, ConnectionLostError, NeedsPersonError (tables of another version).
    """
    present = {str(name) for name, _ in await connection.query(tables.select_tables())}
    if not present.issuperset(FIRST_TABLES):
        await _require_sight(connection, tables)
        return None
    # A session's default may differ, and then each query would see a moment of its own.
    await connection.query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    await connection.query("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
    recorded = await _read(connection, tables, present)
    await connection.query("COMMIT")
    return recorded


async def _require_sight(connection: Connection, tables: PositionTables) -> None:
    """Raise ServerError if the user may not read the tables: then none of them is listed either."""
    try:
        await connection.query(tables.select_any(FIRST_TABLES[0]))
    except ServerError as error:
        if error.number not in NO_SUCH_TABLE:
            raise


async def _read(
    connection: Connection, tables: PositionTables, present: Collection[str]
) -> Recorded | None:
    channel = await connection.query(tables.select_channel())
    workers = await connection.query(tables.workers.select())
    in_doubt = await connection.query(tables.doubts.select())
    # An older mtsd has not created these tables.
    complete = set(OF_FAILED_GROUPS).issubset(present)
    stopped, skipped = await read_failed(connection, tables) if complete else (None, ())
    prepared = (
        await connection.query(tables.prepared.select_prepared()) if PREPARED in present else []
    )
    ended = await connection.query(tables.last_stop.select()) if LAST_STOP in present else []
    if not channel:
        return None
    row = tables.channel_row(channel[0])
    rows = sorted(map(tables.workers.row, workers), key=lambda each: each.id)
    recorded = Recorded(
        row,
        tuple(rows),
        tuple(unsettled(map(tables.doubts.record, in_doubt), row.mark, rows)),
        stopped,
        skipped,
        len(prepared),
        tables.last_stop.stop(ended[0]) if ended else None,
    )
    if stopped is None:
        return recorded
    by_hand = [each.group.number for each in skipped]
    passed = is_passed(
        stopped.group.number, row.mark.number, recorded.executed, by_hand, ordered=row.ordered
    )
    return replace(recorded, stopped=None) if passed else recorded

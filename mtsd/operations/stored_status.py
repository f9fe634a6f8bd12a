"""What the position tables on the target say about a replica that is not running.

How the last daemon ended is there, or in the file beside the status socket.
"""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from typing import TypedDict

from mtsd.config import Settings
from mtsd.control.status import (
    NONE_YET,
    NOT_SAID,
    InDoubtStatus,
    LastStopStatus,
    Place,
    SkippedStatus,
    State,
    Status,
    StoppedStatus,
    WorkerStatus,
)
from mtsd.control.stop_file import StopFile
from mtsd.model.errors import ConnectionLostError
from mtsd.model.last_stop import LastStop, StopNote, newest_stop
from mtsd.replica.endpoints import endpoint
from mtsd.replica.filters import rules_of
from mtsd.replica.recovery import read_failed
from mtsd.schedule.executed_groups import recovered
from mtsd.schedule.repair import is_passed
from mtsd.target.failed_groups import SkippedGroup, StoppedGroup
from mtsd.target.last_stop_table import LAST_STOP
from mtsd.target.position_schema import FIRST_TABLES, OF_FAILED_GROUPS, PREPARED
from mtsd.target.position_tables import InDoubt, PositionTables
from mtsd.wire.connection import Connection
from mtsd.wire.neutral_session import make_neutral


async def read_stored(settings: Settings) -> Status:
    """Read the channel's rows, all as of one moment; nothing is locked or changed.

    State is "stopped", or "failed" if an error has stopped the last daemon; what only a running
    one knows is empty. `executed` is empty if the target has no position for the channel. A
    worker's `groups` are those that it committed past the low-water mark; worker 0 is what the last
    recovery found. Raises ConnectionLostError, ServerError, NeedsPersonError (tables of another
    version, a TLS file).
    """
    connection = await Connection.open(endpoint("target", settings.target))
    try:
        # Another session may hold a table's metadata lock, and the server would wait for a year.
        async with asyncio.timeout(settings.target.connect_timeout):
            return await _read(connection, settings)
    except TimeoutError as error:
        raise ConnectionLostError("target", "no answer in time") from error
    finally:
        connection.close()


def status_of_note(settings: Settings) -> Status | None:
    """Return what this machine knows of how the last daemon ended; None if nothing."""
    note = _note(settings)
    return None if note is None else replace(_nothing(settings), **_ended(note.stop))


def _note(settings: Settings) -> StopNote | None:
    socket = settings.status.socket
    return StopFile(socket).read() if socket is not None else None


class _Ended(TypedDict):
    state: State
    last_stop: LastStopStatus | None
    last_error: str | None
    doing: str


def _ended(stop: LastStop | None) -> _Ended:
    """Return what a status says of how the last daemon ended; None: it did not say."""
    if stop is None:
        return _Ended(state="stopped", last_stop=None, last_error=None, doing=NOT_SAID)
    time = datetime.fromtimestamp(int(stop.time), UTC).isoformat()
    shown = LastStopStatus(time, stop.graceful, stop.text, stop.number, stop.group)
    if stop.graceful:
        return _Ended(state="stopped", last_stop=shown, last_error=None, doing="")
    return _Ended(state="failed", last_stop=shown, last_error=stop.text, doing="")


def _nothing(settings: Settings) -> Status:
    return Status(
        state="stopped",
        source=settings.source.address,
        target=settings.target.address,
        channel=settings.replica.channel,
        filter=str(rules_of(settings.filter)),
    )


async def _read(connection: Connection, settings: Settings) -> Status:
    note = _note(settings)
    nothing = replace(_nothing(settings), doing=NONE_YET)
    if note is not None:
        nothing = replace(nothing, **_ended(note.stop))
    tables = PositionTables(settings.target.schema, settings.replica.channel)
    await make_neutral(connection)
    present = {str(name) for name, _ in await connection.query(tables.select_tables())}
    if not present.issuperset(FIRST_TABLES):
        return nothing
    # A session's default may differ, and then each query would see a moment of its own.
    await connection.query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    await connection.query("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
    channel = await connection.query(tables.select_channel())
    workers = await connection.query(tables.workers.select())
    in_doubt = await connection.query(tables.select_in_doubt())
    # An older mtsd has not created these tables.
    complete = present.issuperset(OF_FAILED_GROUPS)
    stopped, skipped = await read_failed(connection, tables) if complete else (None, ())
    prepared = await connection.query(tables.prepared.select()) if PREPARED in present else []
    ended = await connection.query(tables.last_stop.select()) if LAST_STOP in present else []
    if not channel:
        return nothing
    found = tables.channel_row(channel[0])
    mark = found.mark
    rows = sorted((tables.workers.row(row) for row in workers), key=lambda row: row.id)
    executed = recovered(mark.number, (row.executed for row in rows))
    by_hand = [each.group.number for each in skipped]
    if stopped is not None and is_passed(
        stopped.group.number, mark.number, executed, by_hand, ordered=found.ordered
    ):
        stopped = None
    on_target = tables.last_stop.stop(ended[0]) if ended else None
    return replace(
        nothing,
        **_ended(newest_stop(on_target, note)),
        executed=Place.of(mark.position, mark.gtids),
        workers=tuple(
            WorkerStatus(
                id=row.id,
                state="stopped",
                groups=len(row.executed.rebased(mark.number + 1)),
                last=Place.of(row.last),
            )
            for row in rows
        ),
        in_doubt=tuple(_in_doubt(tables.in_doubt(row)) for row in in_doubt),
        stopped_at=_stopped(stopped) if stopped is not None else None,
        skipped=tuple(_skipped(each) for each in skipped),
        prepared_transactions=len(prepared),
    )


def _stopped(stopped: StoppedGroup) -> StoppedStatus:
    group = stopped.group
    return StoppedStatus(
        number=group.number,
        end=Place.of(group.end, group.gtid),
        kind=group.kind,
        databases=",".join(group.databases),
        error=stopped.message,
        later_applied=group.later_applied,
        time=stopped.time.isoformat(),
    )


def _skipped(skipped: SkippedGroup) -> SkippedStatus:
    group = skipped.group
    return SkippedStatus(
        number=group.number,
        end=Place.of(group.end, group.gtid),
        databases=",".join(group.databases),
        error=skipped.message,
        who=skipped.who,
        why=skipped.why,
        time=skipped.time.isoformat(),
    )


def _in_doubt(record: InDoubt) -> InDoubtStatus:
    return InDoubtStatus(
        number=record.number,
        worker=record.worker_id,
        kind=record.kind,
        end=Place.of(record.end, record.source_gtid),
        databases=record.databases,
    )

"""What the position tables on the target say about a replica that is not running.

How the last daemon ended is there, or in the file beside the status socket.
"""

from dataclasses import replace
from datetime import UTC, datetime
from typing import TypedDict

from mtsd.apply.position.failed_groups import StoppedGroup
from mtsd.apply.position.in_doubt_table import InDoubt
from mtsd.config import Settings
from mtsd.control.place import Place
from mtsd.control.status import State, Status, WorkerStatus
from mtsd.control.stop_file import StopFile
from mtsd.control.stop_status import (
    HELD,
    NONE_YET,
    NOT_BEGUN,
    NOT_SAID,
    InDoubtStatus,
    LastStopStatus,
    SkippedStatus,
    StoppedStatus,
)
from mtsd.model.outcome.last_stop import LastStop, StopNote, newest_stop
from mtsd.operations.recorded import read_holder, read_last_stop, read_with_fence
from mtsd.replica.core.filters import rules_of
from mtsd.replica.guards.handed_over import fenced


async def read_stored(settings: Settings) -> Status:
    """Read the channel's rows, all as of one moment; nothing is locked or changed.

    State is "stopped", or "failed" if an error has stopped the last daemon; what only a running
    one knows is empty. That the channel was handed over is a warning: the next start is refused.
    `executed` is empty if the target has no position for the channel. A worker's `groups` are those
    that it committed past the low-water mark; worker 0 is what the last recovery found. Raises
    ConnectionLostError, ServerError, NeedsPersonError (tables of another version, a TLS file).
    """
    note = _note(settings)
    nothing = replace(_nothing(settings), doing=NONE_YET)
    if note is not None:
        nothing = replace(nothing, **_ended(note.stop))
    recorded, fence = await read_with_fence(settings)
    if recorded is None:
        # Its first start may have been refused.
        stop = newest_stop(await read_last_stop(settings), note)
        return nothing if stop is None else replace(nothing, **_ended(stop))
    mark = recorded.channel.mark
    ended = _ended(newest_stop(recorded.last_stop, note))
    # A daemon records its workers before they begin.
    if ended["last_stop"] is None and not recorded.channel.workers:
        ended["doing"] = NOT_BEGUN
    elif ended["doing"] == NOT_SAID and (holder := await read_holder(settings)) is not None:
        ended["doing"] = HELD.format(holder)
    refused = fenced(fence)
    warnings = () if refused is None or str(refused) == ended["last_error"] else (str(refused),)
    return replace(
        nothing,
        **ended,
        warnings=warnings,
        executed=Place.of(mark.position, mark.gtids),
        workers=tuple(
            WorkerStatus(
                id=row.id,
                state="stopped",
                groups=len(row.executed.rebased(mark.number + 1)),
                last=Place.of(row.last),
            )
            for row in recorded.workers
        ),
        in_doubt=tuple(map(_in_doubt, recorded.in_doubt)),
        stopped_at=_stopped(recorded.stopped) if recorded.stopped is not None else None,
        skipped=tuple(map(SkippedStatus.of, recorded.skipped)),
        prepared_transactions=recorded.prepared,
    )


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


def _in_doubt(record: InDoubt) -> InDoubtStatus:
    return InDoubtStatus(
        number=record.number,
        worker=record.worker_id,
        kind=record.kind,
        end=Place.of(record.end, record.source_gtid),
        databases=record.databases,
    )

"""The daemon's state in the form of the status socket."""

import os
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from time import time
from typing import Final

from mtsd import __version__
from mtsd.apply.position.failed_groups import SkippedGroup
from mtsd.config import Settings
from mtsd.control.place import Place
from mtsd.control.server_status import (
    ConnectionsStatus,
    ConnectionStatus,
    ErrorStatus,
    SourceLogStatus,
)
from mtsd.control.status import (
    AgesStatus,
    DaemonStatus,
    DatabaseStatus,
    DistributionStatus,
    PartitionStatus,
    SemiSyncStatus,
    State,
    Status,
    TargetWaitStatus,
    TotalsStatus,
    WorkerStatus,
)
from mtsd.control.stop_status import LastStopStatus, SkippedStatus, StoppedStatus
from mtsd.daemon.past import NO_PAST, Past, executed_of, needs_of, received_of
from mtsd.model.build import COMPILED
from mtsd.model.errors import ServerError
from mtsd.model.outcome.failed_group import FailedGroup
from mtsd.model.outcome.last_stop import LastStop
from mtsd.replica.core.earlier_runs import EarlierRuns
from mtsd.replica.core.filters import rules_of
from mtsd.replica.core.limits import limits_of
from mtsd.replica.run.statistics import ReplicaStatistics
from mtsd.replica.run.totals import Totals
from mtsd.replica.workers.held_up import HeldUp
from mtsd.replica.workers.target_waits import TargetWait
from mtsd.schedule.applied import BOUNDS_S, Applied
from mtsd.source import semi_sync
from mtsd.source.semi_sync import Acknowledged
from mtsd.source.source_log import bytes_behind
from mtsd.wire.link import Link, LinkError, Links
from mtsd.wire.refusal import remedy_of, with_remedy
from mtsd.wire.steady_clock import steady

NO_DISTRIBUTION: Final = DistributionStatus()


@dataclass(frozen=True, slots=True)
class DaemonState:
    """What the daemon knows itself, without a run of the replica.

    `past` is what its runs have left, `obstacle` what keeps the target from taking changes, and
    `doing` what a start is at.
    """

    phase: State
    links: Links
    obstacle: str = ""
    obstacle_error: LinkError | None = None
    last_error: str | None = None
    doing: str = ""
    past: Past = NO_PAST
    began: float = 0.0
    """When the daemon did, in seconds since 1970."""
    reload_refused: bool = False
    tasks: int = 0
    counted: EarlierRuns = field(default_factory=EarlierRuns)
    """What counts on over all runs."""
    stop: LastStop | None = None
    """The error that has stopped it, if it stays."""
    stopped_at: FailedGroup | None = None


def state_of(
    phase: State, *, source: Link, target: Link, obstacle: bool = False, delayed: bool = False
) -> State:
    """Decide what the replica is doing.

    `phase` is what the daemon is at: starting, recovering, running, or an end. A target that takes
    nothing comes first, then a server that is away: whoever looks has to do something about it.
    """
    if phase in {"standby", "stopping", "stopped", "failed"}:
        return phase
    if obstacle:
        return "waiting"
    tried = bool(source.attempts or target.attempts)
    if not target.connected:
        return "connecting" if tried else "starting"
    if phase != "running":
        return phase
    if not source.connected:
        return "connecting"
    return "delayed" if delayed else "running"


def status_of(
    known: DaemonState,
    settings: Settings,
    statistics: ReplicaStatistics | None,
    distribution: DistributionStatus = NO_DISTRIBUTION,
) -> Status:
    """Return the status; `statistics` is None while no run is active."""
    past = known.past
    source, target = known.links.source, known.links.target
    connections = ConnectionsStatus(_connection(source), _connection(target, known.obstacle_error))
    doing = known.doing
    if known.obstacle:
        doing = _in_the_way(known.obstacle, known.obstacle_error)
    skipped_ever = past.skipped_ever if statistics is None else statistics.skipped_ever
    common = Status(
        state=state_of(known.phase, source=source, target=target, obstacle=bool(known.obstacle)),
        source=settings.source.address,
        target=settings.target.address,
        channel=settings.replica.channel,
        received=past.received,
        executed=past.executed,
        doing=doing,
        distribution=distribution,
        last_error=_last_error(known),
        connections=connections,
        filter=str(rules_of(settings.filter)),
        last_stop=None if known.stop is None else _last_stop(known.stop),
        stopped_at=_stopped_at(known.stop, known.stopped_at),
        daemon=DaemonStatus(
            version=__version__,
            compiled=COMPILED,
            pid=os.getpid(),
            started=shown_time(known.began),
            reload_refused=known.reload_refused,
            tasks=known.tasks,
        ),
        totals=_totals(past.totals.with_run(statistics), skipped_ever),
        ages=AgesStatus(
            BOUNDS_S,
            tuple(known.counted.applied.ages),
            round(known.counted.applied.age_us / 1_000_000, 3),
        ),
        databases=tuple(
            DatabaseStatus(name, groups=groups)
            for name, groups in sorted(known.counted.applied.by_database().items())
        ),
        source_log=SourceLogStatus(
            heard="" if past.heard_at is None else shown_time(past.heard_at),
            retention_left_seconds=past.needs.left(time()),
            server_id=past.source_log.server_id,
            server_uuid=past.source_log.server_uuid,
        ),
        semi_sync=_semi_sync(settings, known.counted.acknowledged),
        delay=settings.replica.delay,
        skipped=tuple(map(SkippedStatus.of, skipped_ever or ())),
    )
    return common if statistics is None else _of_run(common, known, settings, statistics)


def _semi_sync(settings: Settings, acknowledged: Acknowledged) -> SemiSyncStatus:
    latencies = tuple(acknowledged.latencies)
    return SemiSyncStatus(
        "off" if settings.source.semi_sync == "off" else "not connected",
        acknowledged.withdrawals,
        AgesStatus(semi_sync.BOUNDS_S, latencies, round(acknowledged.latency_s, 3)),
    )


def _of_run(
    common: Status, known: DaemonState, settings: Settings, statistics: ReplicaStatistics
) -> Status:
    """Return the status with what a run tells."""
    now = steady() + statistics.clock_offset
    asked = known.past.asked(statistics.source_log)
    lag: float | None = None
    if statistics.connected:
        lag = _age(now, statistics.oldest_commit_time)
    return replace(
        common,
        state=state_of(
            known.phase,
            source=known.links.source,
            target=known.links.target,
            obstacle=bool(known.obstacle),
            delayed=statistics.remaining_delay > 0,
        ),
        doing=common.doing or _held_up(statistics.held_up),
        received=received_of(statistics),
        executed=executed_of(statistics),
        lag_seconds=lag,
        lag_beyond_delay=None if lag is None else round(max(0.0, lag - settings.replica.delay), 3),
        remaining_delay=round(statistics.remaining_delay, 3),
        pending_groups=statistics.pending_groups,
        pending_bytes=statistics.pending_bytes,
        workers=tuple(
            WorkerStatus(
                id=worker.id,
                state=worker.state,
                queue_groups=worker.queue_groups,
                queue_bytes=worker.queue_bytes,
                groups=worker.groups,
                transactions=worker.transactions,
                retries=worker.retries,
                gave_way=worker.gave_way,
                last=Place.of(worker.last_position, worker.last_gtid),
                waits_for=worker.waits_for,
                busy_ratio=round(worker.busy_seconds / max(statistics.run_seconds, 1e-9), 4),
                target_wait=_target_wait(worker.target_wait),
            )
            for worker in statistics.workers
        ),
        partitions=tuple(
            PartitionStatus(
                name=partition.name,
                worker=partition.worker or None,
                pending_groups=partition.pending_groups,
                lag_seconds=_age(now, partition.oldest_commit_time),
                groups=partition.groups,
            )
            for partition in statistics.partitions
        ),
        waits={cause.value: round(seconds, 3) for cause, seconds in statistics.waits.items()},
        reading_waits_for=statistics.reading_waits_for or "",
        run_seconds=round(statistics.run_seconds, 3),
        cpu_seconds=round(statistics.cpu_seconds, 3),
        batch_groups=limits_of(settings).batch_groups,
        prepared_transactions=statistics.prepared_transactions,
        warnings=statistics.warnings,
        parallel_type=statistics.policy.parallel_type,
        parallel_type_because=statistics.policy.because,
        databases=_databases(known.counted.applied, statistics, now),
        source_log=SourceLogStatus(
            heard=common.source_log.heard
            if statistics.heard_at is None
            else shown_time(statistics.heard_at),
            # Of a source that is away nobody knows where its log ends.
            bytes_behind=bytes_behind(
                statistics.source_log.files, statistics.executed, statistics.received
            )
            if statistics.connected
            else None,
            retention_left_seconds=needs_of(statistics).over(known.past.needs).left(now),
            server_id=asked.server_id,
            server_uuid=asked.server_uuid,
        ),
        semi_sync=replace(common.semi_sync, state=statistics.semi_sync),
        in_doubt_groups=statistics.in_doubt,
    )


def _databases(
    applied: Applied, statistics: ReplicaStatistics, now: float
) -> tuple[DatabaseStatus, ...]:
    groups = applied.by_database()
    pending = statistics.pending_by_database
    return tuple(
        DatabaseStatus(name, 0, 0.0, groups.get(name, 0))
        if (waits := pending.get(name)) is None
        else DatabaseStatus(
            name, waits.groups, _age(now, waits.oldest_commit_time), groups.get(name, 0)
        )
        for name in sorted(groups.keys() | pending.keys())
    )


def _totals(totals: Totals, skipped: tuple[SkippedGroup, ...] | None) -> TotalsStatus:
    return TotalsStatus(
        groups=totals.groups,
        transactions=totals.transactions,
        retries=totals.retries,
        gave_way=totals.gave_way,
        skipped=totals.skipped,
        skipped_by_hand=None if skipped is None else len(skipped),
        busy_seconds=round(totals.busy_seconds, 3),
        waits={cause.value: round(seconds, 3) for cause, seconds in totals.waits.items()},
    )


def _last_stop(stop: LastStop) -> LastStopStatus:
    return LastStopStatus(shown_time(stop.time), stop.graceful, stop.text, stop.number, stop.group)


def _stopped_at(stop: LastStop | None, group: FailedGroup | None) -> StoppedStatus | None:
    if stop is None or group is None:
        return None
    return StoppedStatus(
        number=group.number,
        end=Place.of(group.end, group.gtid),
        kind=group.kind,
        databases=",".join(group.databases),
        error=stop.text,
        later_applied=group.later_applied,
        time=shown_time(stop.time),
    )


def shown_time(seconds: float) -> str:
    """Return a time in seconds since 1970 as ISO 8601, to the second."""
    return datetime.fromtimestamp(int(seconds), UTC).isoformat()


def _last_error(known: DaemonState) -> str | None:
    """Return what is wrong now: with the daemon itself, else with the target or the source.

    After a graceful stop, nothing is: that the source was away is no matter any more.
    """
    if known.phase == "stopped":
        return None
    errors = (known.obstacle_error, known.links.target.error, known.links.source.error)
    return known.last_error or next((each.text for each in errors if each is not None), None)


def _in_the_way(obstacle: str, error: LinkError | None) -> str:
    """Say what keeps the target from taking changes, and what to do about it."""
    if error is None or not error.number:
        return obstacle if error is None else f"{obstacle}: {error.text}"
    remedy = remedy_of(ServerError(error.number, "", error.text))
    return with_remedy(f"{obstacle}: error {error.number}: {error.text}", remedy)


def _connection(link: Link, other: LinkError | None = None) -> ConnectionStatus:
    error = link.error or other
    next_in = link.next_in
    return ConnectionStatus(
        link.connected,
        shown_time(link.since),
        link.attempts,
        None if next_in is None else round(next_in, 1),
        None if error is None else ErrorStatus(error.number, error.text, shown_time(error.time)),
    )


def _held_up(held: HeldUp | None) -> str:
    if held is None:
        return ""
    return f"worker {held.worker} waits for the target since {shown_time(held.since)}: {held.why}"


def _target_wait(wait: TargetWait | None) -> TargetWaitStatus | None:
    if wait is None:
        return None
    return TargetWaitStatus(
        seconds=round(wait.seconds, 3),
        statement=wait.statement,
        connection=wait.connection,
        group=wait.group,
        kind=wait.kind,
        databases=",".join(wait.databases),
    )


def _age(now: float, commit_time: int | None) -> float:
    return 0.0 if commit_time is None else max(0.0, round(now - commit_time / 1_000_000, 3))

"""The daemon's state in the form of the status socket."""

from typing import Final

from mtsd.config import Settings
from mtsd.control.status import (
    DistributionStatus,
    PartitionStatus,
    Place,
    State,
    Status,
    TargetWaitStatus,
    WorkerStatus,
)
from mtsd.replica.filters import rules_of
from mtsd.replica.limits import limits_of
from mtsd.replica.statistics import ReplicaStatistics
from mtsd.replica.target_waits import TargetWait
from mtsd.wire.steady_clock import steady

NO_DISTRIBUTION: Final = DistributionStatus()


def stated(
    state: State,
    settings: Settings,
    statistics: ReplicaStatistics | None,
    last_error: str | None,
    doing: str = "",
    distribution: DistributionStatus = NO_DISTRIBUTION,
) -> Status:
    """Return the status.

    `statistics` is None while no run is active, and `doing` says what a start is doing.
    """
    if statistics is None:
        return Status(
            state=state,
            source=settings.source.address,
            target=settings.target.address,
            channel=settings.replica.channel,
            received=Place(),
            executed=Place(),
            lag_seconds=None,
            pending_groups=0,
            pending_bytes=0,
            doing=doing,
            distribution=distribution,
            last_error=last_error,
            workers=(),
            partitions=(),
            waits={},
            filter=str(rules_of(settings.filter)),
        )
    now = steady() + statistics.clock_offset
    lag: float | None = None
    if statistics.connected:
        lag = _age(now, statistics.oldest_commit_time)
    if state == "running" and statistics.remaining_delay > 0:
        state = "delayed"
    return Status(
        state=state,
        source=settings.source.address,
        target=settings.target.address,
        channel=settings.replica.channel,
        received=Place.of(statistics.received, statistics.received_gtids),
        executed=Place.of(statistics.executed, statistics.executed_gtids),
        lag_seconds=lag,
        doing=doing,
        remaining_delay=round(statistics.remaining_delay, 3),
        pending_groups=statistics.pending_groups,
        pending_bytes=statistics.pending_bytes,
        last_error=last_error,
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
                waits_for=worker.waits_for or "",
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
        distribution=distribution,
        reading_waits_for=statistics.reading_waits_for or "",
        run_seconds=round(statistics.run_seconds, 3),
        cpu_seconds=round(statistics.cpu_seconds, 3),
        batch_groups=limits_of(settings).batch_groups,
        filter=str(rules_of(settings.filter)),
        prepared_transactions=statistics.prepared_transactions,
        warnings=statistics.warnings,
    )


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

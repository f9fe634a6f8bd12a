"""The daemon's state in the form of the status socket."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from mtsd.config import Settings
from mtsd.control.status import (
    ConnectionsStatus,
    ConnectionStatus,
    DistributionStatus,
    ErrorStatus,
    PartitionStatus,
    Place,
    SkippedStatus,
    State,
    Status,
    TargetWaitStatus,
    WorkerStatus,
)
from mtsd.replica.core.filters import rules_of
from mtsd.replica.core.limits import limits_of
from mtsd.replica.run.statistics import ReplicaStatistics
from mtsd.replica.workers.target_waits import TargetWait
from mtsd.wire.link import Link, LinkError, Links
from mtsd.wire.steady_clock import steady

NO_DISTRIBUTION: Final = DistributionStatus()
NOWHERE_YET: Final = Place()


@dataclass(frozen=True, slots=True)
class Known:
    """What the daemon knows itself, without a run of the replica.

    `received` and `executed` are those of its last run, `obstacle` is what keeps the target from
    taking changes, and `doing` what a start is at.
    """

    phase: State
    links: Links
    obstacle: str = ""
    obstacle_error: LinkError | None = None
    last_error: str | None = None
    doing: str = ""
    received: Place = NOWHERE_YET
    executed: Place = NOWHERE_YET


def state_of(
    phase: State, *, source: Link, target: Link, obstacle: bool = False, delayed: bool = False
) -> State:
    """Decide what the replica is doing.

    `phase` is what the daemon is at: starting, recovering, running, or an end. A target that takes
    nothing comes first, then a server that is away: whoever looks has to do something about it.
    """
    if phase in {"stopping", "stopped", "failed"}:
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


def stated(
    known: Known,
    settings: Settings,
    statistics: ReplicaStatistics | None,
    distribution: DistributionStatus = NO_DISTRIBUTION,
) -> Status:
    """Return the status; `statistics` is None while no run is active."""
    source, target = known.links.source, known.links.target
    connections = ConnectionsStatus(_connection(source), _connection(target, known.obstacle_error))
    doing = known.doing
    if known.obstacle:
        error = known.obstacle_error
        said = f": error {error.number}: {error.text}" if error is not None else ""
        doing = f"{known.obstacle}{said}"
    if statistics is None:
        return Status(
            state=state_of(
                known.phase, source=source, target=target, obstacle=bool(known.obstacle)
            ),
            source=settings.source.address,
            target=settings.target.address,
            channel=settings.replica.channel,
            received=known.received,
            executed=known.executed,
            doing=doing,
            distribution=distribution,
            last_error=_last_error(known),
            connections=connections,
            filter=str(rules_of(settings.filter)),
        )
    now = steady() + statistics.clock_offset
    lag: float | None = None
    if statistics.connected:
        lag = _age(now, statistics.oldest_commit_time)
    return Status(
        state=state_of(
            known.phase,
            source=source,
            target=target,
            obstacle=bool(known.obstacle),
            delayed=statistics.remaining_delay > 0,
        ),
        source=settings.source.address,
        target=settings.target.address,
        channel=settings.replica.channel,
        received=received_of(statistics),
        executed=executed_of(statistics),
        lag_seconds=lag,
        lag_beyond_delay=None if lag is None else round(max(0.0, lag - settings.replica.delay), 3),
        doing=doing,
        remaining_delay=round(statistics.remaining_delay, 3),
        pending_groups=statistics.pending_groups,
        pending_bytes=statistics.pending_bytes,
        last_error=_last_error(known),
        connections=connections,
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
        distribution=distribution,
        reading_waits_for=statistics.reading_waits_for or "",
        run_seconds=round(statistics.run_seconds, 3),
        cpu_seconds=round(statistics.cpu_seconds, 3),
        batch_groups=limits_of(settings).batch_groups,
        filter=str(rules_of(settings.filter)),
        prepared_transactions=statistics.prepared_transactions,
        warnings=statistics.warnings,
        skipped=tuple(map(SkippedStatus.of, statistics.skipped_ever)),
    )


def received_of(statistics: ReplicaStatistics) -> Place:
    """Return how far a run has read."""
    return Place.of(statistics.received, statistics.received_gtids)


def executed_of(statistics: ReplicaStatistics) -> Place:
    """Return the low-water mark of a run."""
    return Place.of(statistics.executed, statistics.executed_gtids)


def shown_time(seconds: float) -> str:
    """Return a time in seconds since 1970 as ISO 8601, to the second."""
    return datetime.fromtimestamp(int(seconds), UTC).isoformat()


def _last_error(known: Known) -> str | None:
    """Return what is wrong now: with the daemon itself, else with the target or the source."""
    errors = (known.obstacle_error, known.links.target.error, known.links.source.error)
    return known.last_error or next((each.text for each in errors if each is not None), None)


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

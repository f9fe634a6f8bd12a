"""What a running replica reports about itself, for status and metrics."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from mtsd.apply.position.failed_groups import SkippedGroup
from mtsd.model.gtid import Gtid, GtidSet
from mtsd.model.position import Position
from mtsd.replica.run.policy_choice import PolicyInForce
from mtsd.replica.workers.held_up import HeldUp
from mtsd.replica.workers.target_waits import TargetWait
from mtsd.schedule.by_database import PendingOfDatabase
from mtsd.schedule.policies.partition_statistics import PartitionStatistics
from mtsd.schedule.wait_cause import WaitCause
from mtsd.source.semi_sync import SemiSyncState
from mtsd.source.source_log import SourceLog


@dataclass(frozen=True, slots=True)
class WorkerStatistics:
    """One worker. `busy_seconds` is the time spent applying since the run began."""

    id: int
    state: str
    """idle, waiting (for other groups), frozen or applying."""
    queue_groups: int
    queue_bytes: int
    groups: int
    transactions: int
    retries: int
    skipped: int
    """Groups skipped because of `skip_errors`."""
    gave_way: int
    """Batches applied before their turn and rolled back, because an earlier group needed a lock."""
    waits_for: str
    """What its queue's head waits for while it is idle, or what it has applied, a `WaitCause`; or
    what it waits for at the target; "" for nothing."""
    last_position: Position | None
    last_gtid: Gtid | None
    busy_seconds: float
    target_wait: TargetWait | None


@dataclass(frozen=True, slots=True)
class ReplicaStatistics:
    """The run. Times in seconds, `oldest_commit_time` in µs since 1970, None if none is pending."""

    connected: bool
    received: Position
    received_gtids: GtidSet | None
    executed: Position
    executed_gtids: GtidSet | None
    executed_number: int
    clock_offset: float
    """The source's clock minus `steady`."""
    oldest_commit_time: int | None
    remaining_delay: float
    """Until the next group is due, if it is held because of `replica.delay`; else 0."""
    pending_groups: int
    """Those that the delay holds back included."""
    prepared_transactions: int
    """XA transactions that have been read and whose completion has not."""
    pending_bytes: int
    skipped: int
    skipped_ever: tuple[SkippedGroup, ...]
    """What people have skipped on this channel."""
    run_seconds: float
    cpu_seconds: float
    """Of the process, in that time."""
    waits: Mapping[WaitCause, float]
    """Seconds by cause: of reading, or of all idle workers together."""
    reading_waits_for: WaitCause | None
    """What keeps the next group of the stream from being added."""
    workers: tuple[WorkerStatistics, ...]
    partitions: tuple[PartitionStatistics, ...]
    pending_by_database: Mapping[str, PendingOfDatabase]
    source_log: SourceLog
    semi_sync: SemiSyncState
    heard_at: float | None
    """When the source has last sent something, in seconds since 1970; None: not in this run."""
    in_doubt: int
    """Groups with an in-doubt record, at the last look."""
    warnings: tuple[str, ...]
    """What the guard has found that does not stop it."""
    policy: PolicyInForce
    held_up: HeldUp | None


LONG_WAIT_S: Final = 1.0
"""From then on, a worker without an answer waits for the target rather than applies."""


def worker_state(
    *,
    queued: int,
    running: bool,
    frozen: bool,
    waits_for: WaitCause | None,
    at_target: str = "",
    awaited_s: float = 0.0,
) -> tuple[str, str]:
    """Decide what a worker does, and what it waits for.

    `running`: it has begun something. `waits_for` is the scheduler's cause, `at_target` what keeps
    the target from taking changes, `awaited_s` for how long it has not answered.
    """
    if running:
        if at_target:
            return "waiting", at_target
        if waits_for is not None:
            return "waiting", waits_for
        if awaited_s >= LONG_WAIT_S:
            return "waiting", "target"
        return "applying", ""
    if frozen:
        return "frozen", waits_for or ""
    return "waiting" if queued else "idle", waits_for or ""

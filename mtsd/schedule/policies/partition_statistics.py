"""What is known about a partition, for status and metrics."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PartitionStatistics:
    """One partition: which worker has it, and how much of it is pending.

    `worker` counts from 1; 0 if no unfinished group uses the partition. `oldest_commit_time` is
    in µs since 1970, of its unfinished groups; None if there are none.
    """

    name: str
    worker: int
    pending_groups: int
    oldest_commit_time: int | None
    groups: int
    """Committed in this run."""

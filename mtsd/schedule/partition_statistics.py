"""What is known of a partition, for status and metrics."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PartitionStatistics:
    """One partition: whose it is, and how much of it waits.

    `worker` counts from 1, 0 where no unfinished group uses the partition. `oldest_commit_time` is
    in µs since 1970, of its unfinished groups; None where there are none.
    """

    name: str
    worker: int
    pending_groups: int
    oldest_commit_time: int | None
    groups: int
    """Committed in this run."""

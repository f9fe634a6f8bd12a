"""How much the schedule holds, and how much goes into one transaction of the target."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes of the queues: groups, bytes."""

    checkpoint_group: int
    pending_jobs_size_max: int
    batch_groups: int
    batch_bytes: int

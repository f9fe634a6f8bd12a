"""Why something has to wait: one name for each cause, from the schedule to the status."""

import enum


class WaitCause(enum.StrEnum):
    """What has to change before a group can proceed.

    The first three prevent the next group of the stream from being added, the others prevent the
    head of a worker's queue from beginning.
    """

    GAQ_FULL = "gaq_full"
    """The GAQ contains checkpoint_group groups past the stored low-water mark."""
    PENDING_BYTES = "pending_bytes"
    """pending_jobs_size_max bytes are queued."""
    QUEUE_FULL = "queue_full"
    """The worker's queue has reached its maximum length."""
    PARTITION = "partition"
    """Another worker holds a partition of the group."""
    DEPENDENCY = "dependency"
    """A group that it depends on, by the source's clock or by its rows, has not committed."""
    ALONE = "alone"
    """It runs alone, or an earlier group does."""

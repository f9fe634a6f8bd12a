"""Why something has to wait: one name for each cause, from the schedule to the status."""

import enum


class WaitCause(enum.StrEnum):
    """What has to change before a group can go on.

    The first three keep the next group of the stream from being taken in, the others the head of a
    worker's queue from being begun.
    """

    GAQ_FULL = "gaq_full"
    """The GAQ holds checkpoint_group groups past the stored low-water mark."""
    PENDING_BYTES = "pending_bytes"
    """pending_jobs_size_max bytes are queued."""
    QUEUE_FULL = "queue_full"
    """The worker's queue is as long as it may be."""
    PARTITION = "partition"
    """A partition of the group is held by another worker."""
    DEPENDENCY = "dependency"
    """A group that it depends on, by the source's clock or by its rows, has not committed."""
    ALONE = "alone"
    """It runs alone, or an earlier group does."""

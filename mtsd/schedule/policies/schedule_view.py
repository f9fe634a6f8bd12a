"""What a policy may look at when it chooses a worker."""

from collections.abc import Sequence

from mtsd.schedule.done.group_assigned_queue import GroupAssignedQueue


class ScheduleView:
    """The current load of each worker's queue and the low-water mark, read-only.

    `groups` and `sizes` are by worker: how many groups that have not committed are in its queue,
    whether begun or not, and their bytes. `frozen` says which workers begin nothing at present.
    `batch_groups` is how many groups may be combined.
    """

    __slots__ = ("_gaq", "batch_groups", "frozen", "groups", "sizes")

    def __init__(
        self,
        groups: Sequence[int],
        sizes: Sequence[int],
        gaq: GroupAssignedQueue,
        batch_groups: int,
        frozen: Sequence[bool],
    ) -> None:
        self.groups = groups
        self.sizes = sizes
        self._gaq = gaq
        self.batch_groups = batch_groups
        self.frozen = frozen

    @property
    def mark(self) -> int:
        """The number up to which every group has committed."""
        return self._gaq.number

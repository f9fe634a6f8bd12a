"""When the low-water mark is stored on the target."""

from typing import Final

from mtsd.model.low_water_mark import LowWaterMark
from mtsd.schedule.done.group_assigned_queue import GroupAssignedQueue

_MANY_PASSED: Final = 128
"""Groups past the stored low-water mark that make the workers' rows worth shortening."""


class Checkpoints:
    """The mark that is `stored`, beside that of the GAQ.

    `newest_change` is the newest group that was not empty.
    """

    __slots__ = ("_gaq", "newest_change", "stored")

    def __init__(self, gaq: GroupAssignedQueue, stored: LowWaterMark) -> None:
        self._gaq = gaq
        self.stored = stored
        self.newest_change = stored.number

    def due(self, checkpoint_group: int, *, rests: bool) -> LowWaterMark | None:
        """Return the low-water mark if it is beyond the one that is stored, or says more.

        With `rests`, not for the sake of a few empty groups in the same file: in a circle of two
        servers, what is stored on each would be such a group for the other, for ever.
        `checkpoint_group` is the GAQ's limit.
        """
        stored = self.stored
        gaq = self._gaq
        if (
            gaq.number == stored.number
            and gaq.position == stored.position
            and gaq.temporary is stored.temporary
            and gaq.begun == stored.begun
        ):
            return None
        if (
            rests
            and self.newest_change <= stored.number
            and gaq.position.file == stored.position.file
            and gaq.temporary is stored.temporary
            and gaq.begun == stored.begun
            and gaq.knows_gtids == (stored.gtids is not None)
            and not self.are_urgent(checkpoint_group)
        ):
            return None
        return gaq.mark()

    def are_urgent(self, checkpoint_group: int) -> bool:
        """Return whether to store the low-water mark before its period has passed.

        The GAQ fills up, or the workers' rows grow: they hold everything past the stored mark.
        """
        passed = self._gaq.number - self.stored.number
        return passed >= min(_MANY_PASSED, max(1, checkpoint_group // 4))

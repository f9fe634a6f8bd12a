"""Where a schedule ends: after what has begun, so that no gap remains, or at once."""


class Ending:
    """`highest_begun` is the highest group that has begun, in this run or before."""

    __slots__ = ("halted", "highest_begun", "limit")

    def __init__(self, highest_begun: int) -> None:
        self.highest_begun = highest_begun
        self.limit: int | None = None
        """Nothing after this group begins; None: there is no end yet."""
        self.halted = False
        """Whether nothing begins any more: a group has failed."""

    def begins(self, number: int) -> None:
        """Note that a group begins."""
        self.highest_begun = max(self.highest_begun, number)

    def stop(self, newest: int, *, reading: bool) -> None:
        """End after what has begun; without `reading`, as far as that is read: up to `newest`."""
        self.limit = self.highest_begun if reading else min(self.highest_begun, newest)

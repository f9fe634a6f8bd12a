"""How many groups of statements a worker applies together.

What begins together commits together: a graceful stop has to finish all of it, and it holds its
locks until then. So a run may only be as long as it takes little time. And it is tried without
knowing whether it can succeed: if it often cannot, trying costs more than it gains.
"""

from typing import Final

from mtsd.schedule.batches.tries import Tries

MAX_STATEMENTS: Final = 128
"""More save little: what a commit costs is shared by as many already."""
_SHORT_S: Final = 0.05
_LONG_S: Final = 0.2


class StatementRuns:
    """Learns from the runs of one worker; pure."""

    __slots__ = ("_tries", "most")

    def __init__(self) -> None:
        self.most = 1
        """How many groups may be begun together."""
        self._tries = Tries()

    def may_try(self) -> bool:
        """Return whether the next run is to be tried; otherwise its groups are applied singly."""
        return self._tries.may_try()

    def succeeded(self, groups: int, seconds: float) -> None:
        """Note that a run of so many groups has committed after so many seconds."""
        self._tries.succeeded()
        self.took(seconds)
        if seconds < _SHORT_S and groups == self.most:
            self.most = min(2 * self.most, MAX_STATEMENTS)

    def took(self, seconds: float) -> None:
        """Note that something that has begun with others has taken so long to commit."""
        if seconds > _LONG_S:
            self.most = max(1, self.most // 2)

    def failed(self) -> None:
        """Note that the groups of a run had to be applied singly: the next ones are, too."""
        self.most = 1
        self._tries.failed()

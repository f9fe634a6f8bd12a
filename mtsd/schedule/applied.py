"""What has been applied since the daemon began: how long after its commit, and of which databases.

Pure: it is told the time. One batch at a time, so that a transaction costs two lookups.
"""

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

from mtsd.model.group import Group

BOUNDS_S: Final[tuple[float, ...]] = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0,
    7200.0,
)  # fmt: skip
"""Upper bounds of the ages that are counted together; what is older is counted after them."""
_BOUNDS_US: Final = [int(bound * 1_000_000) for bound in BOUNDS_S]
_ABOVE_US: Final = [-(1 << 62), *_BOUNDS_US]
_UP_TO_US: Final = [*_BOUNDS_US, 1 << 62]
_MAX_NAMES: Final = 16_384
"""Groups of further databases are counted without their names: those cost memory."""


class Applied:
    """Counts groups by age and by database; of a database, groups are counted that update it."""

    def __init__(self) -> None:
        self.ages = [0] * (len(_BOUNDS_US) + 1)
        """Groups by the age at which they were applied, one number for each bound, and one more."""
        self.age_us = 0
        """The sum of these ages, in µs."""
        self._by_names: dict[tuple[str, ...], int] = {}

    def note(self, groups: Sequence[Group], now: int) -> None:
        """Note that groups have committed on the target; `now` is the source's clock, in µs."""
        ages = self.ages
        total = at = groups_in_turn = 0
        above, up_to = 0, -1
        names: tuple[str, ...] = ()
        for group in groups:
            age = now - group.commit_time
            if age > 0:
                # The clocks' difference is known to half a round trip.
                total += age
            # Those of one batch are mostly alike.
            if age > up_to or age <= above:
                at = bisect_left(_BOUNDS_US, age)
                above, up_to = _ABOVE_US[at], _UP_TO_US[at]
            ages[at] += 1
            if group.databases != names:
                self._count(names, groups_in_turn)
                names = group.databases
                groups_in_turn = 0
            groups_in_turn += 1
        self._count(names, groups_in_turn)
        self.age_us += total

    def _count(self, names: tuple[str, ...], groups: int) -> None:
        by_names = self._by_names
        if names in by_names:
            by_names[names] += groups
        elif len(by_names) < _MAX_NAMES:
            by_names[names] = groups

    def by_database(self) -> dict[str, int]:
        """Return the number of groups by database."""
        seconds: dict[str, int] = {}
        for names, groups in self._by_names.items():
            for name in names:
                seconds[name] = seconds.get(name, 0) + groups
        return seconds

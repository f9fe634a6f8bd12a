"""Whether another policy would serve a load better, from what a daemon has counted.

    1,000 groups in 60 s, 970 of them of shop, its worker at work for 50 s
        "shop has 97% of the transactions, which one of 4 workers applies"
    4 workers wait 80 of 240 s for each other's databases
        "workers wait 33% of their time for a partition that another one has"

Only policies by names are judged: of the others, a person or mtsd has thought already.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from mtsd.control.status import Status
from mtsd.model.parallel_type import BY_NAMES

_FEWEST_GROUPS: Final = 1000
"""What is less tells nothing about a load."""
_NEARLY_ALL: Final = 0.9
_AT_WORK: Final = 0.5
"""Of the time: a worker that rests longer could apply more than there is."""
_MUCH_WAITED: Final = 0.2
REMEDY: Final = 'try [replica] parallel_type = "auto" (docs/policies.md)'


@dataclass(frozen=True, slots=True)
class LoadSeen:
    """What a daemon has counted in some `seconds`; `groups` by database; times of all workers."""

    parallel_type: str
    workers: int
    seconds: float
    groups: Mapping[str, int]
    busy_seconds: float
    partition_seconds: float

    @classmethod
    def of(cls, status: Status, seconds: float) -> "LoadSeen":
        """Return what a daemon has counted since it began.

        `seconds` have passed since then, or since any other time that differences are made of.
        """
        totals = status.totals
        return cls(
            # What mtsd has chosen it need not advise against.
            "" if status.parallel_type_because else status.parallel_type,
            len(status.workers),
            seconds,
            {database.name: database.groups for database in status.databases},
            totals.busy_seconds,
            totals.waits.get("partition", 0.0),
        )

    def since(self, before: "LoadSeen") -> "LoadSeen":
        """Return what was counted since another count."""
        return LoadSeen(
            self.parallel_type,
            self.workers,
            self.seconds - before.seconds,
            {name: groups - before.groups.get(name, 0) for name, groups in self.groups.items()},
            self.busy_seconds - before.busy_seconds,
            self.partition_seconds - before.partition_seconds,
        )


def better_policy(seen: LoadSeen) -> str | None:
    """Return why another policy would serve, which is what `REMEDY` says; None if none would."""
    total = sum(seen.groups.values())
    if seen.parallel_type not in BY_NAMES or seen.workers < 2 or total < _FEWEST_GROUPS:
        return None
    database = max(seen.groups, key=lambda name: seen.groups[name])
    share = seen.groups[database] / total
    if (
        seen.parallel_type == "database"
        and share >= _NEARLY_ALL
        and seen.busy_seconds >= _AT_WORK * seen.seconds
    ):
        return (
            f"{database} has {share:.0%} of the transactions, which one of {seen.workers} workers"
            " applies"
        )
    waited = seen.partition_seconds / max(seen.workers * seen.seconds, 1e-9)
    if waited >= _MUCH_WAITED:
        return f"workers wait {waited:.0%} of their time for a partition that another one has"
    return None

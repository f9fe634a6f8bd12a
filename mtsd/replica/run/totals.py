"""What the runs of one daemon add up to: a run ends whenever the target is lost."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from mtsd.replica.run.statistics import ReplicaStatistics
from mtsd.schedule.wait_cause import WaitCause


def _no_waits() -> dict[WaitCause, float]:
    return dict.fromkeys(WaitCause, 0.0)


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over all workers and runs since the daemon began."""

    groups: int = 0
    transactions: int = 0
    """Target transactions that they were committed in."""
    retries: int = 0
    gave_way: int = 0
    skipped: int = 0
    """Groups skipped because of `skip_errors`."""
    busy_seconds: float = 0.0
    waits: Mapping[WaitCause, float] = field(default_factory=_no_waits)
    """Seconds by cause."""

    def with_run(self, run: ReplicaStatistics | None) -> "Totals":
        """Return the sums with those of a run."""
        if run is None:
            return self
        workers = run.workers
        return Totals(
            groups=self.groups + sum(each.groups for each in workers),
            transactions=self.transactions + sum(each.transactions for each in workers),
            retries=self.retries + sum(each.retries for each in workers),
            gave_way=self.gave_way + sum(each.gave_way for each in workers),
            skipped=self.skipped + sum(each.skipped for each in workers),
            busy_seconds=self.busy_seconds + sum(each.busy_seconds for each in workers),
            waits={cause: self.waits[cause] + seconds for cause, seconds in run.waits.items()},
        )


NO_TOTALS: Final = Totals()

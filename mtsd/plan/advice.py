"""Which of the simulated configurations to use, and what limits its speed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from mtsd.plan.candidate import Candidate
from mtsd.plan.costs import Machines
from mtsd.plan.load import Load
from mtsd.plan.simulated_run import SimulatedRun
from mtsd.schedule.policies.choice import POLICIES

_AS_GOOD: Final = 0.95
"""A simpler configuration is preferred if it reaches this share of the best rate."""
_BUSY: Final = 0.85
_MUCH: Final = 0.10
_UNEVEN: Final = 1.5
"""A partition with this many times its even share of the work holds back the other workers."""


@dataclass(frozen=True, slots=True)
class TriedCandidate:
    """A configuration and its outcome."""

    candidate: Candidate
    outcome: SimulatedRun


def recommended(results: Sequence[TriedCandidate]) -> TriedCandidate:
    """Return the simplest of the results that are about as fast as the fastest.

    Simpler means fewer workers, no binds, smaller batches, or a policy that comes earlier in the
    scheduler's list. Raises ValueError if there are no results.
    """
    if not results:
        raise ValueError("nothing was simulated")
    best = max(result.outcome.rate for result in results)
    order = list(POLICIES)

    def effort(result: TriedCandidate) -> tuple[int, int, int, int]:
        one = result.candidate
        return (
            one.parallel_workers,
            len(one.bind),
            one.batch_groups,
            order.index(one.parallel_type) if one.parallel_type in order else len(order),
        )

    return min((result for result in results if result.outcome.rate >= _AS_GOOD * best), key=effort)


def reasons(result: TriedCandidate, load: Load, machines: Machines) -> list[str]:
    """Return in plain words what a configuration spends its time on, most important first."""
    outcome = result.outcome
    causes = [*_of_processors(outcome, machines)]
    if outcome.sync > _BUSY:
        text = (
            f"syncs: the target syncs its logs {outcome.sync:.0%} of the time; larger batches need"
            " fewer syncs, more workers share them"
        )
        causes.append((outcome.sync, text))
    if outcome.waiting > _MUCH:
        worst = sorted(outcome.waits.items(), key=lambda item: -item[1])[:3]
        names = ", ".join(f"{name} ({seconds:.1f} s)" for name, seconds in worst)
        text = (
            f"dependencies: workers wait {outcome.waiting:.0%} of the time for the groups of"
            f" others, most for {names}"
        )
        causes.append((outcome.waiting, text))
    busiest = load.databases[0] if load.databases else None
    workers = max(1, result.candidate.parallel_workers)
    if busiest is not None and workers > 1 and busiest.share > _UNEVEN / workers:
        text = (
            f"database {busiest.name}: it has {busiest.share:.0%} of the rows, so under the"
            f" database policy nothing exceeds {1 / busiest.share:.1f} times one worker"
        )
        causes.append((busiest.share, text))
    causes += [
        (share, f"room: reading waits {share:.0%} of the time ({cause})")
        for cause, share in outcome.blocked.items()
        if share > _BUSY and not causes
    ]
    return [text for _, text in sorted(causes, key=lambda one: -one[0])]


def excesses(result: TriedCandidate, load: Load, machines: Machines) -> list[str]:
    """Return what should be said of a number of workers that exceeds what there is for them."""
    one = result.candidate
    workers, processors = one.parallel_workers, machines.target or machines.daemon
    texts = []
    if workers > processors:
        texts.append(
            f"{workers} workers are more than the {processors} processors of the target's machine:"
            " they only help to share syncs"
        )
    parts = load.number_of_databases
    if one.parallel_type == "database" and 0 < parts < workers:
        texts.append(
            f"{workers} workers are more than the {parts} databases of the load: under the database"
            f" policy, at most {parts} of them have work"
        )
    return texts


def _of_processors(outcome: SimulatedRun, machines: Machines) -> Iterator[tuple[float, str]]:
    shared = machines.target is None
    daemon = outcome.reading + outcome.sending
    used, processors = outcome.target, machines.target or 1
    if shared:
        used += daemon
        processors = machines.daemon
    if used > _BUSY * processors:
        who = "target and daemon use" if shared else "the target uses"
        text = (
            f"processors: {who} {used:.1f} of {processors}; more workers do not help, fewer and"
            " larger transactions do (batch_groups)"
        )
        yield used / processors, text
    if daemon > _BUSY:
        text = (
            f"the daemon: reading takes {outcome.reading:.0%} of a processor, sending"
            f" {outcome.sending:.0%}, and it cannot use more than one"
        )
        yield daemon, text

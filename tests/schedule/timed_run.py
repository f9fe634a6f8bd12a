"""Workers and their schedule under a clock that a test moves."""

from dataclasses import dataclass

from mtsd.model.group import Group
from mtsd.schedule.done.executed_groups import ExecutedGroups
from mtsd.schedule.limits import Limits
from mtsd.schedule.policies.assignment import Policy
from mtsd.schedule.policies.choice import choose_policy
from mtsd.schedule.scheduler import Scheduler
from tests.schedule.worlds.streams import START_MARK

LIMITS = Limits(
    checkpoint_group=100, pending_jobs_size_max=10_000, batch_groups=1, batch_bytes=10_000
)


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


class Run:
    """Workers and their schedule; each call takes a second before it happens."""

    def __init__(self, policy: str | Policy, workers: int = 2, *, in_order: bool = False) -> None:
        self.clock = Clock(1000.0)
        chosen = policy
        if isinstance(chosen, str):
            chosen = choose_policy(chosen, workers, in_order=in_order)
        self.scheduler = Scheduler(
            chosen,
            workers,
            LIMITS,
            START_MARK,
            ExecutedGroups(1),
            fillers=dict.fromkeys(chosen.needs, lambda group: group),
            clock=self.clock,
            in_order=in_order,
        )

    def add(self, added: Group) -> None:
        self.clock.now += 1
        self.scheduler.add(added)

    def take(self, worker: int) -> list[int]:
        self.clock.now += 1
        return [each.number for each in self.scheduler.take(worker)]

    def commit(self, worker: int) -> None:
        self.clock.now += 1
        self.scheduler.commit(worker, self.scheduler.workers[worker].running)

    @property
    def waited(self) -> dict[str, float]:
        return {cause: each for cause, each in self.scheduler.wait_seconds().items() if each}

"""What a person has set over the status socket: it holds until the daemon ends.

It is over the configuration, key by key; a key that a reload changes is the configuration's again.
"""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Final

from pydantic import ValidationError

from mtsd.config import Settings
from mtsd.control.distribute_route import Change
from mtsd.control.status import DistributionStatus
from mtsd.model.distribution import Distribution, NotPossibleError
from mtsd.model.parallel_type import BY_NAMES
from mtsd.replica.core.limits import distribution_of

_LONGEST_NAME: Final = 64
"""Of a database, in characters; a server has none that is longer."""
_KEYS: Final = ("bind", "pin", "weigh")


@dataclass(frozen=True, slots=True)
class ByHand:
    """The keys of `distribution` that were `set`, and the Ids of the workers that are `frozen`."""

    distribution: Distribution = field(default_factory=Distribution)
    set: frozenset[str] = frozenset()
    frozen: frozenset[int] = frozenset()

    def over(self, settings: Settings) -> Settings:
        """Return the settings in force: these, with what was set."""
        if not self.set:
            return settings
        given = {key: getattr(self.distribution, key) for key in self.set}
        return replace(settings, replica=replace(settings.replica, **given))

    def without(self, keys: Collection[str]) -> "ByHand":
        """Return what remains when these keys, such as "replica.pin", have been changed again."""
        return replace(self, set=self.set - {key.removeprefix("replica.") for key in keys})

    def released(self) -> "ByHand":
        """Return it without frozen workers: a stop finishes what they have to."""
        return replace(self, frozen=frozenset())

    def changed(self, change: Change, settings: Settings) -> "ByHand":
        """Return it with a person's change; `settings` are those in force.

        Raises NotPossibleError.
        """
        replica = settings.replica
        workers = max(replica.parallel_workers, 1)
        if change.do in _OF_WORKERS and not 1 <= change.worker <= workers:
            raise NotPossibleError(f"there is no worker {change.worker}: they are 1 to {workers}")
        if change.do == "freeze":
            return replace(self, frozen=self.frozen | {change.worker})
        if change.do == "unfreeze":
            return replace(self, frozen=self.frozen - {change.worker})
        if replica.parallel_workers == 0:
            raise NotPossibleError(
                f"{change.do} has no effect with parallel_workers = 0: there is one queue"
            )
        if replica.parallel_type not in BY_NAMES:
            raise NotPossibleError(
                f'{change.do} has no effect with parallel_type = "{replica.parallel_type}": that'
                " policy goes by no names"
            )
        if replica.consistency == "eventual":
            raise NotPossibleError(
                f'{change.do} has no effect with consistency = "eventual": any worker applies any'
                " transaction of rows"
            )
        if change.do == "weigh" and replica.consistency == "any_time":
            raise NotPossibleError(
                'weigh has no effect with consistency = "any_time": no worker is chosen by weights'
            )
        if not change.databases or not all(change.databases):
            raise NotPossibleError(f"{change.do} needs the name of a database")
        before = distribution_of(settings)
        after = _with(before, change)
        for problem in after.problems(workers):
            raise NotPossibleError(problem)
        here = {key for key in _KEYS if getattr(after, key) != getattr(before, key)}
        result = replace(self, distribution=after, set=self.set | here)
        try:
            result.over(settings)
        except ValidationError as error:
            # The number of a worker and a weight have been looked at above.
            wrong = str(error.errors()[0]["input"])
            raise NotPossibleError(
                f"{change.do}: {wrong[:_LONGEST_NAME]!r} is no name of a database: that is UTF-8,"
                f" and has up to {_LONGEST_NAME} characters, not {len(wrong)}"
            ) from error
        return result

    def status(self, settings: Settings) -> DistributionStatus:
        """Describe what is in force, `settings` with what was set."""
        distribution = distribution_of(settings)
        return DistributionStatus(
            bind=distribution.bind,
            pin=distribution.pin,
            weigh=distribution.weigh,
            frozen=tuple(sorted(self.frozen)),
            until_the_daemon_ends=tuple(
                [key for key in _KEYS if key in self.set] + ["frozen"] * bool(self.frozen)
            ),
        )


_OF_WORKERS: Final = frozenset({"pin", "freeze", "unfreeze"})


def _with(before: Distribution, change: Change) -> Distribution:
    match change.do:
        case "bind":
            return before.with_bound(change.databases)
        case "unbind":
            return before.without_bound(change.databases)
        case "pin":
            return before.with_pinned(change.databases, change.worker)
        case "unpin":
            return before.with_pinned(change.databases, 0)
        case _:
            return before.with_weight(change.databases, change.weight)

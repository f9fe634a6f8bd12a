"""The configurations that are compared, in terms of `[replica]`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from mtsd.model.parallel_type import BY_THE_SOURCE
from mtsd.schedule.batches.alone import BY_THEMSELVES, AloneRule
from mtsd.schedule.policies.choice import POLICIES

Bind = tuple[tuple[str, ...], ...]
"""Sets of databases, each of which is one partition."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One configuration; `parallel_workers` and `batch_groups` as in `[replica]`."""

    parallel_type: str
    parallel_workers: int
    batch_groups: int
    bind: Bind = ()

    def settings(self) -> Mapping[str, object]:
        """Return its keys in `[replica]`."""
        return {
            "parallel_type": self.parallel_type,
            "parallel_workers": self.parallel_workers,
            "batch_groups": self.batch_groups,
            "bind": [list(names) for names in self.bind],
        }

    def __str__(self) -> str:
        bound = f", {len(self.bind)} bound" if self.bind else ""
        return (
            f"{self.parallel_type}, {self.parallel_workers} workers,"
            f" batches of {self.batch_groups}{bound}"
        )


@dataclass(frozen=True, slots=True)
class CommonSettings:
    """The settings that all candidates share; `alone` is `ddl` and `statements` of `[replica]`."""

    batch_bytes: int = 4 << 20
    pending_jobs_size_max: int = 64 << 20
    checkpoint_group: int = 8192
    alone: AloneRule = BY_THEMSELVES


DEFAULT_SETTINGS: Final = CommonSettings()


def not_simulated(
    consistency: str,
    split_transactions: str,
    *,
    rules: str = "",
    distributed: bool = False,
    gtid: str = "auto",
) -> list[str]:
    """Return in words what a configuration has that no candidate is simulated with.

    The arguments are those keys of `[replica]` and `[target]`, the filter's rules, and whether
    databases are pinned or weighed. Every candidate is simulated as with consistency =
    "partition", without splitting, and with all that the source has logged.
    """
    why = []
    if rules:
        why.append(
            f"the filter of the configuration ({rules}): all transactions of the source count, also"
            " those of which nothing is applied"
        )
    if distributed:
        why.append("pin and weigh of the configuration: no database has a place of its own")
    if gtid == "preserve":
        why.append(
            'batches, with target.gtid = "preserve" of the configuration: there, transactions are'
            " never combined"
        )
    if consistency == "eventual":
        why.append(
            'consistency = "eventual" of the configuration: all of this is as with "partition".'
            ' With "eventual", parallel_type and bind have no effect, and points measured with it'
            " fit none of this"
        )
    elif consistency == "any_time":
        why.append(
            'consistency = "any_time" of the configuration: all of this is as with "partition",'
            " without the waits for the turn to commit"
        )
    if split_transactions != "off":
        why.append(
            f'split_transactions = "{split_transactions}" of the configuration: large transactions'
            " are as if one worker applied each"
        )
    return why


def candidates(
    workers: Iterable[int],
    batches: Sequence[int],
    binds: Sequence[Bind] = ((),),
    policies: Iterable[str] = POLICIES,
) -> list[Candidate]:
    """Return every combination, cheaper ones first, by default for all policies.

    A single worker behaves the same under every policy and bind, so it appears once per batch;
    and binds are not combined with policies that go by no names.
    """
    distinct: dict[Candidate, None] = {}
    first = next(iter(POLICIES))
    for policy in policies:
        for bind in binds:
            for count in sorted(set(workers)):
                for batch in sorted(set(batches)):
                    if count <= 1:
                        distinct[Candidate(first, count, batch)] = None
                    elif not (bind and policy in BY_THE_SOURCE):
                        distinct[Candidate(policy, count, batch, bind)] = None
    return list(distinct)

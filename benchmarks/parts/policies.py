"""One busy database under each policy, beside eight databases; and one row that all change."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from benchmarks.figures import Figure, Range
from benchmarks.parts import backlog
from benchmarks.replicas import servers
from benchmarks.replicas.runs import Applied
from mtsd.schedule.policies.choice import POLICIES
from tests.load import small
from tests.replica.daemon_process import Value
from tests.servers.mysqld import Server

_DATABASES: Final = 8
_WRITERS: Final = 16
_NATIVE: Final = "-"
EIGHT: Final = "eight databases"
ONE: Final = "one database"
HOT: Final = "one row"
_IN_ORDER: Final = " any_time"
"""What ends the name of a policy under which nobody sees a state that the source never had."""
LEAST: Final[Mapping[str, float]] = {
    "logical_clock": 0.85,
    "row": 0.85,
    f"logical_clock{_IN_ORDER}": 0.75,
    f"row{_IN_ORDER}": 0.75,
}
"""By policy: how much of the rate on eight databases it has to reach on one."""
_MAX_CPU: Final = 2.0
"""How many times the daemon's CPU of the database policy that of the row policy may be."""


@dataclass(slots=True)
class Found:
    """Runs by load and policy; those of the server's own replica under "-"."""

    runs: dict[tuple[str, str], list[Applied]] = field(default_factory=dict)

    def add(self, load: str, policy: str, run: Applied) -> None:
        """Add a run, and print it."""
        self.runs.setdefault((load, policy), []).append(run)
        print(f"{load}, {policy}: {run.seconds:.2f} s", file=sys.stderr)

    def ratios(self, one: tuple[str, str], other: tuple[str, str]) -> Range | None:
        """Return how many times faster `one` was than `other`, round by round; None if not run."""
        if one not in self.runs or other not in self.runs:
            return None
        both = zip(self.runs[one], self.runs[other], strict=True)
        return Range.of(mine.rate / its.rate for mine, its in both)


def measured(transactions: int, workers: int, rounds: int) -> Found:
    """Measure every load under every policy that fits it, durable, `rounds` times."""
    found = Found()
    with (
        backlog.loaded_source(transactions, _DATABASES, _WRITERS) as eight,
        backlog.loaded_source(transactions, 1, _WRITERS) as one,
        _hot_source(transactions) as hot,
    ):
        for _ in range(rounds):
            by_database = ["database", f"database{_IN_ORDER}"]
            in_one = [*POLICIES, *(policy for policy in LEAST if policy not in POLICIES)]
            _round(found, EIGHT, eight, _DATABASES, by_database, transactions, workers)
            _round(found, ONE, one, 1, in_one, transactions, workers)
            _round(found, HOT, hot, 1, list(POLICIES), transactions, workers)
    return found


def _round(
    found: Found,
    load: str,
    source: Server,
    databases: int,
    policies: Sequence[str],
    transactions: int,
    workers: int,
) -> None:
    size = (source, transactions, databases, workers)
    found.add(load, _NATIVE, backlog.native(*size, durable=True))
    for policy in policies:
        settings: dict[str, Value] = {"replica.parallel_type": policy.removesuffix(_IN_ORDER)}
        if policy.endswith(_IN_ORDER):
            settings["replica.consistency"] = "any_time"
        found.add(load, policy, backlog.external(*size, durable=True, settings=settings))


@contextmanager
def _hot_source(transactions: int) -> Iterator[Server]:
    with servers.source() as source:
        backlog.prepare(source, 1)
        # The first transaction makes the row.
        small.hot(source, transactions - 1)
        yield source


def tables(found: Found) -> Iterator[tuple[str, Mapping[str, Sequence[Applied]]]]:
    """Yield for each load its title and the runs by policy."""
    for load in (EIGHT, ONE, HOT):
        yield (
            f"Policies: {load}, {_WRITERS} writers, durable",
            {policy: runs for (each, policy), runs in found.runs.items() if each == load},
        )


def figures(found: Found) -> list[Figure]:
    """Return the figures that have to be reached."""
    reached = []
    for policy, least in LEAST.items():
        ratios = found.ratios((ONE, policy), (EIGHT, "database"))
        if ratios is not None:
            name = f"{ONE} by {policy} / {EIGHT}"
            reached.append(Figure(name, ratios, least, at_most=False, unit=" times"))
    in_order = found.ratios((EIGHT, f"database{_IN_ORDER}"), (EIGHT, "database"))
    if in_order is not None:
        name = f"{EIGHT} by database{_IN_ORDER} / by database"
        reached.append(Figure(name, in_order, 0.75, at_most=False, unit=" times"))
    if (ONE, "row") in found.runs:
        costs = zip(found.runs[ONE, "row"], found.runs[ONE, "database"], strict=True)
        cpu = Range.of(mine.own_cpu_each / its.own_cpu_each for mine, its in costs)
        name = "the daemon's CPU by row / by database"
        reached.append(Figure(name, cpu, _MAX_CPU, at_most=True, unit=" times"))
    for policy in POLICIES:
        ratios = found.ratios((HOT, policy), (HOT, _NATIVE))
        if ratios is not None:
            name = f"{HOT} by {policy}: mtsd / the server's own"
            reached.append(Figure(name, ratios, 1.0, at_most=False, unit=" times"))
    return reached

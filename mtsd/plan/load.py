"""What a recorded load consists of, and which parts of it cannot run in parallel."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from mtsd.plan.candidate import Bind
from mtsd.plan.replayed_group import ReplayedGroup

_MAX_SHOWN: Final = 20
_MAX_PAIRED: Final = 12
"""Pairs are not counted for groups that update more databases, which depend on everything."""


@dataclass(frozen=True, slots=True)
class Part:
    """A database or table: how many `groups` and `rows` it has, and its share of all rows."""

    name: str
    groups: int
    rows: int
    share: float


@dataclass(frozen=True, slots=True)
class Together:
    """Two databases that are updated by the same groups, and the number of those groups."""

    first: str
    second: str
    groups: int


@dataclass(frozen=True, slots=True)
class Load:
    """A stream of groups. Rates are in groups per second, by the source's commit times.

    `alone` counts the groups that have to run alone, by kind, and `kinds` counts all groups. The
    lists contain the largest items, largest first. `several` is the number of groups that update
    more than one database.
    """

    groups: int
    rows: int
    length: int
    seconds: float
    rate: float
    peak_rate: int
    databases: tuple[Part, ...]
    tables: tuple[Part, ...]
    together: tuple[Together, ...]
    several: int
    kinds: dict[str, int]
    alone: dict[str, int]
    number_of_databases: int


def load_of(groups: Iterable[ReplayedGroup]) -> Load:
    """Return a summary of the groups."""
    count = rows_in_all = length = several = 0
    databases: Counter[str] = Counter()
    tables: Counter[str] = Counter()
    database_rows: Counter[str] = Counter()
    table_rows: Counter[str] = Counter()
    pairs: Counter[tuple[str, str]] = Counter()
    kinds: Counter[str] = Counter()
    alone: Counter[str] = Counter()
    seconds: Counter[int] = Counter()
    first = last = 0
    for group, rows, size in groups:
        count += 1
        rows_in_all += rows
        length += size
        kinds[group.kind.value] += 1
        seconds[group.commit_time // 1_000_000] += 1
        first = min(first or group.commit_time, group.commit_time)
        last = max(last, group.commit_time)
        if group.alone:
            alone[group.kind.value] += 1
        # How a group's rows are distributed over several databases is not recorded.
        names = group.databases
        for name in names:
            databases[name] += 1
            database_rows[name] += rows // len(names)
        for table in group.tables:
            tables[table] += 1
            table_rows[table] += rows // len(group.tables)
        if len(names) > 1:
            several += 1
            if len(names) <= _MAX_PAIRED:
                pairs.update(combinations(sorted(names), 2))
    span = (last - first) / 1e6
    return Load(
        groups=count,
        rows=rows_in_all,
        length=length,
        seconds=span,
        rate=count / span if span else 0.0,
        peak_rate=max(seconds.values(), default=0),
        databases=_parts(databases, database_rows),
        tables=_parts(tables, table_rows),
        together=tuple(
            Together(one, other, number) for (one, other), number in pairs.most_common(_MAX_SHOWN)
        ),
        several=several,
        kinds=dict(kinds.most_common()),
        alone=dict(alone.most_common()),
        number_of_databases=len(databases),
    )


def _parts(groups: Counter[str], rows: Counter[str]) -> tuple[Part, ...]:
    total = sum(rows.values()) or 1
    names = sorted(groups, key=lambda name: (-rows[name], -groups[name], name))
    return tuple(
        Part(name, groups[name], rows[name], rows[name] / total) for name in names[:_MAX_SHOWN]
    )


_OFTEN: Final = 0.02
"""Databases are updated together often if this share of the smaller one's groups updates both."""


def binds_worth_a_try(load: Load) -> Sequence[Bind]:
    """Return the empty bind, and a bind of databases often updated together, if there are any.

    Bound databases wait only for their own queue, and never run in another one.
    """
    groups = {part.name: part.groups for part in load.databases}
    set_of: dict[str, set[str]] = {}
    for pair in load.together:
        smaller = min(groups.get(pair.first, 0), groups.get(pair.second, 0))
        if pair.groups < _OFTEN * max(1, smaller):
            continue
        joined = set_of.get(pair.first, {pair.first}) | set_of.get(pair.second, {pair.second})
        for name in joined:
            set_of[name] = joined
    binds: dict[tuple[str, ...], None] = {}
    for joined in set_of.values():
        binds[tuple(sorted(joined))] = None
    bind = tuple(names for names in binds if len(names) < load.number_of_databases)
    return ((), bind) if bind else ((),)

"""The table policy, an aim of WL#5569: as the database policy, keyed by table.

Only groups that consist of rows say which tables they change. All others, statements and DDL,
count as changes of every table of their databases: they wait for what the workers have of any of
them, and what comes later waits for them. So do groups of databases that are bound together, and
of those whose foreign keys have changed since they were read, with what foreign keys join to them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final

from mtsd.model.distribution import Distribution
from mtsd.model.group import Group
from mtsd.schedule.policies.assigned_partition_hash import oldest_commit_times
from mtsd.schedule.policies.assignment import Assignment, Need
from mtsd.schedule.policies.first_available import FirstAvailable
from mtsd.schedule.policies.foreign_key_families import (
    NO_FOREIGN_KEYS,
    ForeignKeys,
    disjoint,
    families,
    joined_with,
    may_change_foreign_keys,
)
from mtsd.schedule.policies.partition_placement import PartitionPlacement
from mtsd.schedule.policies.partition_statistics import PartitionStatistics
from mtsd.schedule.policies.schedule_view import ScheduleView

_MANY_TABLES: Final = 16_384


class TablePolicy:
    """Assigns groups by the tables that they update.

    `bind` lists sets of databases that count as one partition. `foreign_keys` are those of the
    target: tables that they join are one partition, see
    `mtsd.schedule.policies.foreign_key_families`. With a `distribution`, that chooses the workers,
    and only the dependencies are by table.
    """

    def __init__(
        self,
        workers: int,
        bind: Sequence[Sequence[str]] = (),
        foreign_keys: ForeignKeys = NO_FOREIGN_KEYS,
        distribution: FirstAvailable | None = None,
    ) -> None:
        self.needs = frozenset({Need.TABLES})
        self.by_names = True
        self._family = families(foreign_keys.tables)
        self._joined = disjoint(foreign_keys.databases)
        """Databases that foreign keys join."""
        self._redefined: set[str] = set()
        """Databases whose foreign keys are not known any more."""
        self._given = Distribution(bind=tuple(map(tuple, bind)))
        """What a person has decided."""
        self._bound = self._with_joined(self._given).partitions
        """By bound database: its partition."""
        self._whole = dict(self._bound)
        """By database: the partition that stands for all its tables."""
        self._undivided = set(self._bound)
        """Databases that are one partition: these, and the bound ones."""
        self.placement = PartitionPlacement(workers, distribution)
        self.aph = self.placement.aph
        self._tables: dict[str, set[str]] = {}
        """By database: partitions of its tables, among them all that are in use."""
        self._counted: dict[int, tuple[str, ...]] = {}
        """By number: the partitions on which an unfinished group is counted."""

    def assign(self, group: Group, view: ScheduleView, forced: int = -1) -> Assignment:
        """Decide by the owners of the group's partitions; see `Policy`."""
        cgap, beside = self._partitions(group)
        self._counted[group.number] = cgap
        return self.placement.assign(group, view, forced, cgap, beside)

    def distribute(self, distribution: Distribution, unfinished: Iterable[Group]) -> None:
        """Go on with other binds, pins and weights; see `Policy`."""
        del unfinished
        self._given = distribution
        distribution = self._with_joined(distribution)
        before = self._bound
        self._bound = now = distribution.partitions
        changed: dict[str, Iterable[str]] = {}
        if now != before:
            so_far = {
                name: {self._whole_of(name), *self._tables.get(name, ())}
                for name in {**before, **now}
            }
            self._whole = dict(now)
            self._undivided = {*now, *self._redefined}
            changed = {
                self._whole_of(names[0]): chain.from_iterable(so_far[each] for each in names)
                for names in distribution.sets(so_far)
            }
        weights = distribution.weights
        self.placement.distribute(
            distribution.workers, lambda partition: _weight(partition, weights), changed
        )

    def finished(self, groups: Sequence[Group]) -> None:
        """Remove the groups from the counts of their partitions; see `Policy`."""
        for group in groups:
            self.aph.execute(self._counted.pop(group.number))

    def partitions(self, unfinished: Iterable[Group]) -> list[PartitionStatistics]:
        """Describe the tables, and as "database.*" what concerns a whole one; see `Policy`."""
        waiting = ((self._counted[group.number], group.commit_time) for group in unfinished)
        return self.aph.statistics(oldest_commit_times(waiting))

    def _partitions(self, group: Group) -> tuple[tuple[str, ...], list[str]]:
        """Return the group's own partitions, and others that exclude it."""
        databases = group.databases
        if not group.tables or not self._undivided.isdisjoint(databases):
            if may_change_foreign_keys(group):
                self._redefine(group.databases)
            cgap = tuple(dict.fromkeys(map(self._whole_of, databases)))
            return cgap, [name for each in databases for name in self._tables.pop(each, ())]
        family = self._family
        cgap = group.tables
        if family:
            cgap = tuple(dict.fromkeys([family.get(table, table) for table in cgap]))
        known = self._tables
        for database in databases:
            tables = known.get(database)
            if tables is None:
                tables = known[database] = set()
            elif len(tables) > _MANY_TABLES:
                tables = known[database] = {name for name in tables if self.aph.owner(name)}
            tables.update(cgap)
        return cgap, [self._whole_of(database) for database in databases]

    def _whole_of(self, database: str) -> str:
        whole = self._whole.get(database)
        if whole is None:
            whole = self._whole[database] = f"{database}.*"
        return whole

    def _redefine(self, databases: Sequence[str]) -> None:
        """Keep databases undivided from here on: their foreign keys may be others."""
        names = frozenset(databases)
        if names <= self._redefined and any(names <= each for each in self._joined):
            return
        self._redefined.update(names)
        self._undivided.update(names)
        self._joined = joined_with(self._joined, names)
        self.distribute(self._given, ())

    def _with_joined(self, distribution: Distribution) -> Distribution:
        """Return a distribution that binds what foreign keys join to undivided databases."""
        undivided = self._redefined.union(*distribution.bind)
        joined = distribution.with_joined(self._joined).bind
        return replace(
            distribution,
            bind=tuple(each for each in joined if not undivided.isdisjoint(each)),
        )


def _weight(partition: str, weights: Mapping[str, int]) -> int:
    """Return the weight of a bound set, or of the database that a table belongs to."""
    if not weights or partition in weights:
        return weights.get(partition, 1)
    of_tables = (weight for name, weight in weights.items() if partition.startswith(f"{name}."))
    return next(of_tables, 1)

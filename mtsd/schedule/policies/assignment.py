"""What a policy decides about a group, and what it is given to decide it."""

import enum
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from mtsd.model.distribution import Distribution
from mtsd.model.group import Group
from mtsd.schedule.policies.partition_statistics import PartitionStatistics
from mtsd.schedule.policies.schedule_view import ScheduleView


class Assignment(NamedTuple):
    """Where a group goes and what it waits for.

    `worker` is the index of the worker whose queue the group joins, from 0. `after` holds the
    numbers of groups, and `mark` is a number: the group may start when all groups in `after` and
    every group up to and including `mark` have committed. All of them are earlier in the stream
    than the group; naming one that has already committed is harmless. Every queue keeps the
    stream's order, so what precedes the group in its own queue need not be named.

    There is always a group that can run. Of all unfinished groups take the one with the lowest
    number. Its queue keeps the stream's order, so it is the head. Whatever `after` names has a
    lower number, and so has committed. The low-water mark is right before it, and `mark` is
    lower than its own number, so the low-water mark has reached `mark`.
    """

    worker: int
    after: frozenset[int] = frozenset()
    mark: int = 0


class Need(enum.Enum):
    """A field of a group that is filled in before a policy is asked, if the policy needs it."""

    TABLES = "tables"
    KEYS = "keys"


class Policy(Protocol):
    """Decides which groups may run concurrently. One policy is one file behind this interface.

    It does not decide which groups run alone: the scheduler adds that to every assignment.
    """

    @property
    def needs(self) -> frozenset[Need]:
        """The fields of a group that it uses, other than the databases; they never change."""
        ...

    @property
    def by_names(self) -> bool:
        """Whether it goes by names, of databases or tables: what waits does so for a partition."""
        ...

    def assign(self, group: Group, view: ScheduleView, forced: int = -1) -> Assignment:
        """Assign the next group of the stream; its number is higher than any before.

        If `forced` is not -1 it is the worker, whatever the policy would choose: only its session
        has the temporary tables that the group uses. The dependencies remain the policy's.
        """
        ...

    def distribute(self, distribution: Distribution, unfinished: Iterable[Group]) -> None:
        """Assign by other rules of a person from the next group on, if it goes by names.

        `unfinished` are all groups not yet committed. What is in order with them remains so.
        """
        ...

    def finished(self, groups: Sequence[Group]) -> None:
        """Note that groups that were assigned have committed."""
        ...

    def partitions(self, unfinished: Iterable[Group]) -> Sequence[PartitionStatistics]:
        """Describe its partitions for the status; `unfinished` are all groups not yet committed.

        Empty if it has no partitions.
        """
        ...


_NOTHING: frozenset[int] = frozenset()
NO_NEEDS: frozenset[Need] = frozenset()

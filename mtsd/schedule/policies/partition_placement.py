"""Which worker gets a group that names its partitions, and what it waits for.

The policies by names differ in what their partitions are. This is what they have in common.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from mtsd.model.distribution import first_pinned
from mtsd.model.group import Group
from mtsd.schedule.policies.assigned_partition_hash import (
    AssignedPartitionHash,
    PartitionEntry,
    last_of,
)
from mtsd.schedule.policies.assignment import Assignment
from mtsd.schedule.policies.first_available import FirstAvailable
from mtsd.schedule.policies.homes import SMALL, Homes
from mtsd.schedule.policies.schedule_view import ScheduleView
from mtsd.schedule.policies.succession import Predecessor, Succession


class PartitionPlacement:
    """The APH of a policy, what a person has said about workers, and homes.

    A group of several partitions brings them together on one worker. As long as they are in use
    they would stay there forever; so when that worker has become crowded, the next group of one of
    them goes to the least occupied worker, after the partition's last group. Partitions with a home
    stay there, see `mtsd.schedule.policies.homes`.

    With a `distribution`, that chooses the workers, and only the dependencies are by partition.
    """

    def __init__(self, workers: int, distribution: FirstAvailable | None = None) -> None:
        self.distribution = distribution
        self.aph = AssignedPartitionHash(workers)
        self.homes = Homes(workers)
        self.succession = Succession()
        self._pinned: Mapping[str, int] = {}
        """By database: the worker that it is pinned to."""
        self._by_hand = False
        """Whether there is more to look at than the owners of partitions."""
        self._unconditional = [Assignment(worker) for worker in range(workers)]

    def assign(
        self,
        group: Group,
        view: ScheduleView,
        forced: int,
        cgap: Sequence[str],
        beside: Sequence[str] = (),
    ) -> Assignment:
        """Count a group on its partitions; it is also in order with what is `beside` them."""
        aph = self.aph
        number = group.number
        if number >= self.homes.due:
            self.homes.look(number, aph)
        in_use: list[PartitionEntry] = []
        for partition in cgap:
            entry = aph.owner(partition)
            if entry is not None:
                in_use.append(entry)
        own = len(in_use)
        for partition in beside:
            entry = aph.owner(partition)
            if entry is not None:
                in_use.append(entry)
        before: list[Predecessor] = []
        worker = forced
        if self._by_hand:
            if not self.succession.is_over(view.mark):
                before = self.succession.before((*cgap, *beside))
            self._by_hand = bool(self._pinned) or not self.succession.is_over(view.mark)
            if worker < 0:
                worker = first_pinned(group.databases, self._pinned)
        distribution = self.distribution
        if distribution is not None:
            if worker >= 0:
                distribution.note(number, group.size, worker)
            else:
                newest = max([*map(last_of, in_use), *[last for last, _ in before]], default=0)
                worker = distribution.place(number, group.size, newest, view)
        if worker < 0:
            if own > 1 and group.size <= SMALL:
                self.homes.note(cgap)
            worker = self._choose(cgap, in_use, own, before, view)
        after = [entry.last for entry in in_use if entry.worker != worker]
        after += [last for last, other in before if other != worker]
        if own == len(cgap) == 1 and in_use[0].worker == worker:
            # After the last group on its only partition, in the same queue.
            in_use[0].join(number)
        else:
            aph.assign(cgap, worker, number)
        return Assignment(worker, frozenset(after)) if after else self._unconditional[worker]

    def distribute(
        self,
        pinned: Mapping[str, int],
        weight_of: Callable[[str], int],
        changed: Mapping[str, Iterable[str]],
    ) -> None:
        """Go on with other pins and weights; `changed` partitions come after what was on others."""
        if changed:
            self.homes.forget()
        self.succession.follow(changed, self.aph)
        self._pinned = pinned
        self._by_hand = True
        self.aph.weigh(weight_of)

    def _choose(
        self,
        cgap: Sequence[str],
        in_use: Sequence[PartitionEntry],
        own: int,
        before: Sequence[Predecessor],
        view: ScheduleView,
    ) -> int:
        """Return the worker of a group about which nobody has said anything."""
        aph = self.aph
        if before and not in_use:
            return before[-1][1]
        homes = self.homes.of
        if homes:
            for partition in cgap:
                home = homes.get(partition, -1)
                if home >= 0 and not view.frozen[home]:
                    return home
        if in_use:
            # What is on its own partitions counts for more than what is only beside them.
            newest = max(in_use[:own] or in_use, key=last_of)
            if len(cgap) > 1 or not aph.is_crowded(newest):
                return newest.worker
        return aph.least_occupied(view.groups, view.frozen)

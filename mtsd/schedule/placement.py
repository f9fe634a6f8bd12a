"""Where a group goes: the policy's answer, and what overrules it.

Temporary tables of its session, the pair of an XA transaction, running alone, and a commit order
over all workers: they apply under every policy.
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from mtsd.model.group import Group, GroupKind
from mtsd.schedule.batches.alone import AloneRule
from mtsd.schedule.batches.worker_queue import WorkerQueue
from mtsd.schedule.batches.xa_pairs import may_be_first, may_be_second
from mtsd.schedule.policies.assignment import Policy
from mtsd.schedule.policies.schedule_view import ScheduleView
from mtsd.schedule.temporary_sessions import TemporarySessions

_ROWS: Final = GroupKind.ROWS


class Placement:
    """Places groups on workers in the order of the stream.

    `queues` are the workers', and `groups` how many each of them has.
    """

    __slots__ = (
        "_alone", "_groups", "_in_order", "_newest_alone", "_newest_worker", "_policy", "_queues",
        "_sessions", "_view", "unfinished_alone",
    )  # fmt: skip

    def __init__(
        self,
        policy: Policy,
        view: ScheduleView,
        alone: AloneRule,
        sessions: TemporarySessions,
        queues: Sequence[WorkerQueue],
        groups: Sequence[int],
        *,
        in_order: bool,
    ) -> None:
        self._policy = policy
        self._view = view
        self._alone = alone
        self._sessions = sessions
        self._queues = queues
        self._groups = groups
        self._in_order = in_order
        self._newest_alone = 0
        """Everything after this group waits for it."""
        self.unfinished_alone: set[int] = set()
        self._newest_worker = -1
        """The worker of the newest group that was placed."""

    def place(self, group: Group, earlier: int) -> tuple[int, AbstractSet[int], int, bool, int]:
        """Return the worker; the groups after which, and the mark after which a group may begin.

        Then whether it is in no batch with what is before it, and the worker in whose queue it
        completes a pair with the `earlier` group of its XA transaction, or -1.
        """
        number = group.number
        runs_alone = self._runs_alone(group)
        first = -1
        if earlier and group.xid is not None and not runs_alone and self._joins_pairs:
            first = self._first_of_pair(group, earlier)
        use = group.uses_temporary
        if use is not None:
            forced = self._sessions.forced(use.thread, self._groups, group.databases)
            worker, after, mark = self._policy.assign(group, self._view, forced)
            self._sessions.assigned(use, worker, group.databases)
        elif first >= 0:
            worker, after, mark = self._policy.assign(group, self._view, first)
        elif self._sessions.joined and (home := self._sessions.home_of_others(group)) >= 0:
            worker, after, mark = self._policy.assign(group, self._view, home)
        else:
            worker, after, mark = self._policy.assign(group, self._view)
        if earlier and first < 0:
            after |= {earlier}
        if runs_alone:
            mark = number - 1
            self._newest_alone = number
            self.unfinished_alone.add(number)
        elif self._newest_alone > mark:
            mark = self._newest_alone
        separate = False
        if self._in_order:
            # The group before it has to commit first, on another worker.
            separate = worker != self._newest_worker
            self._newest_worker = worker
            if group.kind is not _ROWS:
                # What may commit by itself, or not be rolled back, begins at its turn.
                mark = number - 1
        return worker, after, mark, separate, first

    def may_begin_pair(self, group: Group) -> bool:
        """Return whether what completes a group may share a target transaction with it."""
        return self._joins_pairs and not self._runs_alone(group) and may_be_first(group)

    def _runs_alone(self, group: Group) -> bool:
        return group.alone or (group.kind is not _ROWS and self._alone.applies_to(group))

    @property
    def _joins_pairs(self) -> bool:
        """Whether the two groups of an XA transaction may share a target transaction."""
        return self._view.batch_groups > 1 and not self._in_order

    def _first_of_pair(self, group: Group, earlier: int) -> int:
        """Return the worker in whose queue a group completes a pair; -1 if there is none."""
        if not may_be_second(group):
            return -1
        for worker, queue in enumerate(self._queues):
            if queue.awaits_second(earlier):
                return worker
        return -1

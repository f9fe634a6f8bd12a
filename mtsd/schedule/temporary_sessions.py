"""Which worker holds the temporary tables of a source thread: they exist in one session only."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from mtsd.model.group import Group
from mtsd.model.temporary_tables import SourceThread, TableName, TemporaryUse

_ANY: Final = ("",)
"""In place of the databases, where these do not count."""


class TemporarySessions:
    """Binds source threads to workers, from their first temporary table to their last.

    Two threads with the same id, of different servers, would share their tables in one session:
    they are never bound to the same worker.

    Threads that change the same databases wait for each other wherever they are, and a worker that
    waits combines nothing. So, as long as any has tables, databases that one of them has changed
    are joined, and who begins to use tables in these goes to the worker that has the others:

        thread 7 on worker 1 changes a       a: worker 1
        thread 8 on worker 2 changes b       b: worker 2
        thread 7 changes a and b             a, b: worker 1
        thread 8 drops its last table, and creates another in b: on worker 1

    With `by_names` false, what waits is not told by databases: all threads go to one worker.
    """

    def __init__(self, workers: int, *, by_names: bool = True) -> None:
        self._workers = workers
        self._by_names = by_names
        self._bound: dict[SourceThread, int] = {}
        self.joined: dict[str, _Joined] = {}
        """By database; empty if no thread has any table."""

    def can_hold(self, thread: SourceThread) -> bool:
        """Return whether the thread is bound to a worker or can be."""
        return thread in self._bound or len(self._taken(thread)) < self._workers

    def forced(
        self, thread: SourceThread, groups: Sequence[int], databases: Sequence[str] = ()
    ) -> int:
        """Return the worker that has to apply a group of the thread; -1 if any of them may.

        `groups` are the unfinished groups of each worker, `databases` those that this one changes.
        """
        bound = self._bound.get(thread)
        if bound is not None:
            return bound
        taken = self._taken(thread)
        home = self.home(databases)
        if home not in taken and (home >= 0 or not taken):
            return home
        # Where none is free, `can_hold` has been ignored.
        free = [worker for worker in range(self._workers) if worker not in taken] or [0]
        return min(free, key=lambda worker: groups[worker])

    def home(self, databases: Sequence[str]) -> int:
        """Return the worker of the threads with tables that change these databases; -1: of none."""
        for name in databases if self._by_names else _ANY:
            if (joined := self.joined.get(name)) is not None:
                return joined.worker
        return -1

    def home_of_others(self, group: Group) -> int:
        """Return the worker for what has nothing to do with temporary tables; -1: any."""
        return self.home(group.databases) if self._by_names else -1

    def assigned(self, use: TemporaryUse, worker: int, databases: Sequence[str] = ()) -> None:
        """Note that a group that changes these databases has been assigned to the worker."""
        if use.left:
            self._bound[use.thread] = worker
            self._join(databases if self._by_names else _ANY, worker)
        elif self._bound.pop(use.thread, None) is not None and not self._bound:
            self.joined.clear()

    def ended(
        self, by_thread: Mapping[SourceThread, frozenset[TableName]]
    ) -> dict[SourceThread, int]:
        """Return the workers of threads that have no tables any more, though none was dropped."""
        return {each: worker for each, worker in self._bound.items() if each not in by_thread}

    def only(self, by_thread: Mapping[SourceThread, frozenset[TableName]]) -> None:
        """Release all threads but those that still have tables: the source has restarted.

        Their tables have to be dropped from their workers' sessions first (`ended`).
        """
        self._bound = {each: worker for each, worker in self._bound.items() if each in by_thread}
        if not self._bound:
            self.joined.clear()

    def elsewhere(self, thread_id: int, worker: int) -> bool:
        """Return whether a thread with that id is bound to another worker than this."""
        return any(each[1] == thread_id and held != worker for each, held in self._bound.items())

    def excluded(self, thread: SourceThread, worker: int) -> bool:
        """Return whether the worker has tables of another server's thread with the same id."""
        return worker in self._taken(thread)

    def _join(self, databases: Sequence[str], worker: int) -> None:
        found = {id(one): one for name in databases if (one := self.joined.get(name)) is not None}
        largest = max(found.values(), key=lambda one: len(one.databases), default=None)
        if largest is None:
            largest = _Joined(worker, set())
        for one in found.values():
            largest.databases |= one.databases
        largest.databases.update(databases)
        if len(found) != 1 or len(databases) > 1:
            for name in largest.databases:
                self.joined[name] = largest

    def _taken(self, thread: SourceThread) -> set[int]:
        return {
            worker
            for bound, worker in self._bound.items()
            if bound[1] == thread[1] and bound != thread
        }


@dataclass(slots=True)
class _Joined:
    """Databases that threads with tables have changed, and the worker for what changes them."""

    worker: int
    databases: set[str]


class LostTables:
    """Temporary tables that the source has and the target does not.

    They were created by a run whose sessions are gone, or by groups that were skipped.
    """

    def __init__(self, by_thread: Mapping[SourceThread, frozenset[TableName]]) -> None:
        self._lost = dict(by_thread)

    def of(self, thread: SourceThread) -> frozenset[TableName]:
        """Return those of a thread."""
        return self._lost.get(thread, frozenset())

    def passed(self, use: TemporaryUse, *, applied: bool) -> None:
        """Note the next group of the stream, and whether it is applied."""
        lost = self.of(use.thread) & use.left
        if not applied:
            lost |= use.left - use.before
        if lost:
            self._lost[use.thread] = lost
        else:
            self._lost.pop(use.thread, None)

    def only(self, by_thread: Mapping[SourceThread, frozenset[TableName]]) -> None:
        """Forget the tables of threads that have none any more."""
        self._lost = {each: lost for each, lost in self._lost.items() if each in by_thread}

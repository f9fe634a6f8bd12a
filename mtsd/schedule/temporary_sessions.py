"""Which worker holds the temporary tables of a source thread: they exist in one session only."""

from collections.abc import Mapping, Sequence

from mtsd.model.temporary_tables import SourceThread, TableName, TemporaryUse


class TemporarySessions:
    """Binds source threads to workers, from their first temporary table to their last.

    Two threads with the same id, of different servers, would share their tables in one session:
    they are never bound to the same worker.
    """

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._bound: dict[SourceThread, int] = {}

    def can_hold(self, thread: SourceThread) -> bool:
        """Return whether the thread is bound to a worker or can be."""
        return thread in self._bound or len(self._taken(thread)) < self._workers

    def forced(self, thread: SourceThread, groups: Sequence[int]) -> int:
        """Return the worker that has to apply a group of the thread; -1 if any of them may.

        `groups` are the unfinished groups of each worker.
        """
        bound = self._bound.get(thread)
        if bound is not None:
            return bound
        taken = self._taken(thread)
        if not taken:
            return -1
        # Where none is free, `can_hold` has been ignored.
        free = [worker for worker in range(self._workers) if worker not in taken] or [0]
        return min(free, key=lambda worker: groups[worker])

    def assigned(self, use: TemporaryUse, worker: int) -> None:
        """Note that a group has been assigned to the worker."""
        if use.left:
            self._bound[use.thread] = worker
        else:
            self._bound.pop(use.thread, None)

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

    def elsewhere(self, thread_id: int, worker: int) -> bool:
        """Return whether a thread with that id is bound to another worker than this."""
        return any(each[1] == thread_id and held != worker for each, held in self._bound.items())

    def excluded(self, thread: SourceThread, worker: int) -> bool:
        """Return whether the worker has tables of another server's thread with the same id."""
        return worker in self._taken(thread)

    def _taken(self, thread: SourceThread) -> set[int]:
        return {
            worker
            for bound, worker in self._bound.items()
            if bound[1] == thread[1] and bound != thread
        }


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

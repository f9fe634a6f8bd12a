"""First-available distribution (WL#7165): who gets a group that any worker may apply.

The worklog's idea is one queue, of which each worker takes the first group when it has nothing
to do. Here a group joins a worker's queue at once, so that consecutive groups can be combined.
Therefore the stream is cut into runs of consecutive groups, each for one worker:

- a worker without work gets the next group;
- a group that waits for one shortly before it goes to the same worker, behind it, if both may be
  combined: elsewhere it would wait for a commit, here the order of the queue is enough;
- so does one that waits for exactly known ones, however far before it, if it would have to wait
  at the head of another queue, and not longer behind them;
- otherwise a run goes on until it is long enough, and the next one is for the worker with the
  least to do. What its groups wait for is mostly applied when they reach the queue's head;
- while nearly every run contains groups that wait for some of the run before, one worker gets all
  of them: another one would soon wait for the commit of everything before.

Where groups commit in the stream's order over all workers (`keeps_runs`), a run is what commits
together. So it is left for nothing, and goes on past its length as long as its groups wait for one
shortly before.

Where nothing is combined, each group of an XA transaction takes several round trips to the target.
So they are distributed round robin (MDEV-31949): a run of them would be applied one by one.

Which groups have to wait is not decided here.
"""

from bisect import bisect_right
from typing import Final

from mtsd.schedule.policies.schedule_view import ScheduleView

_RUN_GROUPS: Final = 512
_RUN_BYTES: Final = 1 << 20
"""A run ends when it has this many groups or bytes, or as many groups as may be combined: longer
ones are not applied faster, and leave less for the others."""
_SHORTLY_BYTES: Final = 1 << 17
"""What is that far before a group takes longer to be applied than to be committed, so that it is
worth having it done by others."""
_SOON_BYTES: Final = 1 << 20
"""A group that is applied may not have committed before so much more has been applied: about two
transactions of the target, one that is committed and one that is next."""
_MANY: Final = 8
_FEW: Final = 2
"""One worker gets everything from so many groups in a run on that wait for one of the last run's
length, until there are fewer than the other."""
_RECENT: Final = 1 / 512
"""How much each group counts for their share."""
_SMALL_BYTES: Final = 1 << 11
"""What counts for a group if only few may be combined."""


class PlacedGroup:
    """A group that was given to a worker: its number, the worker, and its place there.

    The place is its end in bytes of all groups that the worker was given.
    """

    __slots__ = ("number", "place", "worker")

    def __init__(self, number: int) -> None:
        self.number = number
        self.worker = 0
        self.place = 0


class FirstAvailable:
    """Cuts the stream into runs, and remembers which worker has each of the last of them."""

    __slots__ = (
        "_before", "_bytes", "_close", "_first", "_groups", "_is_one", "_keeps_runs", "_owners",
        "_placed", "_size", "_starts", "_turn", "_worker",
    )  # fmt: skip

    def __init__(self, *, keeps_runs: bool = False) -> None:
        self._keeps_runs = keeps_runs
        self._worker = 0
        """The worker of the current run."""
        self._groups = 0
        self._size = 0
        """Groups and bytes of the current run."""
        self._starts: list[int] = []
        """The first number of each recent run, in order."""
        self._owners: list[int] = []
        """Their workers."""
        self._bytes = 0
        """Of all groups so far."""
        self._close = 0.0
        """The share of groups that wait for one of the last run's length, of late."""
        self._is_one = False
        """Whether that share is so large that one worker gets them all."""
        self._first = 0
        """The first number."""
        self._turn = 0
        """How many groups have been distributed round robin."""
        self._placed: list[int] = []
        """By worker: the bytes of all groups that it has been given."""
        self._before = [0] * _RUN_GROUPS
        """By the last digits of a number: the bytes of all groups before that one."""

    def place(self, number: int, size: int, mark: int, view: ScheduleView) -> int:
        """Return the worker of group `number`, which waits for all groups up to `mark`.

        `size` is in bytes.
        """
        worker = self._worker
        longest = min(view.batch_groups, _RUN_GROUPS)
        distance = self._bytes_since(number, mark, longest)
        self._count(
            self._length(number, longest), is_close=distance <= _RUN_BYTES and mark >= self._first
        )
        if mark > view.mark and (distance <= _SHORTLY_BYTES or number - mark == 1):
            if not self._keeps_runs:
                worker = self._owner(mark)
        elif view.groups[worker] and not (self._is_one and not view.frozen[worker]):
            if mark <= view.mark and 0 in view.groups:
                worker = view.groups.index(0)
            elif self._groups >= longest or self._size >= _RUN_BYTES:
                worker = view.sizes.index(min(view.sizes))
                self._groups = self._size = 0
        self.note(number, size, worker)
        return worker

    def place_after(
        self, number: int, size: int, earlier: list[PlacedGroup], view: ScheduleView
    ) -> int:
        """Return the worker of a group that waits for `earlier`.

        The group goes where it would if it waited for nothing, unless it may come to the head of
        that queue before all of them have committed. Then it goes behind the one that is applied
        last, if little else has to be applied there before it; the run goes on.
        """
        if self._keeps_runs:
            return self.place(number, size, max(other.number for other in earlier), view)
        sizes = view.sizes
        worker = self._worker
        ends = view.groups[worker] > 0 and (
            self._groups >= min(view.batch_groups, _RUN_GROUPS) or self._size >= _RUN_BYTES
        )
        if ends:
            worker = sizes.index(min(sizes))
        before = -1
        behind = -1
        for other in earlier:
            owner = other.worker
            # Less than nothing if the prepare of a pair was passed by what came after it.
            left = max(0, sizes[owner] + other.place - self._placed[owner])
            if left > before:
                before = left
                behind = owner
        committed = before + min(_SOON_BYTES, (view.batch_groups - 1) * _SMALL_BYTES)
        if behind == worker or committed < sizes[worker] or committed < sizes[behind]:
            if ends:
                self._groups = self._size = 0
            self.note(number, size, worker)
            return worker
        self._placed[behind] += size
        self._before[number % _RUN_GROUPS] = self._bytes
        self._bytes += size
        return behind

    def last_place(self, worker: int) -> int:
        """Return the place of the newest group in a worker's queue."""
        return self._placed[worker]

    def place_in_turn(self, number: int, size: int, workers: int) -> int:
        """Return the worker of an XA transaction's group: the one after the last one's."""
        worker = self._turn % workers
        self._turn += 1
        self.note(number, size, worker)
        return worker

    def note(self, number: int, size: int, worker: int) -> None:
        """Note that a group has been given to a worker, by whatever rule."""
        if not self._starts:
            self._first = number
        if worker != self._worker or not self._starts:
            self._begin(number, worker)
        self._groups += 1
        self._size += size
        placed = self._placed
        while len(placed) <= worker:
            placed.append(0)
        placed[worker] += size
        self._before[number % _RUN_GROUPS] = self._bytes
        self._bytes += size

    def _begin(self, number: int, worker: int) -> None:
        self._worker = worker
        self._groups = self._size = 0
        self._starts.append(number)
        self._owners.append(worker)
        if len(self._starts) > 2 * _RUN_GROUPS:
            del self._starts[:_RUN_GROUPS]
            del self._owners[:_RUN_GROUPS]

    def _bytes_since(self, number: int, mark: int, longest: int) -> int:
        """Return the bytes of the groups between two numbers; many if `longest` are fewer."""
        distance = number - mark
        if distance > longest or distance >= _RUN_GROUPS:
            return 1 << 62
        return self._bytes - self._before[mark % _RUN_GROUPS]

    def _length(self, number: int, longest: int) -> int:
        """Return how many groups a run has if they are as large as the last ones."""
        recent = self._bytes - self._before[number % _RUN_GROUPS]
        if recent <= _RUN_BYTES:
            return longest
        return min(longest, min(number - self._first, _RUN_GROUPS) * _RUN_BYTES // recent)

    def _count(self, length: int, *, is_close: bool) -> None:
        self._close += (is_close - self._close) * _RECENT
        if self._close * length > _MANY:
            self._is_one = True
        elif self._close * length < _FEW:
            self._is_one = False

    def _owner(self, number: int) -> int:
        """Return the worker of the run that contains a number, or would if it were applied."""
        at = bisect_right(self._starts, number) - 1
        return self._owners[at] if at >= 0 else self._worker

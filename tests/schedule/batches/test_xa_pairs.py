"""Both groups of an XA transaction in one target transaction: when, and what passes a prepare."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Final

import pytest

from mtsd.model.group import Group, GroupKind
from mtsd.model.group_keys import NO_KEYS, GroupKeys
from mtsd.model.position import Position
from mtsd.model.temporary_tables import TemporaryUse
from mtsd.model.xa_xid import XaXid
from mtsd.schedule.batches.alone import AloneRule
from mtsd.schedule.batches.xa_pairs import as_rows, is_one_transaction
from mtsd.schedule.done.executed_groups import ExecutedGroups
from mtsd.schedule.policies.choice import choose_policy
from mtsd.schedule.scheduler import Scheduler
from tests.schedule.worlds.simulated_run import ROOMY
from tests.schedule.worlds.streams import DELETES, FORMAT, START_MARK, group
from tests.schedule.worlds.whole_worlds import some
from tests.schedule.worlds.xa_streams import COMMITS, COMPLETE, PREPARE, ROLLS_BACK

ROWS: Final = GroupKind.ROWS
LONG: Final = pytest.mark.long
POLICIES: Final = ("database", "logical_clock", "commit_parent", "table", "row")


def prepare(number: int, name: str, *databases: str) -> Group:
    plain = group(number, *(databases or ("a",)), kind=PREPARE)
    return replace(plain, steps=(DELETES,), xid=XaXid(1, name.encode(), b""))


def commit(number: int, name: str) -> Group:
    return replace(group(number, kind=COMPLETE), steps=(COMMITS,), xid=XaXid(1, name.encode(), b""))


def rows(number: int, *databases: str) -> Group:
    return replace(group(number, *(databases or ("a",))), steps=(DELETES,))


def by_databases(plain: Group) -> Group:
    if plain.keys != NO_KEYS:
        return plain
    return replace(plain, keys=GroupKeys(wholes=tuple(map(hash, plain.databases))))


def scheduler(
    workers: int = 1, batch_groups: int = 8, *, policy: str = "database", in_order: bool = False
) -> Scheduler:
    chosen = choose_policy(policy, workers, in_order=in_order)
    return Scheduler(
        chosen,
        workers,
        replace(ROOMY, batch_groups=batch_groups),
        START_MARK,
        ExecutedGroups(1),
        fillers=dict.fromkeys(chosen.needs, by_databases),
        in_order=in_order,
    )


def taken(schedule: Scheduler, worker: int = 0) -> list[list[int]]:
    """Take and commit all batches of a worker."""
    batches = []
    while batch := schedule.take(worker):
        batches.append([each.number for each in batch])
        schedule.commit(worker, batch)
    return batches


def added(schedule: Scheduler, groups: Sequence[Group]) -> Scheduler:
    for each in groups:
        schedule.add(each)
    return schedule


def test_a_pair_is_taken_with_groups_of_rows() -> None:
    stream = [rows(1), prepare(2, "x"), rows(3), prepare(4, "y"), commit(5, "x"), commit(6, "y")]
    assert taken(added(scheduler(), stream)) == [[1, 2, 3, 4, 5, 6]]
    stream = [prepare(1, "x"), prepare(2, "y"), commit(3, "x"), rows(4), commit(5, "y")]
    assert taken(added(scheduler(), stream)) == [[1, 2, 3, 4, 5]]


def test_a_prepare_is_passed_until_its_commit_is_there() -> None:
    schedule = added(scheduler(), [rows(1), prepare(2, "x"), rows(3)])
    assert [each.number for each in schedule.take(0)] == [1, 3]
    assert schedule.workers[0].oldest == 1
    schedule.commit(0, schedule.workers[0].running)
    assert schedule.gaq.number == 1
    assert schedule.workers[0].oldest == 2
    added(schedule, [rows(4), commit(5, "x")])
    assert taken(schedule) == [[2, 4, 5]]
    assert schedule.gaq.number == 5
    assert schedule.workers[0].oldest is None


def test_a_prepare_is_passed_once_if_its_commit_is_not_there() -> None:
    schedule = added(scheduler(), [rows(1), prepare(2, "x"), rows(3)])
    schedule.take(0)
    schedule.commit(0, schedule.workers[0].running)
    added(schedule, [rows(4), rows(5)])
    assert taken(schedule) == [[2], [4, 5]]
    assert taken(added(schedule, [rows(6), commit(7, "x")])) == [[6], [7]]


def test_a_prepare_alone_begins_at_once() -> None:
    assert taken(added(scheduler(), [prepare(1, "x"), prepare(2, "y")])) == [[1, 2]]


def test_a_prepare_whose_commit_is_out_of_reach_is_passed_until_it_is_not() -> None:
    others = [rows(number) for number in range(2, 20)]
    schedule = added(scheduler(), [prepare(1, "x"), *others, commit(20, "x")])
    assert taken(schedule) == [
        [2, 3, 4, 5, 6, 7, 8],
        [9, 10, 11, 12, 13, 14, 15],
        [1, 16, 17, 18, 19, 20],
    ]


def test_a_definition_between_them_ends_the_pair() -> None:
    definition = group(3, "a", kind=GroupKind.DDL)
    stream = [prepare(1, "x"), rows(2), definition, rows(4), commit(5, "x")]
    assert taken(added(scheduler(), stream)) == [[2], [1], [3], [4], [5]]


@pytest.mark.parametrize(
    "between",
    [
        rows(3, "mysql"),
        replace(rows(3), alone=True),
        replace(rows(3), format_description=FORMAT + b"x"),
    ],
    ids=["system tables", "alone", "another format"],
)
def test_rows_that_are_not_combined_end_the_pair(between: Group) -> None:
    stream = [rows(1), prepare(2, "x"), between, commit(4, "x")]
    assert taken(added(scheduler(), stream)) == [[1], [2], [3], [4]]


def test_a_stop_between_them_ends_the_pair() -> None:
    schedule = added(scheduler(2), [prepare(1, "x"), rows(2, "b")])
    assert [each.number for each in schedule.take(1)] == [2]
    added(schedule, [commit(3, "x")])
    schedule.stop(reading=True)
    assert taken(schedule) == [[1]]


def test_what_the_first_group_waits_for_comes_first() -> None:
    schedule = scheduler(2)
    added(schedule, [rows(1, "a"), rows(2, "b"), prepare(3, "x", "a", "b"), commit(4, "x")])
    for worker in (0, 1):
        assert len(schedule.take(worker)) == 1
    schedule.commit(0, schedule.workers[0].running)
    assert schedule.take(0) == schedule.take(1) == ()
    schedule.commit(1, schedule.workers[1].running)
    assert taken(schedule, 0) + taken(schedule, 1) == [[3, 4]]


def test_an_xid_used_again_waits_for_the_pair_before() -> None:
    stream = [prepare(1, "x"), commit(2, "x"), prepare(3, "x"), commit(4, "x")]
    assert taken(added(scheduler(), stream)) == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    "first",
    [
        replace(prepare(1, "x"), alone=True),
        replace(prepare(1, "x"), steps=()),
        replace(prepare(1, "x"), steps=(DELETES, COMMITS)),
        replace(prepare(1, "x"), unsupported="partial JSON"),
        prepare(1, "x", "mysql"),
    ],
)
def test_what_is_no_first_group(first: Group) -> None:
    assert taken(added(scheduler(), [first, commit(2, "x")])) == [[1], [2]]


def test_what_is_no_second_group() -> None:
    rollback = replace(commit(2, "x"), steps=(ROLLS_BACK,))
    assert taken(added(scheduler(), [prepare(1, "x"), rollback])) == [[1], [2]]
    assert taken(added(scheduler(), [prepare(1, "x"), commit(2, "y")])) == [[1], [2]]
    other = replace(prepare(1, "x"), format_description=FORMAT + b"other")
    assert taken(added(scheduler(), [other, rows(2), commit(3, "x")])) == [[1], [2], [3]]


def test_no_pairs_where_nothing_is_combined_or_commits_are_in_order() -> None:
    stream = [prepare(1, "x"), commit(2, "x")]
    assert taken(added(scheduler(batch_groups=1), stream)) == [[1], [2]]
    assert taken(added(scheduler(2, in_order=True), stream), 0) == [[1], [2]]


def test_no_pairs_of_groups_that_run_alone() -> None:
    chosen = choose_policy("database", 1, eventual=True)
    schedule = Scheduler(
        chosen, 1, ROOMY, START_MARK, ExecutedGroups(1), alone=AloneRule(all_but_rows=True)
    )
    assert taken(added(schedule, [prepare(1, "x"), commit(2, "x"), rows(3)])) == [[1], [2], [3]]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_commit_joins_the_queue_of_its_prepare(policy: str) -> None:
    schedule = scheduler(4, 2, policy=policy)
    for number in range(1, 9):
        first = number - 4
        database = "abcd"[number % 4]
        plain = commit(number, str(first)) if first > 0 else prepare(number, str(number), database)
        schedule.add(replace(plain, last_committed=max(first, 0), sequence_number=number))
    for worker, queue in enumerate(schedule.workers):
        xids = [each.xid for each in queue.pending()]
        assert set(map(xids.count, xids)) <= {2}, (worker, xids)


def test_the_rows_of_a_pair_are_in_the_place_of_its_commit() -> None:
    first = replace(prepare(1, "x"), last_committed=5, sequence_number=8)
    second = replace(commit(3, "x"), last_committed=8, sequence_number=10)
    batch = (first, rows(2), second)
    assert is_one_transaction(batch)
    _, joined = as_rows(batch)
    assert joined.kind is ROWS
    assert joined.steps == first.steps
    assert (joined.number, joined.end, joined.gtid) == (3, second.end, second.gtid)
    assert (joined.last_committed, joined.sequence_number) == (5, 10)
    elsewhere = replace(second, end=Position("binlog.000009", 100))
    assert as_rows((first, elsewhere))[0].last_committed == 0
    assert as_rows(plain := (rows(1), rows(2))) is plain


def test_a_prepare_recorded_with_the_commit_of_another_is_not_one_transaction() -> None:
    schedule = added(scheduler(), [prepare(1, "x")])
    assert taken(schedule) == [[1]]
    batch = added(schedule, [prepare(2, "y"), commit(3, "x")]).take(0)
    assert [each.number for each in batch] == [2, 3]
    assert not is_one_transaction(batch)


KINDS: Final = ("Px", "Py", "Cx", "Cy", "Ra", "Rb")


def streams(length: int) -> Iterator[list[Group]]:
    """Yield every stream that a source can log: x changes rows in a, y in a and b."""
    for kinds in product(KINDS, repeat=length):
        is_open: set[str] = set()
        stream: list[Group] = []
        for number, kind in enumerate(kinds, 1):
            verb, name = kind[0], kind[1]
            if (verb == "P" and name in is_open) or (verb == "C" and name not in is_open):
                break
            if verb == "P":
                is_open.add(name)
                stream.append(prepare(number, name, *("a" if name == "x" else "ab")))
            elif verb == "C":
                is_open.remove(name)
                stream.append(commit(number, name))
            else:
                stream.append(rows(number, name))
            stream[-1] = replace(stream[-1], sequence_number=number, last_committed=number - 1)
        else:
            yield stream


def steps_of(stream: Sequence[Group]) -> Iterator[tuple[int, GroupKind, tuple[str, ...]]]:
    """Yield what the groups of a stream are, each with its place."""
    for each in stream:
        yield each.number, each.kind, each.databases


class Way:
    """One order of reading, beginning and committing: a step is a worker, `reading`, or a failure.

    A worker's failure is `reading` + 1 + its number.
    """

    def __init__(self, stream: Sequence[Group], policy: str, workers: int) -> None:
        self.schedule = scheduler(workers, policy=policy)
        self.stream = stream
        self.reading = workers
        self.read = 0
        self.applied: list[int] = []
        self.replayed: list[list[tuple[Group, ...]]] = [[] for _ in range(workers)]

    def perform(self, step: int) -> None:
        """Take a step."""
        if step == self.reading:
            self.schedule.add(self.stream[self.read])
            self.read += 1
            return
        if step > self.reading:
            failed = step - self.reading - 1
            self.replayed[failed] = self.schedule.workers[failed].replay(pairs=True)
            return
        queue = self.schedule.workers[step]
        if self.replayed[step]:
            unit = self.replayed[step].pop(0)
            assert queue.running[: len(unit)] == unit
            self._commit(step, unit)
        elif queue.running:
            self._commit(step, queue.running)
        else:
            batch = self.schedule.take(step)
            assert batch

    def _commit(self, worker: int, groups: tuple[Group, ...]) -> None:
        self.applied += [each.number for each in groups]
        self.schedule.commit(worker, groups)

    def state(self) -> object:
        """Return what tells two states apart."""
        workers = tuple(
            (tuple(each.number for each in queue.pending()), len(queue.running), len(units))
            for queue, units in zip(self.schedule.workers, self.replayed, strict=True)
        )
        return self.read, frozenset(self.applied), workers

    def following(self, *, fails: bool) -> list[int]:
        """Return the steps that can come next."""
        found = [self.reading] if self.read < len(self.stream) else []
        for worker, queue in enumerate(self.schedule.workers):
            if units := self.replayed[worker]:
                if self.schedule.gaq.number >= units[0][0].number - 1:
                    found.append(worker)
            elif queue.running:
                found.append(worker)
                if fails and is_one_transaction(queue.running):
                    found.append(self.reading + 1 + worker)
            elif queue.can_begin:
                found.append(worker)
        return found

    def look(self) -> tuple[int, int]:
        """Return how many pairs, and groups passed by others, are in transactions that run."""
        pairs = passings = 0
        for units, queue in zip(self.replayed, self.schedule.workers, strict=True):
            numbers = [each.number for each in queue.running]
            if units or not numbers:
                continue
            assert numbers == sorted(numbers)
            if is_one_transaction(queue.running):
                left = [each.number for each in queue.pending()][len(numbers) :]
                passings += bool(left and left[0] < numbers[-1])
                pairs += sum(each.kind is COMPLETE for each in queue.running)
        return pairs, passings


def check(
    stream: Sequence[Group], policy: str, workers: int, *, fails: bool = False
) -> tuple[int, int]:
    """Go through every order of reading, beginning and committing.

    With `fails`, every transaction of rows may fail; then none of its units commits before its
    turn, as if each of them failed by itself too.

    Returns how many pairs, and groups passed by others, it has seen.
    """
    pairs = passings = 0
    paths: list[tuple[int, ...]] = [()]
    seen: set[object] = set()
    while paths:
        path = paths.pop()
        way = Way(stream, policy, workers)
        for step in path:
            way.perform(step)
        while (state := way.state()) not in seen:
            seen.add(state)
            more = way.look()
            pairs += more[0]
            passings += more[1]
            following = way.following(fails=fails)
            if not following:
                numbers = [each.number for each in stream]
                assert sorted(way.applied) == numbers, (policy, stream, path)
                in_order(stream, way.applied, replayed=fails)
                break
            # One of them goes on from here; the others begin anew.
            first, *others = following
            paths += [(*path, step) for step in others]
            path = (*path, first)
            way.perform(first)
    return pairs, passings


def in_order(stream: Sequence[Group], applied: Sequence[int], *, replayed: bool) -> None:
    """Assert that what has a database in common, or an xid, has kept its order.

    What lies between a prepare and its completion may pass the prepare; and if it is `replayed`,
    the completion may pass it.
    """
    at = {number: place for place, number in enumerate(applied)}
    ends = {
        each.number: next(
            (other.number for other in stream if other.xid == each.xid and other.kind is COMPLETE
             and other.number > each.number), len(stream) + 1
        )
        for each in stream if each.kind is PREPARE
    }  # fmt: skip
    databases = {each.number: set(each.databases) for each in stream}
    began: dict[int, int] = {}
    for each in stream:
        if each.kind is COMPLETE:
            first = max(n for n, end in ends.items() if end == each.number)
            databases[each.number] = databases[first]
            assert at[first] < at[each.number]
            began[each.number] = first
    for earlier, later in product(stream, repeat=2):
        one, other = earlier.number, later.number
        if replayed and began.get(other, other) < one:
            continue
        if one < other and databases[one] & databases[other] and other >= ends.get(one, 0):
            assert at[one] < at[other], (stream, applied)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("length", "workers"),
    [
        (4, 1),
        (4, 2),
        *(pytest.param(*each, marks=LONG) for each in ((5, 1), (5, 3), (6, 2))),
    ],
)
@pytest.mark.parametrize("policy", POLICIES)
def test_every_order_of_every_short_stream(policy: str, length: int, workers: int) -> None:
    pairs = passings = 0
    for stream in some(streams(length), steps_of):
        more = check(stream, policy, workers)
        pairs += more[0]
        passings += more[1]
    assert pairs > 10
    assert passings > 2


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("length", "workers"), [(4, 2), *(pytest.param(*each, marks=LONG) for each in ((5, 1), (5, 3)))]
)
@pytest.mark.parametrize("policy", POLICIES)
def test_every_failure_in_every_short_stream(policy: str, length: int, workers: int) -> None:
    for stream in some(streams(length), steps_of):
        check(stream, policy, workers, fails=True)


def test_what_was_passed_is_replayed_first() -> None:
    stream = [rows(1), prepare(2, "x"), rows(3), prepare(4, "y"), commit(5, "y")]
    schedule = added(scheduler(), stream)
    assert [each.number for each in schedule.take(0)] == [1, 3, 4, 5]
    units = schedule.workers[0].replay(pairs=True)
    assert [[each.number for each in unit] for unit in units] == [[1], [2], [3], [4, 5]]
    added(schedule, [commit(6, "x"), rows(7)])
    for unit in units:
        assert schedule.gaq.number == unit[0].number - 1
        schedule.commit(0, unit)
    assert taken(schedule) == [[6], [7]]


def test_a_pair_is_replayed_in_the_place_of_its_prepare() -> None:
    stream = [prepare(1, "x"), rows(2), prepare(3, "y"), commit(4, "x"), rows(5), commit(6, "y")]
    schedule = added(scheduler(), stream)
    assert [each.number for each in schedule.take(0)] == [1, 2, 3, 4, 5, 6]
    queue = schedule.workers[0]
    units = queue.replay(pairs=True)
    assert [[each.number for each in unit] for unit in units] == [[1, 4], [2], [3, 6], [5]]
    assert [each.number for each in queue.running] == [1, 4, 2, 3, 6, 5]
    assert [len(unit) for unit in queue.replay(pairs=False)] == [1] * 6
    assert [each.number for each in queue.running] == [1, 2, 3, 4, 5, 6]


def test_a_prepare_that_uses_temporary_tables_waits_for_the_group_of_its_xid_before() -> None:
    schedule = added(scheduler(2), [prepare(1, "x", "a"), commit(2, "x"), rows(3, "b")])
    use = TemporaryUse((1, 7), frozenset(), frozenset(), uses=True, only=False)
    again = replace(prepare(4, "x", "b"), uses_temporary=use)
    schedule.add(again)
    (worker,) = (number for number in (0, 1) if again in schedule.workers[number].pending())
    assert worker == 1
    assert taken(schedule, 1) == [[3]]
    assert taken(schedule, 0) == [[1, 2]]
    assert taken(schedule, 1) == [[4]]

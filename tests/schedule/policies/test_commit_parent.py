"""The commit parent policy: intervals of groups that the source has committed together."""

import pytest

from mtsd.model.group import Group, GroupKind
from mtsd.schedule.done.executed_groups import ExecutedGroups
from mtsd.schedule.policies.commit_parent_policy import CommitParentPolicy
from mtsd.schedule.scheduler import Scheduler
from tests.schedule.worlds.simulated_run import ROOMY
from tests.schedule.worlds.streams import START_MARK, Marker, Shape, Stream

NEW_FILE = Marker(new_file=True)


def timed(last_committed: int, sequence_number: int) -> Shape:
    return Shape(("a",), clock=(last_committed, sequence_number))


def committed(commit_id: int, kind: GroupKind = GroupKind.ROWS) -> Shape:
    return Shape(("a",), commit_id=commit_id, kind=kind)


def marks_of(*items: Shape | Marker) -> list[int]:
    """Return what each group waits for, at the latest, while none has committed."""
    policy = CommitParentPolicy()
    view = Scheduler(policy, 4, ROOMY, START_MARK, ExecutedGroups(1)).view
    return [policy.assign(group, view).mark for group in Stream.of(items).groups]


def test_the_example_of_the_worklog() -> None:
    # Trx1 to Trx3 prepare before any commit, Trx4 after the first, Trx5 and Trx6 after the
    # second, Trx7 after the third; parents begin with 1 here, because 0 is none.
    parents = [1, 1, 1, 2, 3, 3, 4]
    times = [timed(parent, 2 + at) for at, parent in enumerate(parents)]
    assert marks_of(*times) == [0, 0, 0, 3, 4, 4, 6]


def test_groups_without_a_parent_run_one_by_one() -> None:
    assert marks_of(timed(0, 1), timed(0, 2), timed(0, 0), timed(0, 0)) == [0, 1, 2, 3]
    assert marks_of(committed(0), committed(0), committed(7), committed(7)) == [0, 1, 2, 2]


def test_one_among_others_separates_them() -> None:
    assert marks_of(timed(1, 2), timed(1, 3), timed(0, 0), timed(1, 4)) == [0, 0, 2, 3]
    assert marks_of(timed(1, 2), timed(2, 3), timed(1, 4)) == [0, 1, 2]


def test_numbers_that_cannot_be_are_no_parent() -> None:
    assert marks_of(timed(3, 2), timed(3, 3), timed(3, 4), timed(3, 5)) == [0, 1, 2, 2]
    assert marks_of(timed(1, 2), timed(1, 3), timed(1, 3), timed(1, 4)) == [0, 0, 2, 3]
    assert marks_of(timed(1, 3), timed(-4, -2), timed(-4, -1)) == [0, 1, 2]


def test_the_numbers_begin_again_in_each_file() -> None:
    assert marks_of(timed(1, 2), timed(1, 3), NEW_FILE, timed(1, 4), timed(1, 5)) == [0, 0, 2, 2]
    assert marks_of(committed(5), committed(5), NEW_FILE, committed(5)) == [0, 0, 2]


def test_group_commits_of_mariadb() -> None:
    ids = [committed(each) for each in (11, 11, 11, 12, 0, 13, 13, 11)]
    assert marks_of(*ids) == [0, 0, 0, 3, 4, 5, 5, 7]


@pytest.mark.parametrize("kind", [GroupKind.DDL, GroupKind.CREATE_SELECT])
def test_ddl_of_mariadb_belongs_to_no_interval(kind: GroupKind) -> None:
    assert marks_of(committed(5), committed(5, kind), committed(5)) == [0, 1, 2]


def test_a_session_with_temporary_tables_keeps_its_worker() -> None:
    policy = CommitParentPolicy()
    view = Scheduler(policy, 4, ROOMY, START_MARK, ExecutedGroups(1)).view
    groups: list[Group] = Stream.of([timed(1, 2), timed(1, 3), timed(2, 4)]).groups
    assert policy.assign(groups[0], view).worker == 0
    assert policy.assign(groups[1], view, 3)[::2] == (3, 0)
    assert policy.assign(groups[2], view, 1)[::2] == (1, 2)

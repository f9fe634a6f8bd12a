"""Groups in doubt: every history of a run that fails or is killed anywhere, and of its restarts."""

from itertools import product

import pytest

from mtsd.model.group import GroupKind
from mtsd.model.server import Flavour
from mtsd.schedule.doubt import (
    PARTIAL,
    WHOLE,
    Act,
    Effect,
    Keep,
    NoteAll,
    Outcome,
    RunTransition,
    SettleRun,
    run_of_doubts,
    trace_of_definition,
)
from tests.schedule.doubtful_world import Choices, Kind, World, every_history

DDL, CREATE, HALF = GroupKind.DDL, GroupKind.CREATE_SELECT, GroupKind.NON_TRANSACTIONAL
PREPARE, COMPLETE = GroupKind.XA_PREPARE, GroupKind.XA_COMPLETE
TABLE = b"CREATE TABLE a.t SELECT 1"
FILLS = Effect(noted=False, settles=True)
AT_ONCE = Effect(partial=True, settles=True)

IN_MEMORY = {
    "under a GTID": Kind((DDL,), gtids=True, logged=True),
    "under a GTID that no log shows": Kind((DDL,), gtids=True),
    "under a GTID, may stop in its middle": Kind((DDL,), gtids=True, may_leave_a_part=True),
    "in the target's log": Kind((DDL,), logged=True),
    "in the log of a MariaDB": Kind((DDL,), logged=True, flavour=Flavour.MARIADB),
    "a table, in the log of a MariaDB": Kind(
        (DDL,), statement=b"CREATE TABLE a.t (i INT)", logged=True, flavour=Flavour.MARIADB
    ),
    "by an error number": Kind((DDL,), statement=b"CREATE TABLE a.t (i INT)"),
    "by nothing": Kind((DDL,)),
    "a table and its rows": Kind((CREATE,), statement=TABLE, gtids=True, logged=True),
    "a table, then its rows": Kind((CREATE, CREATE), (WHOLE, FILLS), TABLE),
    "a table, then its rows for ever": Kind(
        (CREATE, HALF), (WHOLE, AT_ONCE), TABLE, may_leave_a_part=True
    ),
    "without transactions, under a GTID": Kind(
        (HALF,), (AT_ONCE,), b"", gtids=True, logged=True, may_leave_a_part=True
    ),
    "without transactions": Kind((HALF,), (AT_ONCE,), b"", may_leave_a_part=True),
    "XA PREPARE": Kind((PREPARE,)),
    "XA PREPARE under a GTID": Kind((PREPARE,), gtids=True),
    "XA COMMIT": Kind((COMPLETE,)),
    "XA COMMIT under a GTID": Kind((COMPLETE,), gtids=True),
}
STREAMED = {
    "streamed under a GTID": Kind((CREATE,), statement=TABLE, gtids=True, is_streamed=True),
    "streamed in the target's log": Kind((CREATE,), statement=TABLE, logged=True, is_streamed=True),
    "a streamed table, then its rows": Kind(
        (CREATE, CREATE), (WHOLE, FILLS), TABLE, is_streamed=True
    ),
    "a streamed table, then its rows for ever": Kind(
        (CREATE, HALF), (WHOLE, PARTIAL), TABLE, may_leave_a_part=True, is_streamed=True
    ),
    "piece by piece": Kind(
        (HALF,), (PARTIAL,), b"", may_fail=False, may_leave_a_part=True, is_streamed=True
    ),
    "a streamed branch in one phase": Kind((PREPARE,), gtids=True, is_streamed=True),
    "a streamed branch in two": Kind((PREPARE, COMPLETE), (WHOLE, WHOLE), is_streamed=True),
}


@pytest.mark.parametrize(
    "kind", [*IN_MEMORY.values(), *STREAMED.values()], ids=[*IN_MEMORY, *STREAMED]
)
def test_every_history_applies_it_once(kind: Kind) -> None:
    def live(choices: Choices) -> None:
        World(kind, choices).live()

    assert every_history(live, most_faults=3) > 100


def test_the_trace_of_a_definition_is_of_one_attempt() -> None:
    for has_gtid, is_separate, repeats, depends in product((True, False), repeat=4):
        trace = trace_of_definition(
            has_gtid=has_gtid, is_separate=is_separate, repeats=repeats, depends_on_thread=depends
        )
        assert not (trace.gtid and trace.thread)
        assert trace.place or not trace.thread
        if repeats or depends:
            assert not trace.thread


def test_a_run_settles_what_is_done_and_forgets_what_is_not() -> None:
    for groups, failing in product(range(1, 4), range(4)):
        for outcome in (Outcome.UNDONE, Outcome.REMAINS):
            run = run_of_doubts(groups)
            steps: list[RunTransition] = [next(run)]
            done = -1
            try:
                while True:
                    step = steps[-1]
                    fails = isinstance(step, Act) and step.effect == failing
                    steps.append(run.send(outcome if fails else Outcome.DONE))
            except StopIteration as ended:
                done = ended.value
            assert steps[0] == NoteAll()
            assert done == min(groups, failing)
            keeps = outcome is Outcome.REMAINS and failing < groups
            assert (Keep(failing) in steps) is keeps
            assert steps[-1] == SettleRun(done, done + keeps)

"""Groups on tables without transactions: every way to fail after the first effect.

What must hold in each case: the group is applied whole and recorded; or nothing of it is there and
it may be tried again; or its record of doubt stays, and whoever starts next is stopped and asked.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress

import pytest

from mtsd.apply.appliers.applier import Applier
from mtsd.binlog.bytes.framing import FileFramer
from mtsd.model.errors import ApplyError, NeedsPersonError, ServerError
from mtsd.model.fault_points import FaultPoint, nothing
from mtsd.model.group import Group, GroupKind
from mtsd.replica.recovery.verdict import Verdict
from mtsd.replica.ways.doubtful import HalfAppliedError, keep
from mtsd.replica.ways.in_doubt import doubt_of
from mtsd.replica.ways.non_transactional import apply_unprotected
from tests.apply.sending import MARK, TABLES
from tests.binlog.transactions import grouper
from tests.replica.ways.dying_applier import (
    ROW,
    WORKER,
    DiedError,
    Target,
    dying,
    successor_of,
    verdict_of,
)
from tests.servers.mysqld import GTIDS, NO_GTIDS, Options, Server

pytestmark = pytest.mark.servers

ROWS = 6
DEFINITIONS = "CREATE DATABASE a; CREATE TABLE a.m (id INT PRIMARY KEY, t LONGTEXT) ENGINE=MyISAM"
SMALL = "INSERT INTO a.m VALUES " + ",".join(f"({n}, 'x')" for n in range(1, ROWS + 1))
LARGE = "INSERT INTO a.m VALUES " + ",".join(
    f"({n}, REPEAT('x', 400000))" for n in range(1, ROWS + 1)
)
GROUPS = {
    "one statement": SMALL,
    "several statements": LARGE,
    "a statement as text": "SET binlog_format = STATEMENT; " + SMALL,
}
FIRST, *OTHERS = GROUPS
TARGETS: dict[str, tuple[Options, bool, bool]] = {
    "GTIDs": (GTIDS, True, False),
    "GTIDs kept": (GTIDS, True, True),
    "GTIDs, session not logged": (GTIDS, False, False),
    "GTIDs, no binlog": ({**GTIDS, "skip_log_bin": None}, True, False),
    "binlog": (NO_GTIDS, True, False),
    "neither": ({**NO_GTIDS, "skip_log_bin": None}, True, False),
}
OFTEN = ("GTIDs", "neither")
SMALL_PACKETS: Options = {"max_allowed_packet": 1 << 20}
"""So that the large group needs several statements, of two rows each."""


@pytest.fixture(scope="module")
def groups() -> dict[str, Group]:
    with Server(GTIDS) as source:
        source.sql(DEFINITIONS)
        for statement in GROUPS.values():
            source.sql("TRUNCATE a.m; " + statement)
        reader = grouper()
        found = []
        for path in sorted(source.datadir.glob("binlog.0*")):
            events = list(FileFramer().feed(path.read_bytes()))
            found += [item for item in reader.groups(events) if isinstance(item, Group)]
    plain = [group for group in found if group.kind is GroupKind.NON_TRANSACTIONAL]
    return dict(zip(GROUPS, plain, strict=True))


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(name, marks=[] if name in OFTEN else [pytest.mark.long]) for name in TARGETS
    ],
)
def target(request: pytest.FixtureRequest) -> Iterator["Target"]:
    options, logged, preserves = TARGETS[request.param]
    with Server({**options, **SMALL_PACKETS}) as server:
        server.sql(DEFINITIONS)
        for definition in TABLES.definitions():
            server.sql(definition.decode())
        yield Target(server, logged=logged, preserves=preserves)


@pytest.fixture
async def applier(target: Target) -> AsyncIterator[Applier]:
    target.clean()
    applier, connection = await target.applier()
    yield applier
    connection.close()


async def apply(applier: Applier, group: Group) -> None:
    row = ROW.advanced((group,), MARK)
    await apply_unprotected(applier, group, row, WORKER, reached=nothing)


def may_be_applied(target: Target, kind: str) -> bool:
    """Tell whether the target can have the group at all: its one GTID holds one statement."""
    return not (target.preserves and kind == "several statements")


@pytest.mark.parametrize("kind", GROUPS)
async def test_applied_whole_and_recorded(
    target: Target, applier: Applier, groups: dict[str, Group], kind: str
) -> None:
    group = target.next(groups[kind])
    if not may_be_applied(target, kind):
        with pytest.raises(ApplyError, match=r"too large for one statement.*max_allowed_packet"):
            await apply(applier, group)
        assert (target.rows(), target.doubts(), target.is_recorded()) == (0, 0, False)
        return
    await apply(applier, group)
    assert (target.rows(), target.doubts(), target.is_recorded()) == (ROWS, 0, True)
    if target.preserves:
        (executed,) = target.server.sql("SELECT @@global.gtid_executed")
        assert f":{1000 + target.number}" in str(executed).replace("-", ":")


async def test_the_record_of_a_part_is_written_however_long_that_takes(
    target: Target, applier: Applier, groups: dict[str, Group]
) -> None:
    """Without it, the group would be applied again."""
    group = target.next(groups[FIRST])
    target.server.sql("RENAME TABLE mtsd.slave_in_doubt TO mtsd.elsewhere")
    keeping = asyncio.create_task(
        keep(applier.records, [doubt_of(group, 1)], ServerError(1062, "23000", "a row is there"))
    )
    done, _ = await asyncio.wait([keeping], timeout=1)
    assert not done
    target.server.sql("RENAME TABLE mtsd.elsewhere TO mtsd.slave_in_doubt")
    with pytest.raises(HalfAppliedError, match="a row is there"):
        await keeping
    assert target.doubts() == 1
    with pytest.raises(NeedsPersonError, match="mtsd resolve"):
        await verdict_of(applier, group)


@pytest.mark.parametrize("kind", GROUPS)
@pytest.mark.parametrize(
    "conflict",
    [1, 2, ROWS, *(pytest.param(n, marks=pytest.mark.long) for n in range(3, ROWS))],
)
async def test_a_conflict_at_each_row(
    target: Target, applier: Applier, groups: dict[str, Group], kind: str, conflict: int
) -> None:
    if not may_be_applied(target, kind):
        return
    group = target.next(groups[kind])
    target.server.sql(f"INSERT INTO a.m VALUES ({conflict}, 'in the way')")
    if conflict == 1:
        # Nothing has been changed, so that it may be tried again.
        with pytest.raises(ServerError) as raised:
            await apply(applier, group)
        assert raised.value.number == 1062
        assert (target.rows(), target.doubts()) == (1, 0)
        target.server.sql("DELETE FROM a.m")
        await apply(applier, group)
        assert (target.rows(), target.doubts(), target.is_recorded()) == (ROWS, 0, True)
        return
    with pytest.raises(HalfAppliedError, match=rf"a part of group {group.number} has been applied"):
        await apply(applier, group)
    assert target.rows() == conflict
    assert (target.doubts(), target.is_recorded()) == (1, False)
    # Whoever starts next asks, again and again.
    for _ in range(2):
        with pytest.raises(NeedsPersonError, match="mtsd resolve"):
            await verdict_of(applier, group)
    # A person undoes it and has it applied anew: its GTID may be used up by now.
    target.server.sql("DELETE FROM a.m; DELETE FROM mtsd.slave_in_doubt")
    if target.preserves:
        with pytest.raises(ApplyError, match="has already executed"):
            await apply(applier, group)
        assert (target.rows(), target.doubts()) == (0, 0)
        return
    await apply(applier, group)
    assert (target.rows(), target.doubts(), target.is_recorded()) == (ROWS, 0, True)


POINTS = (
    (FaultPoint.BEFORE_IN_DOUBT, 1), (FaultPoint.AFTER_IN_DOUBT, 1), (FaultPoint.BEFORE_CHUNK, 1),
    (FaultPoint.BEFORE_CHUNK, 2), (FaultPoint.BEFORE_STATEMENT, 1), (FaultPoint.STATEMENT_SENT, 1),
    # The record of doubt has a commit of its own.
    (FaultPoint.BEFORE_COMMIT, 1), (FaultPoint.COMMIT_SENT, 1), (FaultPoint.BEFORE_COMMIT, 2),
    (FaultPoint.COMMIT_SENT, 2), (FaultPoint.AFTER_STATEMENT, 1), (FaultPoint.AFTER_SETTLED, 1),
)  # fmt: skip


@pytest.mark.parametrize(
    "kind", [FIRST, *(pytest.param(n, marks=pytest.mark.long) for n in OTHERS)]
)
@pytest.mark.parametrize(("point", "passes"), POINTS)
@pytest.mark.parametrize(
    "killed",
    [False, pytest.param(True, marks=pytest.mark.long)],
    ids=["daemon", "daemon and target"],
)
async def test_killed_at_each_point(
    target: Target,
    applier: Applier,
    groups: dict[str, Group],
    kind: str,
    point: FaultPoint,
    passes: int,
    killed: bool,
) -> None:
    if not may_be_applied(target, kind):
        return
    group = target.next(groups[kind])

    reached = dying(point, passes)
    applier._reached = applier.session.reached = reached
    row = ROW.advanced((group,), MARK)
    with suppress(DiedError):
        await apply_unprotected(applier, group, row, WORKER, reached=reached)
    if killed:
        target.server.kill()
        target.server.start()
    applier.session.connection.close()
    successor, connection = await successor_of(target)
    rows, doubts, recorded = target.rows(), target.doubts(), target.is_recorded()
    try:
        if recorded:
            assert (rows, doubts) == (ROWS, 0)
        elif doubts:
            try:
                found = await verdict_of(successor, group)
            except NeedsPersonError:
                return
            assert found is Verdict.NOT_APPLIED
            assert rows == 0, "taken for one that was never begun"
            assert not killed
        else:
            assert rows == 0
            assert passes == 1
            assert point in {
                FaultPoint.BEFORE_IN_DOUBT, FaultPoint.BEFORE_COMMIT, FaultPoint.COMMIT_SENT,
            }  # fmt: skip
    finally:
        connection.close()

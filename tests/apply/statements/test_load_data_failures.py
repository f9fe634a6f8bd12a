"""LOAD DATA that ends in the middle of its file, into tables with and without transactions.

Unlike any other statement, it depends on mtsd until its end: the target reads the file from it. A
part of the rows of a table without transactions then remains, and must never be taken for nothing.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress

import pytest

from mtsd.apply.appliers.applier import Applier
from mtsd.binlog.bytes.framing import FileFramer
from mtsd.model.errors import ConnectionLostError, NeedsPersonError, ServerError
from mtsd.model.fault_points import FaultPoint, nothing
from mtsd.model.group import Group
from mtsd.replica.recovery.verdict import Verdict
from mtsd.replica.ways.doubtful import HalfAppliedError
from mtsd.replica.ways.non_transactional import apply_unprotected
from tests.apply.sending import MARK, TABLES
from tests.binlog.transactions import grouper
from tests.replica.ways.dying_applier import (
    ROW,
    WORKER,
    DiedError,
    Target,
    successor_of,
    verdict_of,
)
from tests.servers.mysqld import GTIDS, NO_GTIDS, Options, Server

pytestmark = pytest.mark.servers

ROWS = 60_000
TEXT = "".join(f"{n}\t{n:020}\n" for n in range(ROWS))
DEFINITIONS = (
    "CREATE DATABASE a; CREATE TABLE a.m (id INT PRIMARY KEY, v VARCHAR(20)) ENGINE = MyISAM;"
    "CREATE TABLE a.t LIKE a.m; ALTER TABLE a.t ENGINE = InnoDB"
)
TARGETS: dict[str, tuple[Options, bool]] = {
    "GTIDs": (GTIDS, True),
    "statements logged": ({**GTIDS, "binlog_format": "MIXED"}, True),
    "not logged": (GTIDS, False),
    "neither": ({**NO_GTIDS, "skip_log_bin": None}, True),
}
Pieces = Callable[[int], AsyncIterator[bytes]]


@pytest.fixture(scope="module")
def groups() -> dict[str, Group]:
    with Server({**GTIDS, "binlog_format": "STATEMENT"}) as source:
        source.sql(DEFINITIONS + "; FLUSH BINARY LOGS")
        path = source.folder / "rows"
        path.write_text(TEXT)
        for table in ("m", "t"):
            source.sql(f"LOAD DATA INFILE '{path}' INTO TABLE a.{table}")
        log = max(source.datadir.glob("binlog.0*"))
        events = list(FileFramer().feed(log.read_bytes()))
        found = [item for item in grouper().groups(events) if isinstance(item, Group)]
        return dict(zip("mt", found, strict=True))


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(name, marks=[] if name == "GTIDs" else [pytest.mark.long]) for name in TARGETS
    ],
)
def target(request: pytest.FixtureRequest) -> Iterator[Target]:
    options, logged = TARGETS[request.param]
    with Server({**options, "local_infile": 1}) as server:
        server.sql(DEFINITIONS)
        for definition in TABLES.definitions():
            server.sql(definition.decode())
        yield Target(server, logged=logged, preserves=False)


@pytest.fixture
async def applier(target: Target) -> AsyncIterator[Applier]:
    target.clean()
    target.server.sql("DELETE FROM a.t")
    applier, _ = await target.applier()
    yield applier
    applier.close()


def count(target: Target, table: str) -> int:
    return int(str(target.server.sql(f"SELECT COUNT(*) FROM a.{table}")[0][0]))


def disturb(applier: Applier, after: int, fault: Callable[[], Awaitable[None]]) -> None:
    """Let something happen after so many pieces of the next file have been sent."""
    files = applier._loads._files
    undisturbed: Pieces = files.pieces

    async def pieces(file_id: int) -> AsyncIterator[bytes]:
        left = after
        async for piece in undisturbed(file_id):
            if not left:
                await fault()
            left -= 1
            yield piece
        if left >= 0:
            await fault()

    files.pieces = pieces  # type: ignore[method-assign]


@pytest.mark.parametrize("after", [0, 1, 3, 9])
async def test_the_daemon_dies(
    target: Target, applier: Applier, groups: dict[str, Group], after: int
) -> None:
    group = target.next(groups["m"])

    async def die() -> None:
        raise DiedError

    disturb(applier, after, die)
    with suppress(DiedError):
        await apply_unprotected(
            applier, group, ROW.advanced((group,), MARK), WORKER, reached=nothing
        )
    assert applier.closed
    successor, _ = await successor_of(target)
    try:
        assert (target.doubts(), target.is_recorded()) == (1, False)
        try:
            found = await verdict_of(successor, group)
        except NeedsPersonError:
            return
        assert (found, count(target, "m")) == (Verdict.NOT_APPLIED, 0)
    finally:
        successor.close()


@pytest.mark.parametrize("table", ["m", "t"])
async def test_it_is_interrupted(
    target: Target, applier: Applier, groups: dict[str, Group], table: str
) -> None:
    group = target.next(groups[table])
    row = ROW.advanced((group,), MARK)

    async def interrupt() -> None:
        target.server.sql(f"KILL QUERY {applier.session.connection.thread_id}")

    async def apply() -> None:
        if table == "m":
            await apply_unprotected(applier, group, row, WORKER, reached=nothing)
        else:
            await applier.apply_in_order(group, row)

    disturb(applier, 3, interrupt)
    with pytest.raises((HalfAppliedError, ServerError)) as raised:
        await apply()
    if isinstance(raised.value, HalfAppliedError):
        assert (table, target.doubts()) == ("m", 1)
        assert count(target, "m") < ROWS
        return
    assert (count(target, table), target.doubts()) == (0, 0)
    del applier._loads._files.pieces
    await apply()
    assert count(target, table) == ROWS
    # A transaction may have any number of files: each is let go after its statement.
    assert not applier._loads._files._files


async def test_the_target_is_killed(
    target: Target, applier: Applier, groups: dict[str, Group]
) -> None:
    group = target.next(groups["m"])

    async def kill() -> None:
        target.server.kill()

    disturb(applier, 2, kill)
    with pytest.raises(ConnectionLostError):
        await apply_unprotected(
            applier, group, ROW.advanced((group,), MARK), WORKER, reached=nothing
        )
    target.server.start()
    successor, _ = await successor_of(target)
    try:
        assert (target.doubts(), target.is_recorded()) == (1, False)
        with pytest.raises(NeedsPersonError, match="mtsd resolve"):
            await verdict_of(successor, group)
        target.server.sql("REPAIR TABLE a.m")
    finally:
        successor.close()


async def test_a_file_that_cannot_be_kept(
    target: Target, applier: Applier, groups: dict[str, Group]
) -> None:
    """Nothing has been sent, so it can be applied once there is room."""
    group = target.next(groups["m"])
    row = ROW.advanced((group,), MARK)

    async def full(event: bytes) -> None:
        del event
        raise NeedsPersonError("no room")

    applier._loads._files.take = full  # type: ignore[method-assign]
    with pytest.raises(NeedsPersonError, match="no room"):
        await apply_unprotected(applier, group, row, WORKER, reached=nothing)
    assert (count(target, "m"), target.doubts()) == (0, 0)
    del applier._loads._files.take
    await apply_unprotected(applier, group, row, WORKER, reached=nothing)
    assert (count(target, "m"), target.doubts()) == (ROWS, 0)


@pytest.mark.parametrize("point", [FaultPoint.BEFORE_STATEMENT, FaultPoint.STATEMENT_SENT])
async def test_the_daemon_dies_at_a_fault_point(
    target: Target, applier: Applier, groups: dict[str, Group], point: FaultPoint
) -> None:
    group = target.next(groups["t"])

    async def reached(passed: FaultPoint) -> None:
        if passed is point:
            raise DiedError

    applier.session.reached = reached
    with pytest.raises(DiedError):
        await applier.apply_in_order(group, ROW.advanced((group,), MARK))
    applier.close()
    successor, _ = await successor_of(target)
    try:
        assert (count(target, "t"), target.is_recorded()) == (0, False)
        await successor.apply_in_order(group, ROW.advanced((group,), MARK))
        assert (count(target, "t"), target.is_recorded()) == (ROWS, True)
    finally:
        successor.close()

"""A group that commits apart from its record, when that record cannot be written."""

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from typing import ParamSpec, TypeVar

import pytest

from mtsd.apply.appliers.applier import Applier
from mtsd.apply.appliers.making import applier_by_binlog
from mtsd.apply.position.position_tables import PositionTables
from mtsd.model.errors import ApplyError, ServerError
from mtsd.model.fault_points import FaultPoint, nothing
from mtsd.model.group import Group
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.position import Position
from mtsd.replica.recovery.evidence import verdict
from mtsd.replica.recovery.verdict import Verdict
from mtsd.replica.ways.definitions import apply_definition
from mtsd.replica.ways.in_doubt import InDoubtWorker, evidence_gtid
from mtsd.replica.ways.settlements import Settlements
from mtsd.schedule.done.worker_row import blank_row
from mtsd.wire.connection import Connection
from tests.apply.sessions import open_session, settlements_of
from tests.binlog.building import query
from tests.binlog.transactions import grouped
from tests.fix_daemon import assert_none_in_doubt
from tests.servers.mysqld import Server

pytestmark = pytest.mark.servers

P = ParamSpec("P")
T = TypeVar("T")
TABLES = PositionTables("mtsd", "")
DAEMON = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
MARK = LowWaterMark(0, Position("f.000001", 4), None)
ROW = blank_row(1, MARK, 1)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server({"gtid_mode": "ON", "enforce_gtid_consistency": "ON"}) as server:
        server.sql("CREATE DATABASE a; CREATE TABLE a.t (i INT)")
        for definition in TABLES.definitions():
            server.sql(definition.decode())
        server.sql(TABLES.workers.replace(ROW).decode())
        yield server


@pytest.fixture
async def applier(server: Server) -> AsyncIterator[Applier]:
    session = await open_session(server)
    yield applier_by_binlog(session, TABLES, 1 << 20)
    session.connection.close()


def group(statement: bytes, number: int) -> Group:
    (found,) = grouped(query(statement, database=b"a"))
    assert isinstance(found, Group)
    return replace(found, number=number)


async def apply(
    applier: Applier, server: Server, group: Group, *, broken_at: FaultPoint | None
) -> Settlements:
    """Apply a group; at that point its table of records goes away."""

    async def reached(point: FaultPoint) -> None:
        if point is broken_at:
            server.sql("RENAME TABLE mtsd.slave_in_doubt TO mtsd.away")

    worker = InDoubtWorker(1, DAEMON)
    owing = settlements_of(applier, ROW)
    await apply_definition(applier, group, owing, worker, reached=reached)
    return owing


class Trips:
    """Counts how often something is sent on a connection."""

    def __init__(self, connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        for name in ("send", "ask", "query", "command"):
            monkeypatch.setattr(connection, name, self._counting(getattr(connection, name)))

    def _counting(self, sends: Callable[P, T]) -> Callable[P, T]:
        def counted(*values: P.args, **more: P.kwargs) -> T:
            self.count += 1
            return sends(*values, **more)

        return counted


async def test_what_a_definition_costs(applier: Applier, monkeypatch: pytest.MonkeyPatch) -> None:
    """What shows it is asked once; a GTID that was used before is still not used again."""
    counters = b"'Com_select', 'Com_show_binary_log_status'"
    questions = b"SHOW SESSION STATUS WHERE variable_name IN (%b)" % counters
    asked = []
    owing = settlements_of(applier, ROW)
    trips = Trips(applier.session.connection, monkeypatch)
    needed = []
    for number in (20, 21, 22):
        worker = InDoubtWorker(1, DAEMON)
        made = group(b"CREATE TABLE a.asked_%d (i INT)" % number, number)
        trips.count = 0
        await apply_definition(applier, made, owing, worker, reached=nothing)
        needed.append(trips.count)
        asked.append(await applier.session.connection.query(questions))
    # Its record, what leads to it, the statement, and the way back.
    assert needed[1:] == [1, 1]
    # Each record has brought the settlement of the one before it.
    assert await applier.session.connection.query(TABLES.doubts.select()) != []
    await owing.settle_owed()
    assert await applier.session.connection.query(TABLES.doubts.select()) == []
    assert len(asked[0]) == 2
    assert asked[0] == asked[1] == asked[2]
    executed = [
        await applier.records.has_executed(evidence_gtid(DAEMON, n)) for n in (20, 21, 22, 23)
    ]
    assert executed == [True, True, True, False]
    session = applier.session
    for fresh in (applier, applier_by_binlog(session, TABLES, 1 << 20)):
        used = [await fresh.records.has_used(DAEMON, number) for number in (22, 23, 23)]
        assert used == [True, False, False]


async def test_an_applied_group_is_not_taken_for_one_that_failed(
    server: Server, applier: Applier
) -> None:
    index = group(b"ALTER TABLE a.t ADD INDEX (i)", 1)
    owing = await apply(applier, server, index, broken_at=FaultPoint.BEFORE_SETTLED)
    assert owing.is_owed
    with pytest.raises(ApplyError, match="is applied, but its record cannot be written") as raised:
        await owing.settle_owed()
    assert "group 1" in str(raised.value)
    server.sql("RENAME TABLE mtsd.away TO mtsd.slave_in_doubt")
    connection = applier.session.connection
    (row,) = await connection.query(TABLES.doubts.select())
    doubt = TABLES.doubts.record(row)
    assert doubt.evidence == evidence_gtid(DAEMON, 1)
    assert await verdict(connection, TABLES, doubt) is Verdict.APPLIED
    server.sql("DELETE FROM mtsd.slave_in_doubt")


async def test_nothing_is_applied_that_could_not_be_recorded(
    server: Server, applier: Applier
) -> None:
    table = group(b"CREATE TABLE a.never (i INT)", 2)
    with pytest.raises(ServerError) as raised:
        await apply(applier, server, table, broken_at=FaultPoint.BEFORE_IN_DOUBT)
    assert raised.value.number == 1146
    assert server.sql("SHOW TABLES FROM a LIKE 'never'") == []
    server.sql("RENAME TABLE mtsd.away TO mtsd.slave_in_doubt")


async def test_a_statement_that_fails_leaves_no_doubt(server: Server, applier: Applier) -> None:
    with pytest.raises(ServerError) as raised:
        await apply(applier, server, group(b"DROP TABLE a.missing", 3), broken_at=None)
    assert raised.value.number == 1051
    assert_none_in_doubt(server)
    made = group(b"CREATE TABLE a.made (i INT)", 3)
    owing = await apply(applier, server, made, broken_at=None)
    assert server.sql("SELECT Group_number FROM mtsd.slave_in_doubt") == [(3,)]
    await owing.settle_owed()
    assert not owing.is_owed
    assert_none_in_doubt(server)
    assert server.sql("SHOW TABLES FROM a LIKE 'made'") == [("made",)]

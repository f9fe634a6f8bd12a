"""A bundle that was sent behind another one commits only if that one has."""

from collections.abc import AsyncIterator, Iterator

import pytest

from mtsd.model.errors import ServerError
from mtsd.model.gtid import GtidSet
from mtsd.model.position import Position
from mtsd.schedule.executed_groups import ExecutedGroups
from mtsd.schedule.worker_row import WorkerRow
from mtsd.target.binlog_applier import BinlogApplier, Bundle
from mtsd.target.bundle import Packet
from mtsd.target.position_tables import PositionTables
from mtsd.target.session import SessionSettings, TargetSession
from mtsd.wire.endpoint import Endpoint
from tests.servers.mysqld import Server

pytestmark = pytest.mark.servers

TABLES = PositionTables("mtsd", "")
FAILS = b"INSERT INTO a.t VALUES (1)"
FINE = b"INSERT INTO a.t VALUES (%d)"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as server:
        server.sql("CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY)")
        for definition in TABLES.definitions():
            server.sql(definition.decode())
        yield server


@pytest.fixture
async def applier(server: Server) -> AsyncIterator[BinlogApplier]:
    server.sql("DELETE FROM a.t; INSERT INTO a.t VALUES (1)")
    server.sql(TABLES.replace_worker(row(0)).decode())
    session = await TargetSession.open(
        Endpoint("target", "", 0, str(server.socket), "root", ""),
        SessionSettings("mtsd", binary_log=True),
    )
    yield await BinlogApplier.on(session, 1 << 20)
    session.connection.close()


def row(number: int) -> WorkerRow:
    """Return the row of worker 1 behind group `number`."""
    last = Position("binlog.000001", number * 100)
    return WorkerRow(1, last, Position("", 4), ExecutedGroups(1, (1 << number) - 1), GtidSet())


def bundle(number: int, *statements: bytes, after: int | None = None) -> Bundle:
    """Return the bundle of group `number`, guarded by the row of group `after`."""
    known = None if after is None else row(after)
    update = TABLES.update_worker(row(number), known, guarded=known is not None)
    whole = [*statements, update, b"COMMIT"]
    return Bundle(b"", (Packet(b";".join(whole), len(whole)),))


def committed(server: Server) -> tuple[list[int], int]:
    """Return the keys in the table, and the group that the worker's row stands at."""
    keys = [int(found) for (found,) in server.sql("SELECT id FROM a.t ORDER BY id")]
    ((offset, relay),) = server.sql(
        "SELECT Master_log_pos, Relay_log_pos FROM mtsd.slave_worker_info"
    )
    assert offset == relay
    return keys, int(offset) // 100


async def test_both_commit(server: Server, applier: BinlogApplier) -> None:
    for first in range(1, 20, 2):
        await applier.begin_bundle(bundle(first, FINE % (first + 1)))
        following = bundle(first + 1, FINE % (first + 2), after=first)
        assert applier.can_follow(following)
        await applier.follow(following)
        await applier.finish_bundle()
        await applier.finish_bundle()
    assert committed(server) == (list(range(1, 22)), 20)
    assert await applier.session.connection.query("SELECT 1") == [(1,)]


@pytest.mark.parametrize("early", [True, False])
async def test_the_first_fails(server: Server, applier: BinlogApplier, early: bool) -> None:
    statements = (FAILS, FINE % 2) if early else (FINE % 2, FAILS)
    await applier.begin_bundle(bundle(1, *statements))
    await applier.follow(bundle(2, FINE % 3, after=1))
    with pytest.raises(ServerError) as raised:
        await applier.finish_bundle()
    assert raised.value.number == 1062
    assert committed(server) == ([1], 0)
    await applier.apply_bundle(bundle(1, FINE % 2))
    assert committed(server) == ([1, 2], 1)


async def test_the_second_fails(server: Server, applier: BinlogApplier) -> None:
    await applier.begin_bundle(bundle(1, FINE % 2))
    await applier.follow(bundle(2, FINE % 3, FAILS, after=1))
    await applier.finish_bundle()
    with pytest.raises(ServerError) as raised:
        await applier.finish_bundle()
    assert raised.value.number == 1062
    assert committed(server) == ([1, 2], 1)


@pytest.mark.parametrize("sql_mode", ["", "ANSI,TRADITIONAL", "STRICT_ALL_TABLES"])
async def test_the_guard_knows_the_row_before(
    server: Server, applier: BinlogApplier, sql_mode: str
) -> None:
    await applier.session.connection.run(b"SET sql_mode='%b'" % sql_mode.encode(), 1)
    await applier.apply_bundle(bundle(1, FINE % 2))
    for after in (0, 2):
        with pytest.raises(ServerError) as raised:
            await applier.apply_bundle(bundle(2, FINE % 3, after=after))
        assert raised.value.number == 1690
    other_file = row(1)
    server.sql("UPDATE mtsd.slave_worker_info SET Master_log_name = 'binlog.000002'")
    with pytest.raises(ServerError):
        await applier.apply_bundle(bundle(2, FINE % 3, after=1))
    server.sql(TABLES.replace_worker(other_file).decode())
    await applier.apply_bundle(bundle(2, FINE % 3, after=1))
    assert committed(server) == ([1, 2, 3], 2)


async def test_what_cannot_follow(applier: BinlogApplier) -> None:
    whole = bundle(1, FINE % 2)
    assert not applier.can_follow(Bundle(b"another", whole.packets))
    assert not applier.can_follow(Bundle(b"", (*whole.packets, *whole.packets)))
    assert not applier.can_follow(Bundle(b"", iter(whole.packets)))

"""Branches of XA transactions on a real server: what they leave, in every state."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import pytest

from mtsd.apply.branches.branches import ATTACHED, UNLOGGED, Branches, why_not
from mtsd.apply.position.fencing import take_lock
from mtsd.apply.position.position_tables import PositionTables
from mtsd.apply.position.prepared_table import PreparedRow
from mtsd.apply.session.session import TargetSession
from mtsd.apply.session.xa import UNKNOWN_XID, XID_EXISTS, prepared_xids
from mtsd.model.errors import ConnectionLostError, ServerError
from mtsd.model.fault_points import nothing
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.position import Position
from mtsd.model.server import Flavour, ServerVersion
from mtsd.model.xa_xid import XaXid
from mtsd.schedule.done.worker_row import blank_row
from tests.apply.sessions import TRAITS, open_session
from tests.servers.mysqld import GTIDS, Server

pytestmark = pytest.mark.servers

TABLES = PositionTables("mtsd", "")
XID = XaXid(1 << 33, b"a'\0", b"\xff")
UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
ROW = blank_row(1, LowWaterMark(0, Position("f.000001", 4), None), 1)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(GTIDS) as server:
        server.sql("CREATE DATABASE a; CREATE TABLE a.t (i INT PRIMARY KEY)")
        server.sql("CREATE TABLE a.m (i INT) ENGINE=MyISAM")
        for definition in TABLES.definitions():
            server.sql(definition.decode())
        yield server


@pytest.fixture
async def session(server: Server) -> AsyncIterator[TargetSession]:
    session = await open_session(server)
    yield session
    session.connection.close()
    for format_id, gtrid, bqual, data in server.sql("XA RECOVER CONVERT XID"):
        parts = data.removeprefix("0x")
        server.sql(f"XA ROLLBACK X'{parts[: 2 * gtrid]}',X'{parts[2 * gtrid :]}',{format_id}")
        assert len(parts) == 2 * (gtrid + bqual)


@pytest.fixture
def branches(session: TargetSession) -> Branches:
    return Branches(session, TABLES, nothing)


async def insert(session: TargetSession, number: int) -> None:
    await session.connection.run(b"INSERT INTO a.t VALUES (%d)" % number, 1)


async def prepare(session: TargetSession, branches: Branches, number: int) -> None:
    await branches.begin(XID, "", statements=False)
    await insert(session, number)
    await branches.end(XID, "")


@pytest.mark.parametrize("gtid", ["", f"{UUID}:1"])
async def test_prepared_and_committed(
    server: Server, session: TargetSession, branches: Branches, gtid: str
) -> None:
    number = 1 + bool(gtid)
    await branches.begin(XID, gtid, statements=bool(gtid))
    await insert(session, number)
    await branches.end(XID, gtid)
    assert session.branch is None
    assert await branches.is_prepared(XID)
    assert await prepared_xids(session.connection) == {XID}
    await branches.complete(XID, f"{UUID}:{number + 10}", commits=True)
    assert not await branches.is_prepared(XID)
    assert server.sql(f"SELECT COUNT(*) FROM a.t WHERE i = {number}") == [(1,)]
    executed = server.sql(f"SELECT GTID_SUBSET('{UUID}:{number + 10}', @@gtid_executed)")
    assert executed == [(1,)]


async def test_the_lock_of_the_session_outlives_what_it_has_prepared(
    server: Server, session: TargetSession, branches: Branches
) -> None:
    """What keeps another daemon out must not go with the transaction."""
    assert await take_lock(session.connection, "mtsd:1")
    await prepare(session, branches, 20)
    held = [(session.connection.thread_id,)]
    assert server.sql("SELECT IS_USED_LOCK('mtsd:1')") == held
    await branches.complete(XID, "", commits=False)
    assert server.sql("SELECT IS_USED_LOCK('mtsd:1')") == held


async def test_what_is_rolled_back_leaves_nothing(
    server: Server, session: TargetSession, branches: Branches
) -> None:
    await branches.begin(XID, f"{UUID}:100", statements=False)
    await insert(session, 30)
    await session.rollback()
    await session.set_gtid("")
    assert session.branch is None
    assert await prepared_xids(session.connection) == set()
    assert server.sql("SELECT COUNT(*) FROM a.t WHERE i = 30") == [(0,)]
    assert server.sql(f"SELECT GTID_SUBSET('{UUID}:100', @@gtid_executed)") == [(0,)]
    await prepare(session, branches, 30)


async def test_an_error_inside(server: Server, session: TargetSession, branches: Branches) -> None:
    server.sql("REPLACE INTO a.t VALUES (40)")
    await branches.begin(XID, "", statements=False)
    await session.connection.run(b"INSERT INTO a.m VALUES (1)", 1)
    with pytest.raises(ServerError) as raised:
        await insert(session, 40)
    await session.undo(raised.value)
    assert raised.value.leaves_changes
    assert await prepared_xids(session.connection) == set()


async def test_a_table_without_transactions_uses_up_the_gtid(
    server: Server, session: TargetSession, branches: Branches
) -> None:
    """The server then refuses everything: only the end of the session ends the branch."""
    await branches.begin(XID, f"{UUID}:110", statements=False)
    await session.connection.run(b"INSERT INTO a.m VALUES (2)", 1)
    with pytest.raises(ServerError) as raised:
        await insert(session, 50)
    with pytest.raises(ConnectionLostError, match="cannot be ended"):
        await session.undo(raised.value)
    assert session.connection.closed
    assert server.sql("SELECT COUNT(*) FROM a.t WHERE i = 50") == [(0,)]


async def test_an_xid_in_use(session: TargetSession, branches: Branches) -> None:
    await prepare(session, branches, 60)
    with pytest.raises(ServerError) as raised:
        await branches.begin(XID, f"{UUID}:120", statements=True)
    assert raised.value.number == XID_EXISTS
    assert session.branch is None
    # The session goes on.
    await insert(session, 61)


@pytest.mark.parametrize("commits", [True, False])
async def test_an_unknown_xid(
    server: Server, session: TargetSession, branches: Branches, commits: bool
) -> None:
    with pytest.raises(ServerError) as raised:
        await branches.complete(XID, f"{UUID}:130", commits=commits)
    assert raised.value.number == UNKNOWN_XID
    assert server.sql(f"SELECT GTID_SUBSET('{UUID}:130', @@gtid_executed)") == [(0,)]
    await insert(session, 70 + commits)


@pytest.mark.parametrize("gtid", ["", f"{UUID}:140"])
async def test_a_completion_that_has_to_wait_too_long(
    server: Server, session: TargetSession, branches: Branches, gtid: str
) -> None:
    """It is still prepared, and can be tried again."""
    number = 80 + bool(gtid)
    await prepare(session, branches, number)
    await session.connection.run(b"SET lock_wait_timeout = 1", 1)
    reader = await open_session(server)
    await reader.connection.run(b"FLUSH TABLES WITH READ LOCK", 1)
    try:
        with pytest.raises(ServerError) as raised:
            await branches.complete(XID, gtid, commits=True)
        assert raised.value.number == 1205
        assert await branches.is_prepared(XID)
    finally:
        reader.connection.close()
    await branches.complete(XID, gtid, commits=True)
    assert server.sql(f"SELECT COUNT(*) FROM a.t WHERE i = {number}") == [(1,)]


@pytest.mark.parametrize("gtid", ["", f"{UUID}:150"])
async def test_a_prepare_that_has_to_wait_too_long(
    server: Server, session: TargetSession, branches: Branches, gtid: str
) -> None:
    """The server has rolled it back."""
    await branches.begin(XID, gtid, statements=False)
    await insert(session, 90)
    await session.connection.run(b"SET lock_wait_timeout = 1", 1)
    reader = await open_session(server)
    await reader.connection.run(b"FLUSH TABLES WITH READ LOCK", 1)
    try:
        with pytest.raises(ServerError) as raised:
            await branches.end(XID, gtid)
        await session.undo(raised.value)
        await session.set_gtid("")
    finally:
        reader.connection.close()
    assert raised.value.number == 1205
    assert not raised.value.leaves_changes
    assert await prepared_xids(session.connection) == set()
    await prepare(session, branches, 90)


async def test_the_record(server: Server, branches: Branches) -> None:
    server.sql("DELETE FROM mtsd.slave_worker_info")
    server.sql(TABLES.workers.replace(ROW).decode())
    record = PreparedRow(XID, 7, ("a", "b,c", "ü"), alone=True, changes=False)
    other = XID._replace(bqual=b"")
    assert await branches.records_of([XID]) == {}
    await branches.settle_prepared(ROW, record)
    assert await branches.records_of([other, XID]) == {XID: record}
    assert await branches.records_of([other]) == {}
    await branches.settle_prepared(ROW, record)
    await branches.settle_completed(ROW, 8, XID)
    assert await branches.records_of([XID]) == {}


async def test_a_run_is_not_recorded_without_the_row_of_its_worker(
    server: Server, branches: Branches
) -> None:
    server.sql("DELETE FROM mtsd.slave_worker_info")
    with pytest.raises(ServerError, match="slave_worker_info"):
        await branches.settle_run(ROW, [7, 8], [], [XID])
    server.sql(TABLES.workers.replace(ROW).decode())
    await branches.settle_run(ROW, [7, 8], [], [XID])


def test_where_xa_transactions_cannot_be_applied() -> None:
    assert why_not(TRAITS, logged=True) is None
    refused = why_not(TRAITS, logged=False)
    assert refused is not None
    assert refused.reason is UNLOGGED
    assert why_not(replace(TRAITS, log_bin=False), logged=False) is None
    refused = why_not(replace(TRAITS, server=ServerVersion(Flavour.MYSQL, (8, 0, 28))), logged=True)
    assert refused is not None
    assert refused.reason is ATTACHED
    assert "version 8.0.28" in str(refused)

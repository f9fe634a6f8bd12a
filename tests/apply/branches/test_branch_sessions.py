"""Branches on real MariaDB servers: a session each, because it keeps what it has prepared."""

import asyncio
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pymysql
import pytest

from mtsd.apply.appliers.making import applier_by_sql
from mtsd.apply.branches.branch_sessions import BranchSessions
from mtsd.apply.branches.branches import FORMAT_TOO_LARGE, Branches
from mtsd.apply.position.fencing import fence, take_lock
from mtsd.apply.position.lock_names import LockNames, SessionOf
from mtsd.apply.position.position_tables import PositionTables
from mtsd.apply.session.innodb_monitor import (
    MONITOR,
    attached,
    wait_for_ended_sessions,
    wait_for_session,
)
from mtsd.apply.session.session import TargetSession
from mtsd.apply.session.session_settings import SessionSettings
from mtsd.apply.session.xa import RB_ROLLBACK, UNKNOWN_XID, prepared_xids
from mtsd.model.errors import ConnectionLostError, ServerError
from mtsd.model.fault_points import nothing
from mtsd.model.xa_xid import XaXid
from mtsd.wire.connection import Connection
from mtsd.wire.endpoint import CurrentEndpoint
from tests.apply.sessions import endpoint, open_session
from tests.servers.mariadb import provide_mariadb
from tests.servers.mysqld import Server

pytestmark = pytest.mark.servers

TABLES = PositionTables("mtsd", "")
XID = XaXid(7, b"a'\0\xff", b"\xff")
LOCKS = LockNames("t", "")
LOCK = LOCKS.session(1, SessionOf.BRANCH)


@pytest.fixture(scope="module", params=["10.11", pytest.param("11.8", marks=pytest.mark.long)])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with Server(installation=provide_mariadb(request.param)) as server:
        server.sql("CREATE DATABASE a; CREATE TABLE a.t (i INT PRIMARY KEY) ENGINE=InnoDB")
        yield server


def sessions_of(server: Server) -> BranchSessions:
    return BranchSessions(CurrentEndpoint(endpoint(server)), SessionSettings(binary_log=True), LOCK)


def branches_of(session: TargetSession) -> Branches:
    return Branches(session, TABLES, nothing)


async def prepare(session: TargetSession, number: int) -> None:
    branches = branches_of(session)
    await branches.begin(XID, "", statements=False)
    await session.connection.run(b"INSERT INTO a.t VALUES (%d)" % number, 1)
    await branches.end(XID, "")


async def test_completed_as_soon_as_its_session_has_ended(server: Server) -> None:
    own = await open_session(server)
    sessions = sessions_of(server)
    for number in range(10):
        session = await sessions.open()
        await prepare(session, number)
        await sessions.end(session, own.connection)
        assert await prepared_xids(own.connection) == {XID}
        # No waiting: the first answer counts.
        await own.connection.run(
            b"XA %b X'612700ff',X'ff',7" % (b"COMMIT", b"ROLLBACK")[number % 2], 1
        )
    assert server.sql("SELECT i FROM a.t ORDER BY i") == [(0,), (2,), (4,), (6,), (8,)]
    own.connection.close()


async def test_the_monitor_tells_whether_it_is_let_go(server: Server) -> None:
    own, session = await open_session(server), await open_session(server)
    thread = session.connection.thread_id

    async def seen() -> frozenset[int]:
        ((_, _, text),) = await own.connection.query(MONITOR)
        return attached(str(text))

    assert thread not in await seen()
    await prepare(session, 15)
    assert thread in await seen()
    assert not await wait_for_session(own.connection, thread, 0.1)
    waiting = asyncio.create_task(wait_for_ended_sessions(own.connection))
    await asyncio.sleep(0.1)
    assert not waiting.done()
    session.connection.close()
    await waiting
    assert await wait_for_session(own.connection, thread, 10)
    assert thread not in await seen()
    await own.connection.run(b"XA ROLLBACK X'612700ff',X'ff',7", 1)
    own.connection.close()


async def test_without_the_privilege_nothing_is_begun(server: Server) -> None:
    server.sql("CREATE USER blind; GRANT BINLOG REPLAY, BINLOG MONITOR ON *.* TO blind")
    sessions = BranchSessions(
        CurrentEndpoint(replace(endpoint(server), user="blind")),
        SessionSettings(binary_log=True),
        LOCK,
    )
    with pytest.raises(ServerError, match="PROCESS"):
        await sessions.open()


async def test_a_completion_waits_for_the_end_of_its_session(server: Server) -> None:
    own, session = await open_session(server), await open_session(server)
    await prepare(session, 20)
    completion = asyncio.create_task(branches_of(own).complete(XID, "", commits=True))
    await asyncio.sleep(0.5)
    assert not completion.done()
    session.connection.close()
    await completion
    assert server.sql("SELECT i FROM a.t WHERE i = 20") == [(20,)]
    with pytest.raises(ServerError) as raised:
        await branches_of(own).complete(XID, "", commits=True)
    assert raised.value.number == UNKNOWN_XID
    own.connection.close()


async def test_one_at_a_time(server: Server) -> None:
    sessions = sessions_of(server)
    session = await sessions.open()
    with pytest.raises(ConnectionLostError, match="somebody else holds the lock"):
        await sessions.open()
    session.connection.close()


class InterruptedSessions(BranchSessions):
    """An operator kills the query that looks whether a session has ended."""

    async def end(self, session: TargetSession, own: Connection) -> None:
        """End a session, and fail."""
        await super().end(session, own)
        raise ServerError(1317, "70100", "Query execution was interrupted")


async def test_what_is_prepared_has_not_failed(server: Server) -> None:
    """After a ServerError its record would be removed, and the group be prepared again."""
    own = await open_session(server)
    sessions = InterruptedSessions(
        CurrentEndpoint(endpoint(server)), SessionSettings(binary_log=True), LOCK
    )
    applier = applier_by_sql(own, TABLES, branch_sessions=sessions)
    await applier.begin_branch(b"", XID, "", statements=True)
    with pytest.raises(ConnectionLostError):
        await applier.end_branch(XID, "")
    assert applier.closed
    again = await open_session(server)
    assert await prepared_xids(again.connection) == {XID}
    await branches_of(again).complete(XID, "", commits=False)
    again.connection.close()


async def test_what_has_changed_nothing_is_rolled_back_and_not_committed(server: Server) -> None:
    """The server answers both alike, XA_RBROLLBACK: only the first is what was asked for."""
    own, sessions = await open_session(server), sessions_of(server)
    for commits in (False, True):
        session = await sessions.open()
        branches = branches_of(session)
        await branches.begin(XID, "", statements=False)
        await branches.end(XID, "")
        await sessions.end(session, own.connection)
        assert await prepared_xids(own.connection) == {XID}
        completion = branches_of(own).complete(XID, "", commits=commits)
        if commits:
            with pytest.raises(ServerError) as raised:
                await completion
            assert raised.value.number == RB_ROLLBACK
        else:
            await completion
        assert await prepared_xids(own.connection) == set()
    own.connection.close()


async def test_a_restart_ends_it_before_it_looks(server: Server) -> None:
    session = await sessions_of(server).open()
    await prepare(session, 30)
    own = await open_session(server)
    assert LOCK in await fence(own.connection, LOCKS, [1])
    assert await prepared_xids(own.connection) == {XID}
    await own.connection.run(b"XA ROLLBACK X'612700ff',X'ff',7", 1)
    session.connection.close()
    own.connection.close()


async def test_the_lock_is_held_while_it_is_prepared(server: Server) -> None:
    session = await sessions_of(server).open()
    await prepare(session, 40)
    own = await open_session(server)
    assert not await take_lock(own.connection, LOCK)
    session.connection.close()
    assert await take_lock(own.connection, LOCK, 10)
    await own.connection.run(b"XA ROLLBACK X'612700ff',X'ff',7", 1)
    own.connection.close()


async def test_the_largest_format_id(server: Server) -> None:
    own = await open_session(server)
    branches = branches_of(own)
    largest = XID._replace(format_id=(1 << 31) - 1)
    assert branches.why_not_named(largest) is None
    await branches.begin(largest, "", statements=False)
    await own.rollback()
    refused = branches.why_not_named(largest._replace(format_id=1 << 31))
    assert refused is not None
    assert refused.reason is FORMAT_TOO_LARGE
    assert branches.why_not is None
    own.connection.close()


def test_the_fact(server: Server) -> None:
    """If this changes, a branch no longer needs a session of its own."""
    with closing(server.client()) as first, first.cursor() as cursor:
        for verb in ("START", "END", "PREPARE"):
            cursor.execute(f"XA {verb} 'fact'")
        with pytest.raises(pymysql.err.MySQLError, match="1399"):
            cursor.execute("XA START 'another'")
        with pytest.raises(pymysql.err.MySQLError, match="1397"):
            server.sql("XA COMMIT 'fact'")
        cursor.execute("XA ROLLBACK 'fact'")

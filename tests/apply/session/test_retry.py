"""What mtsd writes for itself waits out the locks of others."""

import asyncio
import gc
from collections.abc import Coroutine, Iterator
from contextlib import closing

import pytest
from structlog.testing import capture_logs

from mtsd.apply.session import retry
from mtsd.apply.session.retry import write
from mtsd.model.errors import ServerError
from mtsd.wire.connection import Connection
from tests.apply.sessions import endpoint, open_session
from tests.servers.locks import wait_for_lock_wait, wait_for_the_end_of_all_transactions
from tests.servers.mysqld import Server

pytestmark = pytest.mark.servers

ADD_TO_BOTH = [
    b"UPDATE a.t SET v = v + 1 WHERE id = 1",
    b"UPDATE a.t SET v = v + 1 WHERE id = 2",
]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as server:
        server.sql("CREATE DATABASE a; CREATE DATABASE mtsd")
        yield server


@pytest.fixture
def table(server: Server) -> Server:
    server.sql("DROP TABLE IF EXISTS a.t; CREATE TABLE a.t (id INT PRIMARY KEY, v INT)")
    server.sql("INSERT INTO a.t VALUES " + ",".join(f"({n}, 0)" for n in range(1, 101)))
    return server


async def lose_a_deadlock(server: Server, add_to_both: Coroutine[None, None, None]) -> None:
    """Await what adds to rows 1 and 2, and loses a deadlock at its first attempt."""
    with closing(server.client()) as other, other.cursor() as cursor:
        cursor.execute("BEGIN")
        # The server rolls back whoever has changed fewer rows.
        cursor.execute("UPDATE a.t SET v = 100 WHERE id > 1")
        attempt = asyncio.create_task(add_to_both)
        await asyncio.to_thread(wait_for_lock_wait, server)
        await asyncio.to_thread(cursor.execute, "UPDATE a.t SET v = 100 WHERE id = 1")
        await asyncio.sleep(0.1)
        assert not attempt.done()
        cursor.execute("COMMIT")
        await attempt


async def test_deadlock_of_the_coordinator(table: Server) -> None:
    connection = await Connection.open(endpoint(table))
    await connection.query("SET autocommit = 1")
    await lose_a_deadlock(table, write(connection, ADD_TO_BOTH))
    connection.close()
    assert table.sql("SELECT v FROM a.t WHERE id <= 2") == [(101,), (101,)]


async def test_deadlock_of_a_record(table: Server) -> None:
    session = await open_session(table)
    await lose_a_deadlock(table, session.record(ADD_TO_BOTH))
    session.connection.close()
    assert table.sql("SELECT v FROM a.t WHERE id <= 2") == [(101,), (101,)]


async def test_nothing_is_left_for_the_search_for_cycles(table: Server) -> None:
    """The daemon has it run every 200,000 objects, some tens of megabytes."""
    connection = await Connection.open(endpoint(table))
    gc.collect()
    gc.disable()
    try:
        for _ in range(20):
            await write(connection, [b"UPDATE a.t SET v = 1", b"UPDATE a.t SET v = 2"])
            with pytest.raises(ServerError):
                await connection.query("SELECT * FROM a.none")
            with pytest.raises(ServerError):
                await connection.run(b"USE none", 1)
        # The last error may still be there.
        assert gc.collect() < 40
    finally:
        gc.enable()
    connection.close()


async def test_a_lock_is_waited_for_without_end(
    table: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retry, "_ATTEMPTS", 0)
    monkeypatch.setattr(retry, "_FIRST_WORD_S", 0.2)
    connection = await Connection.open(endpoint(table))
    await connection.query("SET innodb_lock_wait_timeout = 1")
    with closing(table.client()) as other, other.cursor() as cursor, capture_logs() as records:
        cursor.execute("BEGIN")
        cursor.execute("UPDATE a.t SET v = 100 WHERE id = 2")
        attempt = asyncio.create_task(write(connection, ADD_TO_BOTH))
        # Twice the time for which the server waits.
        assert await asyncio.wait([attempt], timeout=2.5) == (set(), {attempt})
        cursor.execute("COMMIT")
        await attempt
    connection.close()
    assert table.sql("SELECT v FROM a.t WHERE id <= 2") == [(1,), (101,)]
    (told,) = records
    assert told["statement"] == ADD_TO_BOTH[0].decode()
    assert told["connection"] == connection.thread_id


async def test_an_error_that_stays(table: Server) -> None:
    connection = await Connection.open(endpoint(table))
    with pytest.raises(ServerError) as raised:
        await write(connection, [ADD_TO_BOTH[0], b"INSERT INTO a.t VALUES (1, 1)"])
    assert raised.value.number == 1062
    assert await connection.query("SELECT v FROM a.t WHERE id = 1") == [(0,)]
    connection.close()
    wait_for_the_end_of_all_transactions(table)

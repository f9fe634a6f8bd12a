"""A worker whose opening does not come to its end leaves no session behind."""

import asyncio
import time
from types import SimpleNamespace
from typing import cast

import pytest

from mtsd.apply.position.fencing import take_lock
from mtsd.apply.position.lock_names import LockNames
from mtsd.apply.position.position_tables import PositionTables
from mtsd.apply.tables.known_tables import KnownTables
from mtsd.config import Settings
from mtsd.model.errors import ServerError
from mtsd.model.fault_points import nothing
from mtsd.replica.core.coordinator import Coordinator
from mtsd.replica.recovery.recovery import Recovered
from mtsd.replica.workers.worker import Worker
from mtsd.replica.workers.worker_opening import open_worker, opened_together
from mtsd.wire.endpoint import CurrentEndpoint
from mtsd.wire.traits import ServerTraits
from tests.apply.sessions import endpoint, open_session
from tests.servers.mysqld import Server

pytestmark = pytest.mark.servers
LOCKS = LockNames("t", "")
WAITING = "SELECT id FROM information_schema.processlist WHERE info LIKE 'SELECT GET_LOCK(%'"
HAS_ENDED = "SELECT COUNT(*) = 0 FROM information_schema.processlist WHERE id = {}"

VARIABLES_SHOWN = "SHOW GLOBAL STATUS LIKE 'Com\\_show\\_variables'"


async def test_its_lock_is_refused() -> None:
    with Server() as server:
        holder = await open_session(server)
        assert await take_lock(holder.connection, LOCKS.session(1))
        asked = server.sql(VARIABLES_SHOWN)
        # An error keeps what it has passed through, and Python's end would complain of a session.
        errors: list[BaseException] = []
        opening = asyncio.create_task(open_first(server, holder.traits, errors))
        await becomes_true(server, f"SELECT COUNT(*) FROM ({WAITING}) waiting")
        # What the coordinator's session has found is not asked again.
        assert server.sql(VARIABLES_SHOWN) == asked
        ((waiting,),) = server.sql(WAITING)
        server.sql(f"KILL QUERY {waiting}")
        await opening
        assert [type(error) for error in errors] == [ServerError]
        await becomes_true(server, HAS_ENDED.format(waiting))
        holder.connection.close()


async def test_of_several_none_is_left_open() -> None:
    closed: list[int] = []
    cancelled = asyncio.Event()

    async def opens(number: int) -> Worker:
        applier = SimpleNamespace(close=lambda: closed.append(number))
        return cast("Worker", SimpleNamespace(applier=applier))

    async def fails() -> Worker:
        await asyncio.sleep(0)
        raise ServerError(1040, "08004", "Too many connections")

    async def waits() -> Worker:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        raise AssertionError

    with pytest.raises(ServerError, match="Too many"):
        await opened_together([opens(1), fails(), waits(), opens(2)])
    assert closed == [1, 2]
    assert cancelled.is_set()


async def open_first(server: Server, traits: ServerTraits, errors: list[BaseException]) -> None:
    recovered = cast("Recovered", SimpleNamespace(repair=None, source_uuid="mysql"))
    coordinator = cast("Coordinator", None)
    current = CurrentEndpoint(endpoint(server))
    known = KnownTables(traits.server)
    try:
        await open_worker(
            0, Settings(), PositionTables("mtsd", ""), LOCKS, coordinator, recovered, nothing,
            current, traits, known, preserves=False, as_sql=False,
        )  # fmt: skip
    except ServerError as error:
        errors.append(error)


async def becomes_true(server: Server, query: str) -> None:
    """Return once a query does."""
    deadline = time.monotonic() + 5
    while server.sql(query) != [(1,)]:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)

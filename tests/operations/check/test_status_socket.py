"""What keeps the daemon from creating its status socket is found beforehand."""

import asyncio
from collections.abc import Awaitable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from mtsd.config import Settings
from mtsd.control.server import ControlServer, StatusSocketError
from mtsd.control.status import (
    DaemonStatus,
    DatabaseStatus,
    Status,
    TotalsStatus,
    WorkerStatus,
)
from mtsd.control.status_route import status_route
from mtsd.operations.check.lines.catalogue import Kind
from mtsd.operations.check.lines.line import Line
from mtsd.operations.check.lines.status_socket import status_socket_lines
from tests.operations.check.good_facts import SETTINGS


def at(path: Path | None) -> Settings:
    return replace(SETTINGS, status=replace(SETTINGS.status, socket=path))


async def refuses(path: Path) -> bool:
    """Return whether a daemon cannot have its socket there."""
    server = ControlServer(path, [])
    try:
        await server.start()
    except (StatusSocketError, OSError):
        return True
    await server.stop()
    return False


def one_database(status: Status) -> Status:
    """Return it with a load that one of two workers has applied for an hour, all the time."""
    began = datetime.now(UTC) - timedelta(hours=1)
    return replace(
        status,
        parallel_type="database",
        workers=(WorkerStatus(1, "idle"), WorkerStatus(2, "applying")),
        databases=(DatabaseStatus("shop", groups=5000),),
        totals=TotalsStatus(busy_seconds=3500.0),
        daemon=DaemonStatus(started=began.isoformat()),
    )


async def kinds(found: Awaitable[list[Line]]) -> list[str]:
    return [line.id for line in await found]


async def test_a_path_that_is_free(tmp_path: Path) -> None:
    path = tmp_path / "mtsd.sock"
    assert await status_socket_lines(at(path)) == []
    assert not await refuses(path)
    assert await status_socket_lines(at(None)) == []


async def test_a_folder_that_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "none" / "mtsd.sock"
    assert await kinds(status_socket_lines(at(path))) == [Kind.STATUS_SOCKET_FOLDER.id]
    assert await refuses(path)


async def test_something_else_in_its_place(tmp_path: Path) -> None:
    path = tmp_path / "mtsd.sock"
    path.write_text("a file")
    assert await kinds(status_socket_lines(at(path))) == [Kind.STATUS_SOCKET_NO_SOCKET.id]
    assert await refuses(path)


async def test_a_daemon_that_answers(tmp_path: Path) -> None:
    path = tmp_path / "mtsd.sock"
    own = Status(
        state="running", source="a:1", target=SETTINGS.target.address,
        channel=SETTINGS.replica.channel,
    )  # fmt: skip
    for status, expected in (
        (own, []),
        (one_database(own), [Kind.OTHER_POLICY.id]),
        (replace(own, channel="other"), [Kind.STATUS_SOCKET_TAKEN.id]),
        (replace(own, target="elsewhere:3306"), [Kind.STATUS_SOCKET_TAKEN.id]),
    ):
        server = ControlServer(path, [status_route(partial(replace, status))])
        await server.start()
        try:
            assert await kinds(status_socket_lines(at(path))) == expected
            assert await refuses(path)
        finally:
            await server.stop()
    # What a killed daemon leaves is replaced.
    await asyncio.sleep(0)
    assert await status_socket_lines(at(path)) == []

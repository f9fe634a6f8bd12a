import asyncio

import pytest
from structlog.testing import capture_logs

from mtsd.model.outcome.reason import Reason
from mtsd.model.position import NOWHERE, Position
from mtsd.source import source_log
from mtsd.source.source_log import (
    NEEDED_PURGED,
    NEEDED_SOON_PURGED,
    Needed,
    SourceLog,
    SourceLogWatch,
    bytes_behind,
    retention_of,
    running_out,
)
from mtsd.source.source_state import BinlogFile
from mtsd.wire.endpoint import Endpoint
from tests.servers.mysqld import Server

FILES = (BinlogFile("b.1", 1000), BinlogFile("b.2", 500), BinlogFile("b.3", 200))


@pytest.mark.parametrize(
    ("executed", "received", "behind"),
    [
        (Position("b.3", 200), Position("b.3", 200), 0),
        (Position("b.1", 900), Position("b.2", 100), 800),
        # More has been read than was listed, also in a file that began later.
        (Position("b.3", 200), Position("b.3", 350), 150),
        (Position("b.3", 200), Position("b.4", 40), 40),
        (Position("b.4", 40), Position("b.4", 90), 50),
        # Purged, or known by GTID only.
        (Position("b.0", 10), Position("b.3", 200), None),
        (NOWHERE, NOWHERE, None),
    ],
)
def test_what_is_behind(executed: Position, received: Position, behind: int | None) -> None:
    assert bytes_behind(FILES, executed, received) == behind
    assert bytes_behind((), executed, received) is None


@pytest.mark.parametrize(
    ("variables", "seconds"),
    [
        ({"binlog_expire_logs_seconds": "3600", "binlog_expire_logs_auto_purge": "ON"}, 3600.0),
        ({"binlog_expire_logs_seconds": "3600", "binlog_expire_logs_auto_purge": "OFF"}, None),
        ({"binlog_expire_logs_seconds": "0"}, None),
        ({"expire_logs_days": "2"}, 172_800.0),
        ({"binlog_expire_logs_seconds": "60", "expire_logs_days": "0.000694"}, 60.0),
        ({}, None),
    ],
)
def test_how_long_a_source_keeps_its_log(variables: dict[str, str], seconds: float | None) -> None:
    assert retention_of(variables) == seconds


@pytest.mark.parametrize(
    ("executed", "age_s", "reason"),
    [
        (Position("b.1", 900), 400.0, None),
        (Position("b.1", 900), 500.0, NEEDED_SOON_PURGED),
        (Position("b.0", 10), 5.0, NEEDED_PURGED),
        (Position("b.0", 10), None, None),
        # A file that is newer than the list, and a position by GTID only.
        (Position("b.4", 10), 5.0, None),
        (NOWHERE, 5.0, None),
        # Of a log with another name nothing is said.
        (Position("a.0", 10), 5.0, None),
    ],
)
def test_when_it_runs_out(executed: Position, age_s: float | None, reason: Reason | None) -> None:
    refused = running_out(SourceLog(FILES, 1000.0), Needed(executed, age_s))
    assert (refused and refused.reason) == reason
    unknown = running_out(SourceLog(), Needed(executed, age_s))
    assert unknown is None


@pytest.mark.servers
async def test_that_it_runs_out_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_log, "_FIRST_LOOK_S", 0.0)
    monkeypatch.setattr(source_log, "READ_PERIOD_S", 0.1)
    with Server() as server:
        file, offset, _ = server.binlog_end()
        received = Position(file, offset)
        needed = Needed(received, 3.0)
        watch = SourceLogWatch(
            lambda: Endpoint("source", "127.0.0.1", server.port, "", "root", ""),
            lambda: True, lambda: received, lambda: None, lambda: needed,
        )  # fmt: skip

        async def until(said: str) -> None:
            for _ in range(600):
                if said in str(watch.warnings):
                    return
                await asyncio.sleep(0.05)
            raise AssertionError(watch.warnings)

        with capture_logs() as records:
            running = asyncio.create_task(watch.run())
            server.sql("FLUSH BINARY LOGS")
            server.sql(f"PURGE BINARY LOGS TO '{server.binlog_end()[0]}'")
            await until(f"has purged what a start would read next, {received}")
            await asyncio.sleep(0.3)
            needed = Needed(received, None)
            await until("()")
            running.cancel()
    assert [each["event"] for each in records] == [
        "the source's binary log runs out", "the source's binary log has what is needed",
    ]  # fmt: skip

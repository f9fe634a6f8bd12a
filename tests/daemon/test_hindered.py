"""What a backup, a reset or a full disk do to a replica, and what it says of that."""

import asyncio
from contextlib import closing
from dataclasses import replace

import pytest
import uvloop

from mtsd.config import Settings
from mtsd.config.settings import (
    ReplicaSettings,
    SourceSettings,
    StatusSettings,
    TargetSettings,
)
from mtsd.config.start import Earliest
from mtsd.control.status import Status, TotalsStatus
from mtsd.daemon.status_tables import StatusWriter
from mtsd.model.errors import ConnectionLostError, NeedsPersonError
from mtsd.model.position import Position
from mtsd.replica.run.replica import Replica, StopTimeoutError
from mtsd.replica.run.start import start
from mtsd.source import source_log
from mtsd.wire.asked_beside import answered
from tests.fix_servers import wait_until_stuck
from tests.servers.mysqld import GTIDS
from tests.servers.pair import Pair

WAITING = (
    "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE command <> 'Sleep'"
    " AND id <> CONNECTION_ID() AND info LIKE '%replication_applier%'"
)
"""Sessions that write the status tables, and have not been answered."""


@pytest.mark.parametrize("is_lost", [False, True])
async def test_an_answer_is_awaited_as_long_as_the_server_is_there(
    is_lost: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mtsd.wire.asked_beside._LOOK_S", 0.01)
    said, ended = [], []

    async def work() -> int:
        try:
            await asyncio.sleep(60 if is_lost else 0.2)
        finally:
            ended.append(True)
        return 7

    looked: list[bool] = []

    def connected() -> bool:
        looked.append(True)
        return not is_lost or len(looked) < 3

    awaited = answered(
        "source", work(), late_after=0.05, late=lambda: said.append("late"), connected=connected
    )
    if is_lost:
        with pytest.raises(ConnectionLostError):
            await awaited
    else:
        assert await awaited == 7
    assert (said, ended) == (["late"], [True])


async def _written_beside_a_backup(settings: Settings, status: Status, pair: Pair) -> None:
    writer = StatusWriter(settings, lambda: status)
    try:
        for _ in range(2):
            with closing(pair.target.client()) as backup:
                backup.cursor().execute("FLUSH TABLES WITH READ LOCK")
                assert not await writer.write()
                assert not await writer.write()
                assert pair.target.sql(WAITING) == [(0,)]
            assert await writer.write()
    finally:
        writer.close()


async def _all_applied(replica: Replica, pair: Pair) -> None:
    end = Position(*pair.source.binlog_end()[:2])
    for _ in range(2400):
        if replica.statistics.executed == end:
            break
        await asyncio.sleep(0.05)


async def _reset(settings: Settings, pair: Pair) -> None:
    """Reset it while its log's first file is read, which stays that: the dump does not end."""
    replica = await start(settings)
    running = asyncio.create_task(replica.run())
    await _all_applied(replica, pair)
    pair.source.sql("RESET BINARY LOGS AND GTIDS; INSERT INTO a.t VALUES (1)")
    with pytest.raises(NeedsPersonError, match="the source was reset"):
        await running


async def _stopped_beside_locks(settings: Settings, pair: Pair) -> None:
    """Stop it while a group and its position wait: what ends the one ends the other."""
    replica = await start(replace(settings, replica=ReplicaSettings(stop_timeout=0.1)))
    running = asyncio.create_task(replica.run())
    await _all_applied(replica, pair)
    with closing(pair.target.client()) as other:
        other.cursor().execute("LOCK TABLES a.t WRITE, mtsd.slave_relay_log_info WRITE")
        pair.source.sql("INSERT INTO a.u VALUES (1)")
        await asyncio.to_thread(wait_until_stuck, pair.target, "`slave_relay_log_info`")
        pair.source.sql("INSERT INTO a.t VALUES (2)")
        await asyncio.to_thread(wait_until_stuck, pair.target, "BINLOG")
        replica.stop()
        replica.reload(replace(settings, replica=ReplicaSettings(stop_timeout=3600.0)))
        with pytest.raises(StopTimeoutError, match="rolled back at worker"):
            await running


@pytest.mark.servers
def test_a_replica_that_is_hindered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_log, "_FIRST_LOOK_S", 0.1)
    monkeypatch.setattr(source_log, "READ_PERIOD_S", 0.1)
    with Pair(GTIDS, GTIDS) as pair:
        settings = Settings(
            source=SourceSettings(port=pair.source.port, user="root", start=Earliest()),
            target=TargetSettings(port=pair.target.port, user="root"),
            status=StatusSettings(tables=True),
        )
        pair.source.reset_binlog()
        pair.source.sql(
            "CREATE DATABASE a; CREATE TABLE a.t (i INT PRIMARY KEY); CREATE TABLE a.u LIKE a.t"
        )
        uvloop.run(_stopped_beside_locks(settings, pair))
        uvloop.run(_reset(settings, pair))
        status = Status("running", "h:1", "h:2", totals=TotalsStatus(skipped_by_hand=0))
        uvloop.run(_written_beside_a_backup(settings, status, pair))

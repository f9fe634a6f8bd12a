"""`mtsd check` while a daemon moves on between one question and the next."""

import asyncio
from pathlib import Path

import pytest

from mtsd.apply.position.position_tables import PositionTables
from mtsd.model.server import ServerVersion
from mtsd.operations.check import checking
from mtsd.operations.check.facts import TargetFacts
from mtsd.operations.check.reading.servers import read_target
from mtsd.wire.connection import Connection
from tests.load.mixed import Mix, MixedLoad
from tests.operations.checked import told
from tests.replica.daemon_process import DaemonProcess
from tests.servers.mysqld import GTIDS, NO_GTIDS, Options
from tests.servers.pair import Pair

pytestmark = pytest.mark.servers


async def read_target_late(
    connection: Connection, version: ServerVersion, tables: PositionTables, *, binary_log: bool
) -> TargetFacts:
    await asyncio.sleep(1.0)
    return await read_target(connection, version, tables, binary_log=binary_log)


@pytest.mark.parametrize("gtids", [GTIDS, NO_GTIDS], ids=["GTIDs", "no GTIDs"])
def test_a_position_that_moves_is_not_past_the_sources_end(
    gtids: Options, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checking, "read_target", read_target_late)
    with Pair(gtids, gtids) as pair, DaemonProcess(pair.source, pair.target, tmp_path) as daemon:
        load = MixedLoad(pair.source, seed=5, databases=2, mix=Mix(over_max=False))
        load.prepare()
        with load.running(rate=60):
            daemon.wait_until_caught_up()
            assert "position-available" in told(tmp_path, daemon.settings).lines

"""A source is replicated on one channel of a target only."""

import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.replica.daemon_process import DaemonProcess, Value
from tests.replica.test_evidence import command
from tests.servers.mysqld import GTIDS
from tests.servers.pair import Pair

pytestmark = pytest.mark.servers

BEGUN = "CREATE DATABASE a; CREATE TABLE a.t (i INT); INSERT INTO a.t VALUES (1)"


def daemons(pair: Pair, folder: Path, *, schemas: bool = False) -> list[DaemonProcess]:
    """Return two daemons, not started, on channels of the names one and two."""
    found = []
    for number, channel in enumerate(("one", "two")):
        own = folder / channel
        own.mkdir()
        settings: dict[str, Value] = {
            "replica.channel": channel,
            "source.server_id": 4201 + number,
            "target.schema": f"mtsd_{channel}" if schemas else "mtsd",
        }
        found.append(DaemonProcess(pair.source, pair.target, own, settings))
    return found


def rows(pair: Pair) -> list[tuple[object, ...]]:
    return pair.target.sql("SELECT i FROM a.t ORDER BY i")


def test_a_second_channel_is_refused_until_the_first_is_forgotten(tmp_path: Path) -> None:
    with Pair(GTIDS, GTIDS) as pair:
        pair.source.sql(BEGUN)
        one, two = daemons(pair, tmp_path)
        with one, closing(two):
            one.wait_until_caught_up()
            two.start()
            assert two.wait() == 3
            said = str(two.records()[-1]["error"])
            assert "channel 'one' of this target replicates the same source" in said
            # It has left nothing behind that would keep the first one from going on.
            assert one.stop() == 0
            one.start()
            one.wait_until_running()
            assert one.stop() == 0
            said = command(two, "position", "set", "latest", status=3)
            assert "channel 'one' of this target replicates the same source" in said
            # As the message says.
            command(two, "position", "reset", "--set", "replica.channel=one")
            two.settings["source.start"] = "latest"
            two.start()
            two.wait_until_running()
            pair.source.sql("INSERT INTO a.t VALUES (2)")
            two.wait_until_caught_up()
            one.start()
            assert one.wait() == 3
            assert two.stop() == 0
        assert rows(pair) == [(1,), (2,)]


@pytest.mark.parametrize("schemas", [False, True], ids=["one schema", "two schemas"])
def test_of_two_that_begin_at_once_one_goes_on(schemas: bool, tmp_path: Path) -> None:
    with Pair(GTIDS, GTIDS) as pair:
        pair.source.sql(BEGUN)
        one, two = daemons(pair, tmp_path, schemas=schemas)
        with one, two:
            deadline = time.monotonic() + 120
            while one.running and two.running:
                assert time.monotonic() < deadline
                time.sleep(0.05)
            refused, left = (two, one) if one.running else (one, two)
            assert refused.wait() == 3, refused.last_words()
            assert "everything would be applied twice" in str(refused.records()[-1]["error"])
            left.wait_until_caught_up()
            assert left.stop() == 0
        assert rows(pair) == [(1,)]

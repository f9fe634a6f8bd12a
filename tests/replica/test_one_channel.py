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


def of_their_own(pair: Pair, folder: Path) -> list[DaemonProcess]:
    """Return two daemons that share the databases, not started."""
    found = daemons(pair, folder)
    for daemon, database in zip(found, ("a", "b"), strict=True):
        daemon.settings["filter.do_db"] = [database]
    return found


def test_channels_with_databases_of_their_own_share_a_source(tmp_path: Path) -> None:
    with Pair(GTIDS, GTIDS) as pair:
        one, two = of_their_own(pair, tmp_path)
        for database in ("a", "b"):
            pair.source.sql(f"CREATE DATABASE {database}")
            pair.source.sql("CREATE TABLE t (i INT); INSERT INTO t VALUES (1)", database)
        with one, two:
            one.wait_until_caught_up()
            two.wait_until_caught_up()
            status = one.status()
            assert status is not None
            assert status.filter == "do_db = ['a']"
            # Each learns of the other at its start, and they have started at the same time.
            for each in (one, two):
                assert each.stop() == 0
                each.start()
                each.wait_until_running()
            for database in ("a", "b"):
                pair.source.sql("INSERT INTO t VALUES (2)", database)
            pair.source.sql("CREATE DATABASE c; CREATE TABLE c.t (i INT)")
            one.wait_until_caught_up()
            two.wait_until_caught_up()
            for database in ("a", "b"):
                assert pair.target.sql("SELECT i FROM t ORDER BY i", database) == [(1,), (2,)]
            assert not pair.target.sql("SHOW DATABASES LIKE 'c'")
            # A third one that shares a database with one of them is refused.
            three = DaemonProcess(pair.source, pair.target, tmp_path / "two", dict(two.settings))
            three.settings |= {"replica.channel": "three", "status.socket": "three.sock"}
            three.settings["filter.do_db"] = ["c", "b"]
            three.log = tmp_path / "three.log"
            three.start()
            assert three.wait() == 3
            assert "channel 'two'" in three.last_words()
            assert "let database b pass" in three.last_words()
            # What changes databases of both stops both, and nothing of it is applied.
            pair.source.sql("BEGIN; INSERT INTO a.t VALUES (3); INSERT INTO b.t VALUES (3); COMMIT")
            assert one.wait() == 3
            assert two.wait() == 3
            assert "others for channel 'two'" in one.last_words()
            assert "others for channel 'one'" in two.last_words()
        for database in ("a", "b"):
            assert pair.target.sql("SELECT i FROM t ORDER BY i", database) == [(1,), (2,)]


def test_a_daemon_with_its_position_elsewhere_is_refused_beside_them(tmp_path: Path) -> None:
    with Pair(GTIDS, GTIDS) as pair:
        one, two = of_their_own(pair, tmp_path)
        two.settings["target.schema"] = "elsewhere"
        pair.source.sql("CREATE DATABASE a")
        pair.source.sql("CREATE TABLE t (i INT); INSERT INTO t VALUES (1)", "a")
        with one, closing(two):
            one.wait_until_caught_up()
            two.start()
            assert two.wait() == 3
            assert "another mtsd replicates the same source" in two.last_words()
            assert one.stop() == 0

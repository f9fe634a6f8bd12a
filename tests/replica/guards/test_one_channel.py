"""A source is replicated on one channel of a target only."""

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.fix_daemon import command
from tests.operations.checked import told
from tests.replica.daemon_process import DaemonProcess
from tests.replica.guards.resting import at_rest
from tests.replica.guards.two_channels import daemons, of_their_own
from tests.servers.mysqld import GTIDS
from tests.servers.pair import Pair

pytestmark = pytest.mark.servers

BEGUN = "CREATE DATABASE a; CREATE TABLE a.t (i INT); INSERT INTO a.t VALUES (1)"


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
            assert "its position is in schema mtsd" in two.last_words()
            assert one.stop() == 0


# The server's own replica


@contextmanager
def native(pair: Pair, *, start: str = "START REPLICA") -> Iterator[None]:
    """Let the target's own replica follow the source, from its end on."""
    ((executed,),) = pair.source.sql("SELECT @@gtid_executed")
    pair.target.sql(
        "CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_USER='root',"
        f" SOURCE_PORT={pair.source.port}, GET_SOURCE_PUBLIC_KEY=1, SOURCE_AUTO_POSITION=1;"
        f" SET GLOBAL gtid_purged='+{executed}'; {start}"
    )
    yield
    pair.target.sql("STOP REPLICA; RESET REPLICA ALL")


def wait_for(pair: Pair, condition: str) -> None:
    deadline = time.monotonic() + 60
    while pair.target.sql(f"SELECT {condition}") != [(1,)]:
        assert time.monotonic() < deadline, condition
        time.sleep(0.05)


APPLIES = (
    "EXISTS (SELECT 1 FROM performance_schema.replication_applier_status WHERE service_state='ON')"
    " AND EXISTS (SELECT 1 FROM performance_schema.replication_connection_status"
    " WHERE service_state = 'ON' AND source_uuid <> '')"
)
TWICE = "the target itself replicates from the same source"


def test_the_targets_own_replica_and_mtsd_never_apply_beside_each_other(tmp_path: Path) -> None:
    with Pair(GTIDS, GTIDS) as pair:
        pair.source.sql(BEGUN)
        one, two = daemons(pair, tmp_path)
        with one, closing(two):
            one.wait_until_caught_up()
            # While it runs: it is seen at the next look.
            with native(pair):
                assert one.wait() == 3, one.last_words()
                assert TWICE in str(one.records()[-1]["error"])
                # At the start, and by what would record a position that is wrong a moment later.
                one.start()
                assert one.wait() == 3
                assert TWICE in one.last_words()
                assert TWICE in command(one, "position", "set", "latest", status=3)
                two.settings["source.start"] = "latest"
                two.start()
                assert two.wait() == 3
                assert TWICE in two.last_words()
                query = "SELECT COUNT(*) FROM mtsd.slave_relay_log_info WHERE Channel_name = 'two'"
                assert pair.target.sql(query) == [(0,)]
                # The applier alone applies what is in the relay log.
                pair.target.sql("STOP REPLICA IO_THREAD")
                one.start()
                assert one.wait() == 3
                pair.target.sql("STOP REPLICA")
                one.start()
                status = one.wait_for_status(lambda it: bool(it.warnings), "no warning")
                assert "the target's own replica has the same source" in status.warnings[0]
                # `status` fails as long as it connects, and the warning is there before.
                one.wait_until_running()
                assert "warning" in command(one, "status")
            one.wait_for_status(lambda it: not it.warnings, "it is still warned of")
            one.wait_for_record("no longer beside mtsd")
            pair.source.sql("INSERT INTO a.t VALUES (2)")
            one.wait_until_caught_up()
            assert one.stop() == 0
            assert rows(pair) == [(1,), (2,)]
            # As dangerous: by it, BINLOG statements do not fail.
            pair.target.restart({"replica_skip_errors": "1032"})
            one.start()
            assert one.wait() == 3
            assert "replica_skip_errors = 1032 on the target holds for" in one.last_words()
            assert "passes-over" in command(one, "check", "--json", status=3)


# Circles


def test_a_circle_is_refused_unless_gtids_are_kept_and_then_it_rests(tmp_path: Path) -> None:
    with Pair(GTIDS, GTIDS) as pair:
        there, back = daemons(pair, tmp_path)
        back.source, back.target = pair.target, pair.source
        for daemon in (there, back):
            daemon.settings |= {
                "source.port": daemon.source.port,
                "target.port": daemon.target.port,
                "target.gtid": "preserve",
            }
        pair.source.sql(BEGUN)
        with there, closing(back):
            there.wait_until_caught_up()
            back.start()
            back.wait_until_running()
            pair.target.sql("INSERT INTO a.t VALUES (2)")
            back.wait_until_caught_up()
            pair.source.sql("INSERT INTO a.t VALUES (3)")
            there.wait_until_caught_up()
            assert rows(pair) == pair.source.sql("SELECT i FROM a.t ORDER BY i")
            rest = at_rest(pair.source, pair.target)
            # The end of a file is on record all the same, so that it may be purged.
            pair.source.sql("FLUSH BINARY LOGS")
            file = pair.source.binlog_end()[0]
            stored = f"(SELECT MAX(Master_log_name) FROM mtsd.slave_relay_log_info) = '{file}'"
            wait_for(pair, stored)
            assert at_rest(pair.source, pair.target) != rest
            # One that does not keep them is refused while the other runs.
            assert back.stop() == 0
            back.settings["target.gtid"] = "off"
            back.start()
            assert back.wait() == 3
            said = str(back.records()[-1]["error"])
            assert said.startswith("another mtsd replicates from the target to the source")
            assert "channel 'one', its position is in mtsd" in said
            assert "circle" in told(tmp_path, back.settings).bad
            assert there.stop() == 0
            assert "circle-if-both-run" in told(tmp_path, back.settings).bad

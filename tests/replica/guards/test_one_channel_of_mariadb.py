"""Channels with databases of their own share a MariaDB source, in every format."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.fix_daemon import NEEDS_PERSON, command
from tests.fix_families import families
from tests.load.equality import unequal
from tests.replica.daemon_process import DaemonProcess, Value
from tests.replica.guards.two_channels import daemons, of_their_own
from tests.servers.pair import Pair

pytestmark = [pytest.mark.servers, pytest.mark.timeout(300)]

SHARED = {
    "ROW": "BEGIN; INSERT INTO a.t VALUES (900, 0); INSERT INTO b.t VALUES (900, 0); COMMIT",
    "STATEMENT": "USE a; BEGIN; INSERT INTO t VALUES (900, 0);"
    " USE b; INSERT INTO t VALUES (900, 0); COMMIT",
}
NAMING_BOTH = ("UPDATE b.t SET v = 9", "INSERT INTO t SELECT id + 5000, v FROM b.t")
"""Statements that run in a: the source does not log which databases they change."""


@contextmanager
def running(
    target: str, binlog_format: str, folder: Path
) -> Iterator[tuple[Pair, DaemonProcess, DaemonProcess]]:
    """Two daemons that have learned of each other and applied all that there is."""
    with families("11.8", target, {"binlog_format": binlog_format}) as pair:
        for database in ("a", "b"):
            pair.source.sql(
                f"CREATE DATABASE {database} COLLATE utf8mb4_general_ci; USE {database};"
                "CREATE TABLE t (id INT PRIMARY KEY, v INT); CREATE TABLE u LIKE t"
            )
        change(pair, 100)
        one, two = of_their_own(pair, folder)
        with one, two:
            for each in (one, two):
                each.wait_until_caught_up()
            # Each learns of the other at its start, and they have started at the same time.
            for each in (one, two):
                assert each.stop() == 0
                each.start()
                each.wait_until_running()
            yield pair, one, two


def change(pair: Pair, first: int) -> None:
    """Change both databases by turns."""
    pair.source.sql(
        "; ".join(
            f"USE {database}; INSERT INTO t VALUES ({number}, 0);"
            f"UPDATE t SET v = v + 1 WHERE id > {first};"
            f"BEGIN; INSERT INTO u VALUES ({number}, 1); DELETE FROM t WHERE id = {first}; COMMIT"
            for number in range(first, first + 20)
            for database in ("a", "b")
        )
    )


@pytest.mark.parametrize(
    ("target", "binlog_format"),
    [
        ("11.8", "ROW"),
        ("11.8", "STATEMENT"),
        ("9.7", "STATEMENT"),
        pytest.param("9.7", "ROW", marks=pytest.mark.long),
    ],
)
def test_both_reach_the_end_and_stop_at_what_is_shared(
    target: str, binlog_format: str, tmp_path: Path
) -> None:
    with running(target, binlog_format, tmp_path) as (pair, one, two):
        change(pair, 200)
        for each in (one, two):
            each.wait_until_caught_up()
        assert unequal(pair.source, pair.target) == []
        pair.source.sql(SHARED[binlog_format])
        for each, other in ((one, "two"), (two, "one")):
            assert_stopped_at_the_end(pair, each, other)
        for database in ("a", "b"):
            assert pair.target.sql("SELECT COUNT(*) FROM t WHERE id = 900", database) == [(0,)]


def test_a_statement_that_names_the_others_database(tmp_path: Path) -> None:
    """It is left out by the channel in whose databases it does not run."""
    with running("11.8", "STATEMENT", tmp_path) as (pair, one, two):
        a_newcomer_gives_way(two, one.settings["source.server_id"])
        for statement in NAMING_BOTH:
            before = contents(pair)
            pair.source.sql(statement, "a")
            gtid = assert_stopped_at_the_end(pair, one, "two")
            two.wait_until_caught_up()
            assert contents(pair) == before
            command(one, "skip", "--gtid", gtid, "--reason", "of two channels")
            one.start()
            one.wait_until_caught_up()
        assert one.stop() == two.stop() == 0


def a_newcomer_gives_way(two: DaemonProcess, server_id: Value) -> None:
    """Start it with the other's server_id: a MariaDB ends the older connection of the two."""
    assert two.stop() == 0
    own = two.settings["source.server_id"]
    two.settings["source.server_id"] = server_id
    two.start()
    assert two.wait() == NEEDS_PERSON
    assert "was there before" in str(two.records()[-1]["error"])
    two.settings["source.server_id"] = own
    two.start()


def assert_stopped_at_the_end(pair: Pair, daemon: DaemonProcess, other: str) -> str:
    """Return the GTID of the last transaction, which is said to be of the other channel, too."""
    ((found,),) = pair.source.sql("SELECT @@gtid_binlog_pos")
    gtid = str(found)
    assert daemon.wait() == NEEDS_PERSON, daemon.last_words()
    said = str(daemon.records()[-1]["error"])
    assert f"others for channel '{other}'" in said
    assert f"GTID {gtid}," in said
    return gtid


def contents(pair: Pair) -> list[list[tuple[object, ...]]]:
    """Return the tables of both databases on the target, and what is in them."""
    return [
        pair.target.sql(query)
        for query in (
            "SHOW TABLES IN a", "SHOW TABLES IN b", "SELECT * FROM a.t ORDER BY id",
            "SELECT * FROM b.t ORDER BY id",
        )
    ]  # fmt: skip


def test_what_may_not_be_beside_mtsd(tmp_path: Path) -> None:
    """What the target lets pass, its own replica with the same source, and a circle."""
    with families("11.8", "11.8") as pair:
        pair.source.sql("CREATE DATABASE a; CREATE TABLE a.t (i INT); INSERT INTO a.t VALUES (1)")
        there, back = daemons(pair, tmp_path)
        with there, closing(back):
            there.wait_until_caught_up()
            pair.target.sql("SET GLOBAL slave_exec_mode = 'IDEMPOTENT'")
            assert_refused(there, "slave_exec_mode = IDEMPOTENT on the target holds for")
            assert "passes-over" in command(there, "check", "--json", status=NEEDS_PERSON)
            there.start()
            assert_refused(there, "slave_exec_mode = IDEMPOTENT on the target holds for")
            pair.target.sql(
                "SET GLOBAL slave_exec_mode = 'STRICT';"
                f"SET GLOBAL gtid_slave_pos = '{pair.source.binlog_end()[2]}';"
                f"CHANGE MASTER 'x' TO MASTER_HOST='127.0.0.1', MASTER_PORT={pair.source.port},"
                " MASTER_USER='root', MASTER_USE_GTID=slave_pos; START SLAVE 'x'"
            )
            there.start()
            assert_refused(there, "the target itself replicates from the same source")
            pair.target.sql("STOP SLAVE 'x'")
            there.start()
            there.wait_for_status(lambda it: bool(it.warnings), "no warning")
            pair.source.sql("INSERT INTO a.t VALUES (2)")
            there.wait_until_caught_up()
            back.source, back.target = pair.target, pair.source
            back.settings |= {"source.port": pair.target.port, "target.port": pair.source.port}
            back.start()
            assert_refused(back, "another mtsd replicates from the target to the source")
            assert there.stop() == 0
        assert pair.target.sql("SELECT i FROM a.t ORDER BY i") == [(1,), (2,)]


def assert_refused(daemon: DaemonProcess, why: str) -> None:
    assert daemon.wait() == NEEDS_PERSON, daemon.last_words()
    assert why in str(daemon.records()[-1]["error"])

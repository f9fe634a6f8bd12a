"""Groups that change temporary tables, and whose first attempt fails.

A ROLLBACK brings no temporary table back: in a second attempt, the base table that it had hidden
would be found in its place.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from tests.fix_daemon import catch_up, stops
from tests.load.compare import differences
from tests.replica.daemon_process import DaemonProcess
from tests.replica.source_sessions import session
from tests.servers.mysqld import NO_GTIDS, Server
from tests.servers.pair import Pair

pytestmark = pytest.mark.servers

BEGINNING = (
    "CREATE DATABASE d; CREATE TABLE d.t (a INT); INSERT INTO d.t VALUES (1), (2), (3);"
    "CREATE TABLE d.u (a INT); CREATE TABLE d.last (a INT)"
)
CREATED = ("CREATE TEMPORARY TABLE t (a INT)", "INSERT INTO t VALUES (70)")
ENDS = "INSERT INTO last VALUES (1)"
DEADLOCK = 1213
UNKNOWN_COMMAND = 1047
"""Not worth a retry."""


@pytest.fixture(scope="module")
def servers() -> Iterator[Pair]:
    with Pair(NO_GTIDS, NO_GTIDS) as pair:
        yield pair


@pytest.fixture
def daemon(servers: Pair, tmp_path: Path) -> DaemonProcess:
    for server in (servers.target, servers.source):
        server.sql("DROP DATABASE IF EXISTS d; DROP DATABASE IF EXISTS mtsd")
        server.sql("RESET BINARY LOGS AND GTIDS")
    servers.source.sql(BEGINNING)
    daemon = DaemonProcess(servers.source, servers.target, tmp_path)
    catch_up(daemon)
    return daemon


def fail(server: Server, error: int, *, times: int, after: int = 0) -> None:
    """Let attempts of each session at a group's record fail: so many, `after` so many others."""
    server.sql(
        "CREATE TRIGGER mtsd.fails BEFORE UPDATE ON mtsd.slave_worker_info FOR EACH ROW"
        " BEGIN SET @attempts = COALESCE(@attempts, 0) + 1;"
        f" IF @attempts BETWEEN {after + 1} AND {after + times} THEN"
        f" SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = {error}; END IF; END"
    )


def run(daemon: DaemonProcess, before: Sequence[str], *statements: str) -> None:
    """Run statements in one session of the source, those of `before` without failures."""
    daemon.start()
    with session(daemon.source) as client:
        if before:
            client.run(*before)
        daemon.wait_until_caught_up()
        fail(daemon.target, DEADLOCK, times=1)
        client.run(*statements)
        client.run(ENDS)
        daemon.wait_until_caught_up()
    daemon.wait_until_caught_up()
    assert daemon.stop() == 0


@pytest.mark.parametrize(
    "statements",
    [
        ("ALTER TABLE t ADD b INT DEFAULT 5", "INSERT INTO u SELECT b FROM t"),
        ("ALTER TABLE t RENAME w", "INSERT INTO u SELECT a FROM w"),
        ("CREATE INDEX i ON t (a)", "ALTER TABLE t DROP INDEX i"),
        ("TRUNCATE t", "INSERT INTO u SELECT a FROM t"),
        ("DROP TEMPORARY TABLE t", "INSERT INTO u SELECT a FROM t"),
    ],
)
def test_a_definition_whose_record_fails_first(
    daemon: DaemonProcess, statements: Sequence[str]
) -> None:
    run(daemon, CREATED, *statements)
    assert differences(daemon.source, daemon.target) == []


@pytest.mark.parametrize(
    "statements",
    [
        ("BEGIN", *CREATED, "INSERT INTO u SELECT a FROM t", "DROP TEMPORARY TABLE t", "COMMIT"),
        ("BEGIN", "CREATE TEMPORARY TABLE w LIKE u", "INSERT INTO w VALUES (1)", "COMMIT",
         "INSERT INTO u SELECT a FROM w"),
    ],
)  # fmt: skip
def test_what_a_group_creates_itself_is_created_again(
    daemon: DaemonProcess, statements: Sequence[str]
) -> None:
    run(daemon, (), *statements)
    assert differences(daemon.source, daemon.target) == []


@pytest.mark.parametrize(
    "statements",
    [
        ("BEGIN", "INSERT INTO u SELECT a FROM t", "DROP TEMPORARY TABLE t", "COMMIT"),
        (
            "BEGIN", "INSERT INTO u SELECT a FROM t", "DROP TEMPORARY TABLE t", *CREATED,
            "INSERT INTO u SELECT a + 1 FROM t", "COMMIT",
        ),
    ],
)  # fmt: skip
def test_what_a_group_drops_cannot_be_found_again(
    daemon: DaemonProcess, statements: Sequence[str]
) -> None:
    daemon.start()
    with session(daemon.source) as client:
        client.run(*CREATED)
        daemon.wait_until_caught_up()
        fail(daemon.target, DEADLOCK, times=1)
        client.run(*statements)
        assert daemon.wait() == 3, daemon.last_words()
        error = str(daemon.records()[-1]["error"])
        assert "dropped or altered temporary tables" in error
        assert daemon.target.sql("SELECT COUNT(*) FROM d.u") == [(0,)]
        daemon.target.sql("DROP TRIGGER mtsd.fails")
        # The session that had them is gone.
        assert "the target has lost d.t:" in stops(daemon)
        assert daemon.target.sql("SELECT COUNT(*) FROM d.u") == [(0,)]


def test_a_definition_whose_record_never_succeeds(daemon: DaemonProcess) -> None:
    daemon.start()
    with session(daemon.source) as client:
        client.run(*CREATED)
        daemon.wait_until_caught_up()
        fail(daemon.target, UNKNOWN_COMMAND, times=1000)
        client.run("ALTER TABLE t RENAME w")
        assert daemon.wait() == 3, daemon.last_words()
        error = str(daemon.records()[-1]["error"])
        assert "dropped or altered temporary tables" in error
        assert daemon.target.sql("SHOW TABLES IN d LIKE 't'") == [("t",)]


@pytest.mark.parametrize("policy", ["database", "logical_clock"])
@pytest.mark.parametrize("after", [1000, 3, 5])
def test_several_sessions_share_transactions_of_which_one_fails(
    daemon: DaemonProcess, policy: str, after: int
) -> None:
    """The tables that were there before a run are there again, as they were, when it has failed."""
    daemon.settings["replica.parallel_type"] = policy
    daemon.start()
    target = daemon.target
    with session(daemon.source) as one, session(daemon.source) as other:
        for each in (one, other):
            each.run(*CREATED)
        daemon.wait_until_caught_up()
        with closing(target.client("d")) as client, client.cursor() as cursor:
            # Meanwhile there are more than one transaction has room for.
            cursor.execute("LOCK TABLES u WRITE, mtsd.slave_worker_info WRITE")
            for life in range(6):
                for n, each in enumerate((one, other)):
                    each.run(f"INSERT INTO t (a) VALUES ({life})", "INSERT INTO u SELECT a FROM t")
                    each.run("DROP TEMPORARY TABLE t", f"INSERT INTO u VALUES ({100 + life + n})")
                    if life == 2 + n:
                        each.run("UPDATE t SET a = a + 10")
                    more = ", b INT DEFAULT 7" if life == 3 else ""
                    each.run(f"CREATE TEMPORARY TABLE t (a INT{more})")
            cursor.execute("UNLOCK TABLES")
        fail(target, DEADLOCK, times=2, after=after)
        for each in (one, other):
            each.run("INSERT INTO u SELECT a FROM t")
        daemon.wait_until_caught_up()
        status = daemon.status()
        assert status is not None
        groups = sum(each.groups for each in status.workers)
        shared = groups - sum(each.transactions for each in status.workers)
        assert shared > (groups / 2 if after == 1000 else groups / 5)
    daemon.wait_until_caught_up()
    assert daemon.stop() == 0
    assert differences(daemon.source, target) == []


def test_a_table_that_no_rollback_undoes(daemon: DaemonProcess) -> None:
    """What changes it shares no transaction, although the table that it hides could."""
    with session(daemon.source) as client:
        client.run("CREATE TEMPORARY TABLE t (a INT) ENGINE = MyISAM")
        for number in range(3):
            client.run(f"INSERT INTO t VALUES ({number})", "INSERT INTO u SELECT COUNT(*) FROM t")
        fail(daemon.target, DEADLOCK, times=1, after=3)
        assert "cannot be rolled back, because it is in non-transactional" in stops(daemon)
        assert daemon.target.sql("SELECT a FROM d.u") == [(1,)]


def test_sessions_that_end_with_their_tables_share_transactions(daemon: DaemonProcess) -> None:
    for number in range(20):
        with session(daemon.source) as client:
            client.run("CREATE TEMPORARY TABLE t (a INT)", "CREATE TEMPORARY TABLE `é` (a INT)")
            client.run(f"INSERT INTO t VALUES ({number})", "INSERT INTO u SELECT a FROM t")
            if number != 10:
                client.run("DROP TABLE `é`")
    daemon.start()
    daemon.wait_until_caught_up()
    status = daemon.status()
    assert status is not None
    assert sum(each.transactions for each in status.workers) < 60
    assert daemon.stop() == 0
    assert differences(daemon.source, daemon.target) == []


def test_it_is_dropped_where_the_filter_has_put_it(servers: Pair, daemon: DaemonProcess) -> None:
    servers.target.sql("DROP DATABASE IF EXISTS x; CREATE DATABASE x; CREATE TABLE x.u (a INT);"
                       "CREATE TABLE x.last (a INT)")  # fmt: skip
    daemon.settings["filter.rewrite_db"] = [["d", "x"]]
    run(daemon, (), "CREATE TEMPORARY TABLE w SELECT 5 a", "INSERT INTO u SELECT a FROM w")
    assert servers.target.sql("SELECT a FROM x.u") == [(5,)]

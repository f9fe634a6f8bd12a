"""replica.ddl and replica.statements = "alone": for what reads databases that nobody names."""

import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.load.compare import differences
from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.locks import wait_for_lock_wait
from tests.servers.mysqld import GTIDS, Server
from tests.servers.pair import Pair

pytestmark = pytest.mark.servers

TABLES = (
    "CREATE DATABASE a; CREATE DATABASE b;"
    "CREATE TABLE a.gate (id INT PRIMARY KEY, v INT); INSERT INTO a.gate VALUES (1, 0);"
    "CREATE TABLE a.t (id INT PRIMARY KEY); CREATE TABLE b.copy LIKE a.t;"
    "CREATE TABLE b.no_transactions (id INT PRIMARY KEY) ENGINE = MyISAM;"
    "CREATE TABLE b.log (id INT PRIMARY KEY, seen INT)"
)
TRIGGER = (
    "CREATE TRIGGER b.sees BEFORE INSERT ON b.log FOR EACH ROW"
    " SET NEW.seen = (SELECT COUNT(*) FROM a.t)"
)
"""Of the target: the source cannot name what it reads, as it names all that it reads itself."""
BEHIND_GATE = "BEGIN; UPDATE a.gate SET v = v + 1; INSERT INTO a.t VALUES ({}); COMMIT"
STATEMENT = "SET SESSION binlog_format = STATEMENT; USE b; "


@contextmanager
def gate_closed(target: Server) -> Iterator[None]:
    """Hold the row back that comes first of what BEHIND_GATE changes."""
    with closing(target.client()) as client, client.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("SELECT * FROM a.gate FOR UPDATE")
        yield
        cursor.execute("ROLLBACK")


def wait_until_pending(daemon: DaemonProcess, groups: int) -> None:
    deadline = time.monotonic() + 120
    while (status := daemon.status()) is None or status.pending_groups != groups:
        assert time.monotonic() < deadline, f"{status}\n{daemon.last_words()}"
        time.sleep(0.02)


def wait_until_applied(target: Server, query: str, rows: Sequence[tuple[int, ...]]) -> None:
    deadline = time.monotonic() + 120
    while target.sql(query) != rows:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_what_reads_another_database_waits_for_it(tmp_path: Path) -> None:
    with Pair(GTIDS, GTIDS) as pair:
        pair.source.sql(TABLES)
        with DaemonProcess(pair.source, pair.target, tmp_path) as daemon:
            daemon.wait_until_caught_up()
            pair.target.sql(TRIGGER)
            # By partition it overtakes what it reads.
            with gate_closed(pair.target):
                pair.source.sql(BEHIND_GATE.format(1))
                wait_for_lock_wait(pair.target)
                pair.source.sql(STATEMENT + "INSERT INTO log VALUES (1, NULL)")
                wait_until_applied(pair.target, "SELECT id FROM b.log", [(1,)])
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0

            daemon.settings |= {"replica.ddl": "alone", "replica.statements": "alone"}
            daemon.start()
            daemon.wait_until_running()
            with gate_closed(pair.target):
                pair.source.sql(BEHIND_GATE.format(2))
                wait_for_lock_wait(pair.target)
                pair.source.sql(STATEMENT + "INSERT INTO log VALUES (2, NULL)")
                pair.source.sql(STATEMENT + "INSERT INTO copy SELECT * FROM a.t")
                pair.source.sql(STATEMENT + "INSERT INTO no_transactions SELECT * FROM a.t")
                pair.source.sql("CREATE TABLE b.defined (id INT)")
                # And what comes after them waits for them.
                pair.source.sql("INSERT INTO b.copy VALUES (9)")
                wait_until_pending(daemon, 6)
                assert pair.target.sql("SELECT id FROM b.log") == [(1,)]
                assert pair.target.sql("SELECT id FROM b.copy") == []
                assert pair.target.sql("SELECT id FROM b.no_transactions") == []
                assert pair.target.sql("SHOW TABLES FROM b LIKE 'defined'") == []
            daemon.wait_until_caught_up()
            seen = "SELECT id, seen FROM b.log ORDER BY id"
            assert pair.target.sql(seen) == [(1, 0), (2, 2)]
            pair.source.sql("DROP TABLE b.log")
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
        assert differences(pair.source, pair.target) == []


def test_rows_run_side_by_side_all_the_same(tmp_path: Path) -> None:
    settings = {"replica.ddl": "alone", "replica.statements": "alone"}
    with Pair(GTIDS, GTIDS) as pair:
        pair.source.sql(TABLES)
        with DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
            daemon.wait_until_caught_up()
            with gate_closed(pair.target):
                pair.source.sql(BEHIND_GATE.format(1))
                wait_for_lock_wait(pair.target)
                pair.source.sql("INSERT INTO b.copy VALUES (1); INSERT INTO b.copy VALUES (2)")
                rows = [(1,), (2,)]
                wait_until_applied(pair.target, "SELECT id FROM b.copy ORDER BY id", rows)
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
        assert differences(pair.source, pair.target) == []


@pytest.mark.parametrize("policy", ["database", "table", "row"])
def test_what_runs_as_an_account_comes_before_that_is_dropped(policy: str, tmp_path: Path) -> None:
    """The source lists no database but `mysql` for a statement on accounts."""
    settings: dict[str, Value] = {"replica.parallel_type": policy, "replica.parallel_workers": 4}
    with Pair(GTIDS, GTIDS) as pair:
        pair.source.sql(
            f"{TABLES}; CREATE USER u; GRANT ALL ON *.* TO u;"
            "CREATE DEFINER = u TRIGGER a.copies BEFORE INSERT ON a.t FOR EACH ROW"
            " UPDATE a.gate SET v = v + 10"
        )
        with DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
            daemon.wait_until_caught_up()
            with gate_closed(pair.target):
                pair.source.sql("UPDATE a.gate SET v = v + 1")
                wait_for_lock_wait(pair.target)
                pair.source.sql(
                    "SET SESSION binlog_format = STATEMENT; INSERT INTO a.t VALUES (1); DROP USER u"
                )
                daemon.wait_for_status(lambda status: status.pending_groups >= 2, "none queued")
                time.sleep(0.5)
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
        assert differences(pair.source, pair.target) == []


@pytest.mark.parametrize(
    "statements",
    [
        (
            f"{BEHIND_GATE.format(1)}; SET SESSION binlog_format = STATEMENT;"
            "CREATE TABLE b.made SELECT b.counted() AS c"
        ),
        "UPDATE a.gate SET v = 2; CREATE VIEW a.w AS SELECT * FROM a.v; DROP TABLE b.log",
    ],
    ids=["table", "view"],
)
@pytest.mark.parametrize("policy", ["database", "table", "row"])
def test_a_definition_reads_more_than_it_names(
    policy: str, statements: str, tmp_path: Path
) -> None:
    settings: dict[str, Value] = {"replica.parallel_type": policy, "replica.parallel_workers": 4}
    with Pair(GTIDS, GTIDS) as pair:
        pair.source.sql(
            f"{TABLES}; CREATE VIEW a.v AS SELECT * FROM b.log;"
            "CREATE FUNCTION b.counted() RETURNS INT READS SQL DATA"
            " RETURN (SELECT COUNT(*) FROM a.t)"
        )
        with DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
            daemon.wait_until_caught_up()
            with gate_closed(pair.target):
                pair.source.sql(statements)
                wait_for_lock_wait(pair.target)
                daemon.wait_for_status(lambda status: status.pending_groups >= 2, "none queued")
                time.sleep(0.5)
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
        assert differences(pair.source, pair.target) == []

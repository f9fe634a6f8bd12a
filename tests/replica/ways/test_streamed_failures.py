"""What interrupts a streamed transaction in its middle: it is applied exactly once, or stops."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.fix_daemon import NEEDS_PERSON
from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.locks import waiting_session
from tests.servers.mysqld import GTIDS, NO_GTIDS, Server
from tests.servers.pair import Pair

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]

ROWS = 600
HELD = ROWS // 2
SMALL: dict[str, Value] = {
    "replica.batch_bytes": 4096,
    "replica.pending_jobs_size_max": 16384,
    "target.user": "mtsd_here",
}
WAY = {
    "rows": {},
    "SQL": {"target.apply_mode": "sql"},
    "statements": {},
    "load data": {},
    "XA": {},
}
SHORT = ("rows", "statements", "XA")
"""Those of the suite; the others are long."""
CHECKSUM = "SELECT COUNT(*), SUM(CRC32(CONCAT(i, v))) FROM a.t"


def change(source: Server, way: str, folder: Path) -> None:
    """Commit a transaction that does not fit into memory, and one after it."""
    each = [f"({i}, REPEAT('{i % 10}', 50))" for i in range(ROWS)]
    statements = [f"INSERT INTO a.t VALUES {','.join(each[i : i + 9])}" for i in range(0, ROWS, 9)]
    if way == "load data":
        file = folder / "rows"
        file.write_text("".join(f"{i}\t{str(i % 10) * 50}\n" for i in range(ROWS)))
        file.chmod(0o644)
        statements = [f"LOAD DATA INFILE '{file}' INTO TABLE a.t"]
    begin, end = "BEGIN", "COMMIT"
    if way == "XA":
        begin, end = "XA START 'x'", "XA END 'x'; XA PREPARE 'x'; XA COMMIT 'x'"
    binlog_format = "STATEMENT" if way in {"statements", "load data"} else "ROW"
    source.sql(
        f"SET SESSION binlog_format = {binlog_format}; {begin}; {';'.join(statements)}; {end}"
    )
    source.sql("INSERT INTO a.t VALUES (100000, 'last')")


@contextmanager
def held(target: Server) -> Iterator[None]:
    """Hold a row of the middle on the target."""
    with closing(target.client()) as client, client.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute(f"INSERT INTO a.t VALUES ({HELD}, 'held')")
        yield


def kill_query(daemon: DaemonProcess) -> None:
    daemon.target.sql(f"KILL QUERY {waiting_session(daemon.target)}")


def kill_connection(daemon: DaemonProcess) -> None:
    daemon.target.sql(f"KILL {waiting_session(daemon.target)}")


def restart_source(daemon: DaemonProcess) -> None:
    waiting_session(daemon.target)
    daemon.source.restart()


def kill_daemon(daemon: DaemonProcess) -> None:
    waiting_session(daemon.target)
    daemon.kill()


def kill_target(daemon: DaemonProcess) -> None:
    waiting_session(daemon.target)
    daemon.target.kill()


@pytest.mark.parametrize(
    "way", [pytest.param(way, marks=() if way in SHORT else pytest.mark.long) for way in WAY]
)
def test_interruptions(way: str, tmp_path: Path) -> None:
    actions: list[Callable[[DaemonProcess], None]] = [
        kill_query, kill_connection, restart_source, kill_daemon, kill_target,
    ]  # fmt: skip
    with Pair(GTIDS, GTIDS) as pair:
        pair.target.sql("SET sql_log_bin = 0; CREATE USER mtsd_here; GRANT ALL ON *.* TO mtsd_here")
        pair.target.sql("SET GLOBAL local_infile = ON")
        pair.source.sql("CREATE DATABASE a; CREATE TABLE a.t (i INT PRIMARY KEY, v VARCHAR(60))")
        daemon = DaemonProcess(pair.source, pair.target, tmp_path, {**SMALL, **WAY[way]})
        daemon.start()
        for action in actions:
            daemon.wait_until_caught_up()
            pair.source.sql("TRUNCATE a.t")
            daemon.wait_until_caught_up()
            with held(pair.target):
                change(pair.source, way, tmp_path)
                action(daemon)
            if action is kill_target:
                pair.target.start()
                pair.target.sql("SET GLOBAL local_infile = ON")
            if not daemon.running:
                daemon.start()
            daemon.wait_until_caught_up()
            assert pair.target.sql(CHECKSUM) == pair.source.sql(CHECKSUM), action.__name__
        assert any(each["event"] == "streaming a large group" for each in daemon.records())
        assert daemon.stop() == 0


@pytest.mark.parametrize("way", [way for way in WAY if way != "XA"])
def test_a_row_that_is_there(way: str, tmp_path: Path) -> None:
    with Pair(GTIDS, GTIDS) as pair:
        pair.target.sql("SET sql_log_bin = 0; CREATE USER mtsd_here; GRANT ALL ON *.* TO mtsd_here")
        pair.target.sql("SET GLOBAL local_infile = ON")
        pair.source.sql("CREATE DATABASE a; CREATE TABLE a.t (i INT PRIMARY KEY, v VARCHAR(60))")
        daemon = DaemonProcess(pair.source, pair.target, tmp_path, {**SMALL, **WAY[way]})
        daemon.start()
        daemon.wait_until_caught_up()
        pair.target.sql(f"SET sql_log_bin = 0; INSERT INTO a.t VALUES ({HELD}, 'own')")
        change(pair.source, way, tmp_path)
        assert daemon.wait() == 3
        assert "1062" in daemon.last_words()
        assert pair.target.sql("SELECT * FROM a.t") == [(HELD, "own")]
        daemon.settings["replica.skip_errors"] = [1062]
        daemon.start()
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        assert pair.target.sql("SELECT * FROM a.t ORDER BY i") == [(HELD, "own"), (100000, "last")]
        assert len([each for each in daemon.records() if "skip_errors" in str(each["event"])]) == 1


@pytest.mark.parametrize("way", ["rows", "XA"])
def test_retries_that_run_out(way: str, tmp_path: Path) -> None:
    settings: dict[str, Value] = {**SMALL, **WAY[way], "replica.transaction_retries": 0}
    with Pair(GTIDS, GTIDS) as pair:
        pair.target.sql("SET sql_log_bin = 0; CREATE USER mtsd_here; GRANT ALL ON *.* TO mtsd_here")
        pair.source.sql("CREATE DATABASE a; CREATE TABLE a.t (i INT PRIMARY KEY, v VARCHAR(60))")
        daemon = DaemonProcess(pair.source, pair.target, tmp_path, settings)
        daemon.start()
        daemon.wait_until_caught_up()
        with held(pair.target):
            change(pair.source, way, tmp_path)
            kill_query(daemon)
            assert daemon.wait() == NEEDS_PERSON
        said = str(daemon.records()[-1]["error"])
        assert "at attempt 1, the last one that replica.transaction_retries allows" in said
        assert pair.target.sql("SELECT COUNT(*) FROM a.t") == [(0,)]
        assert pair.target.sql("SELECT * FROM mtsd.slave_in_doubt") == []
        daemon.start()
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        assert pair.target.sql(CHECKSUM) == pair.source.sql(CHECKSUM)


def begun(pair: Pair, folder: Path) -> DaemonProcess:
    """Return a daemon that has caught up, with a table of each kind."""
    pair.target.sql("SET sql_log_bin = 0; CREATE USER mtsd_here; GRANT ALL ON *.* TO mtsd_here")
    pair.source.sql("CREATE DATABASE a; CREATE TABLE a.t (i INT PRIMARY KEY, v VARCHAR(60))")
    pair.source.sql("CREATE TABLE a.m (i INT) ENGINE = MyISAM")
    daemon = DaemonProcess(pair.source, pair.target, folder, SMALL)
    daemon.start()
    daemon.wait_until_caught_up()
    return daemon


def test_a_rollback_after_a_part_that_remains(tmp_path: Path) -> None:
    """The reason is said, at the end of the transaction as in its middle."""
    with Pair(NO_GTIDS, NO_GTIDS) as pair:
        daemon = begun(pair, tmp_path)
        inserts = ";".join(f"INSERT INTO a.t VALUES ({i}, REPEAT('v', 50))" for i in range(ROWS))
        pair.source.sql(
            "SET SESSION binlog_format = STATEMENT;"
            f" BEGIN; {inserts}; INSERT INTO a.m VALUES (1); ROLLBACK"
        )
        assert daemon.wait() == NEEDS_PERSON
        assert "it was rolled back on the source" in str(daemon.records()[-1]["error"])
        assert pair.target.sql("SELECT COUNT(*) FROM mtsd.slave_in_doubt") == [(1,)]
        daemon.start()
        assert daemon.wait() == NEEDS_PERSON
        assert pair.target.sql("SELECT COUNT(*) FROM mtsd.slave_in_doubt") == [(1,)]


@pytest.mark.parametrize("when", ["at once", "later"])
def test_a_rollback_to_a_savepoint_after_a_part_that_remains(when: str, tmp_path: Path) -> None:
    """At once: with the first change that cannot be undone, before which nothing remains."""
    with Pair(NO_GTIDS, NO_GTIDS) as pair:
        daemon = begun(pair, tmp_path)
        inserts = [f"INSERT INTO a.t VALUES ({i}, REPEAT('v', 50))" for i in range(ROWS)]
        between = inserts[HELD:] if when == "later" else []
        statements = (
            *inserts[:HELD],
            "SAVEPOINT s",
            "INSERT INTO a.m VALUES (1)",
            *between,
            "ROLLBACK TO s",
            "COMMIT",
        )
        pair.source.sql(f"SET SESSION binlog_format = STATEMENT; BEGIN; {';'.join(statements)}")
        assert daemon.wait() == NEEDS_PERSON
        said = str(daemon.records()[-1]["error"])
        assert "savepoint" in said
        assert "replica.pending_jobs_size_max" in said
        remains = int(when == "later")
        assert pair.target.sql("SELECT COUNT(*) FROM mtsd.slave_in_doubt") == [(remains,)]
        assert pair.target.sql("SELECT COUNT(*) FROM a.m") == [(remains,)]

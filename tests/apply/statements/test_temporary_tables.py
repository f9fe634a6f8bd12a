"""Statements with the flag THREAD_SPECIFIC, after restarts in the middle of the source's files."""

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.fix_daemon import NEEDS_PERSON, catch_up, command, stops
from tests.fix_servers import wait_for
from tests.load.compare import differences
from tests.replica.daemon_process import DaemonProcess
from tests.replica.source_sessions import (
    BEGINNING,
    LOOK_ALIKES,
    Session,
    begin_anew,
    known,
    open_tables,
    session,
    will_be_known,
)
from tests.servers.mysqld import GTIDS, NO_GTIDS, Server
from tests.servers.pair import Pair

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def servers() -> Iterator[Pair]:
    with Pair(GTIDS, GTIDS) as pair:
        yield pair


@pytest.fixture
def pair(servers: Pair) -> Pair:
    begin_anew(servers)
    return servers


IN_BETWEEN = "INSERT INTO d.u VALUES ({0}); INSERT INTO e.x VALUES ({0}, 0)"


@pytest.mark.parametrize("workers", [4, 0])
def test_over_databases_and_with_others_in_between(
    pair: Pair, tmp_path: Path, workers: int
) -> None:
    """Each session has tables of its own, which hide base tables, whatever the others do."""
    pair.source.sql(
        "CREATE DATABASE e; CREATE TABLE e.x (a INT PRIMARY KEY, b INT);"
        "CREATE TABLE d.m (a INT) ENGINE = MyISAM"
    )
    daemon = DaemonProcess(
        pair.source, pair.target, tmp_path, {"replica.parallel_workers": workers}
    )
    catch_up(daemon)
    with (
        session(pair.source) as one,
        session(pair.source) as other,
        session(pair.source) as without,
    ):
        daemon.start()
        for each, n in ((one, 100), (other, 200)):
            each.run(
                "CREATE TEMPORARY TABLE t (a INT, b INT, KEY (a))",
                f"INSERT INTO t VALUES ({n}, 1), ({n + 1}, 2)",
            )
            pair.source.sql(IN_BETWEEN.format(n))
            each.run(f"CREATE TEMPORARY TABLE e.tt ENGINE = MyISAM SELECT {n} a")
        without.run("UPDATE t SET b = b + 10", "DELETE FROM u WHERE a IN (SELECT a FROM t)")
        for each, n in ((one, 110), (other, 210)):
            each.run(
                "INSERT INTO e.x SELECT a + 1000, b FROM t",
                "UPDATE t SET b = 7 WHERE b = 1",
                "BEGIN",
                f"INSERT INTO t VALUES ({n}, 3)",
                "INSERT INTO u SELECT a + 2000 FROM t",
                "COMMIT",
                "BEGIN",
                "INSERT INTO u SELECT a + 3000 FROM t",
                f"INSERT INTO t VALUES ({n + 1}, 4)",
                "ROLLBACK",
                "INSERT INTO m SELECT a FROM t",
                "BEGIN",
                "INSERT INTO m SELECT a FROM e.tt",
                "UPDATE e.x SET b = b + 1",
                "ROLLBACK",
                f"CREATE TABLE e.like_{each.id} LIKE t",
                f"CREATE TABLE e.filled_{each.id} SELECT t.*, tt.a c FROM t, e.tt",
            )
            pair.source.sql(IN_BETWEEN.format(n))
        without.run("TRUNCATE u", "INSERT INTO u SELECT a FROM t")
        for each in (other, one):
            each.run(
                "ALTER TABLE t ADD c INT DEFAULT 5, RENAME TO w",
                "CREATE INDEX i ON w (b)",
                "DROP INDEX i ON w",
                "INSERT INTO e.x SELECT a + 5000, c FROM w",
                # The base table is no longer hidden.
                f"INSERT INTO t VALUES ({each.id} + 10000, 1)",
                "TRUNCATE w",
                "INSERT INTO e.x SELECT 6000 + COUNT(*), 1 FROM w WHERE 0 GROUP BY c",
            )
        daemon.wait_until_caught_up()
        tables = [["d", "w"], ["e", "tt"]]
        will_be_known(
            pair.target,
            [{**open_tables(pair.source, each), "tables": tables} for each in (one, other)],
        )
        one.run("DROP TABLE w, e.tt", "DROP TABLE m", "CREATE TABLE m (a INT)")
    pair.source.sql("INSERT INTO d.u VALUES (9999)")
    daemon.wait_until_caught_up()
    assert daemon.stop() == 0
    assert known(pair.target) == {"complete": True, "threads": []}
    assert differences(pair.source, pair.target) == []


def test_a_database_that_is_dropped_before_them(pair: Pair, tmp_path: Path) -> None:
    """A temporary table outlives its database, and is dropped at the end of its session."""
    daemon = DaemonProcess(pair.source, pair.target, tmp_path)
    catch_up(daemon)
    daemon.start()
    for name in ("t", "`tables`", "`a``b`"):
        with session(pair.source) as one:
            one.run(
                "CREATE DATABASE `e``é`",
                "USE `e``é`",
                f"CREATE TEMPORARY TABLE {name} (a INT PRIMARY KEY)",
                f"INSERT INTO {name} VALUES (50)",
                "CREATE TEMPORARY TABLE other (a INT)",
                "DROP DATABASE `e``é`",
                f"INSERT INTO d.u SELECT a FROM `e``é`.{name}",
                "DELETE FROM d.u WHERE a = 50",
            )
    with session(pair.source) as one:
        one.run("INSERT INTO u VALUES (51)")
    daemon.wait_until_caught_up()
    assert daemon.stop() == 0
    assert known(pair.target) == {"complete": True, "threads": []}
    assert differences(pair.source, pair.target) == []


@pytest.mark.parametrize("mode", ["binlog", "sql"])
def test_rows_find_none_of_a_thread_with_the_id_of_the_session(
    pair: Pair, tmp_path: Path, mode: str
) -> None:
    """Ids are counted on each server: the session of a worker has that of some source thread."""
    with DaemonProcess(
        pair.source,
        pair.target,
        tmp_path,
        {"replica.parallel_workers": 1, "target.apply_mode": mode},
    ) as daemon:
        daemon.wait_until_caught_up()
        ours = pair.target.sql(
            "SELECT id FROM information_schema.processlist"
            " WHERE command = 'Sleep' AND id <> CONNECTION_ID()"
        )
        with session(pair.source) as one, session(pair.source, "ROW") as other:
            for (number,) in ours:
                one.run(
                    f"SET pseudo_thread_id = {number}", "CREATE TEMPORARY TABLE u (a INT)",
                    f"INSERT INTO u VALUES ({number})",
                )  # fmt: skip
            other.run("INSERT INTO u VALUES (50)", "UPDATE u SET a = 51 WHERE a = 50")
            daemon.wait_until_caught_up()
            assert differences(pair.source, pair.target) == []
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0


@pytest.mark.parametrize(
    "place",
    [
        "file",
        pytest.param("latest", marks=pytest.mark.long),
        pytest.param("gtid", marks=pytest.mark.long),
    ],
)
def test_at_a_position_set_by_hand_nothing_is_known(pair: Pair, tmp_path: Path, place: str) -> None:
    daemon = DaemonProcess(pair.source, pair.target, tmp_path)
    catch_up(daemon)
    file, offset, *_, gtids = pair.source.sql("SHOW BINARY LOG STATUS")[0]
    places = {"file": f"{file}:{offset}", "gtid": f"gtid:{gtids}"}
    command(daemon, "position", "set", places.get(place, place))
    with session(pair.source) as client:
        client.run(LOOK_ALIKES[0])
        error = stops(daemon)
        assert "may use a temporary table of its session" in error
        assert "since the source's start" in error
        number = error.partition("group ")[2].split(",")[0]
        command(daemon, "skip", "--group", number, "--reason", "done by hand")
        pair.target.sql(f"USE d; {LOOK_ALIKES[0]}")
        catch_up(daemon)
    pair.source.restart()
    with session(pair.source) as client:
        client.run(*LOOK_ALIKES[1:])
    catch_up(daemon)
    assert differences(pair.source, pair.target) == []


def test_sessions_that_begin_after_reading_are_known(pair: Pair, tmp_path: Path) -> None:
    daemon = DaemonProcess(pair.source, pair.target, tmp_path)
    catch_up(daemon)
    pair.source.sql("FLUSH BINARY LOGS")
    file, offset, *_ = pair.source.sql("SHOW BINARY LOG STATUS")[0]
    command(daemon, "position", "set", f"{file}:{offset}", "--forward")
    daemon.start()
    daemon.wait_until_running()
    assert daemon.stop() == 0
    with session(pair.source) as client:
        client.run(*LOOK_ALIKES)
        catch_up(daemon)
        daemon.start()
        client.run(
            "CREATE TEMPORARY TABLE t (a INT, b INT)",
            "INSERT INTO t VALUES (50, 1)",
            "INSERT INTO u SELECT a FROM t",
            "TRUNCATE t",
        )
        daemon.wait_until_caught_up()
    pair.source.sql("INSERT INTO d.u VALUES (60)")
    daemon.wait_until_caught_up()
    assert daemon.stop() == 0
    assert known(pair.target)["complete"] is False
    assert differences(pair.source, pair.target) == []


class Relayed(NamedTuple):
    """A source that is the replica of another server, with a daemon that reads it."""

    first: Server
    pair: Pair
    daemon: DaemonProcess
    file: str
    client: Session
    own: Session

    def wait(self) -> None:
        """Wait until the source has all of its own source."""
        offset = self.first.sql("SHOW BINARY LOG STATUS")[0][1]
        arrived = f"SELECT SOURCE_POS_WAIT('{self.file}', {offset}, 30) >= 0"
        wait_for(self.pair.source, arrived, 1)


@contextmanager
def relayed(tmp_path: Path, settings: Mapping[str, int]) -> Iterator[Relayed]:
    """Two sessions with one id, of two servers whose groups are in one binary log."""
    options = {**NO_GTIDS, "binlog_format": "STATEMENT"}
    with Pair(options, NO_GTIDS) as pair, Server(options) as first:
        file, offset, *_ = first.sql("SHOW BINARY LOG STATUS")[0]
        pair.source.sql(
            f"CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = {first.port},"
            f" SOURCE_USER = 'root', SOURCE_LOG_FILE = '{file}', SOURCE_LOG_POS = {offset},"
            " GET_SOURCE_PUBLIC_KEY = 1; START REPLICA"
        )
        first.sql(BEGINNING)
        daemon = DaemonProcess(pair.source, pair.target, tmp_path, settings)
        made = "SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = 'd'"
        wait_for(pair.source, made, 1)
        client, own = Session(first), Session(pair.source)
        there = Relayed(first, pair, daemon, str(file), client, own)
        there.wait()
        catch_up(daemon)
        daemon.start()
        while client.id != own.id:
            if client.id < own.id:
                client.close()
                client = Session(first)
            else:
                own.close()
                own = Session(pair.source)
        yield there._replace(client=client, own=own)


def test_a_source_that_is_a_replica(tmp_path: Path) -> None:
    """Its binlog has the threads of its own source, and its start leaves none of their tables."""
    with relayed(tmp_path, {}) as there:
        pair, daemon, client, own = there.pair, there.daemon, there.client, there.own
        with closing(client), session(there.first) as without:
            own.run("CREATE DATABASE o", "CREATE TABLE o.o (a INT)", "CREATE TABLE d.v (a INT)")
            own.run(
                "CREATE TEMPORARY TABLE d.t (a INT, b INT)", "INSERT INTO d.t VALUES (1, 1), (2, 1)"
            )
            without.run(*LOOK_ALIKES)
            for n in range(600, 620):
                # This takes the database to the worker that has the other one's table.
                own.run(f"INSERT INTO d.v SELECT a + 10 * {n} FROM d.t")
                client.run(f"INSERT INTO t VALUES ({n}, 1)")
            client.run("CREATE TEMPORARY TABLE t (a INT)", "INSERT INTO t VALUES (500)")
            client.run("INSERT INTO u SELECT a FROM t")
            own.run("INSERT INTO o.o SELECT a FROM d.t")
            there.wait()
            daemon.wait_until_caught_up()
            own.close()
        there.wait()
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        assert differences(pair.source, pair.target) == []


def test_a_large_transaction_of_a_session_with_the_same_id(tmp_path: Path) -> None:
    """It is applied by the first worker, which has the other server's temporary table."""
    settings = {
        "replica.batch_bytes": 1024,
        "replica.pending_jobs_size_max": 1024,
        "replica.parallel_workers": 2,
    }
    with relayed(tmp_path, settings) as there:
        there.own.run("CREATE TEMPORARY TABLE d.t (a INT, b INT)")
        there.daemon.wait_until_caught_up()
        rows = there.pair.target.sql("SELECT * FROM d.t ORDER BY a")
        large = f"INSERT INTO u VALUES (700) /* {'x' * 4096} */"
        there.client.run("BEGIN", "INSERT INTO t VALUES (700, 1)", large, "COMMIT")
        there.wait()
        assert there.daemon.wait() == NEEDS_PERSON
        error = str(there.daemon.records()[-1]["error"])
        assert "a session with the same id as another server's" in error
        assert "raise replica.pending_jobs_size_max" in error
        assert there.pair.target.sql("SELECT * FROM d.t ORDER BY a") == rows
        there.daemon.settings["replica.pending_jobs_size_max"] = 65536
        catch_up(there.daemon)
        assert differences(there.pair.source, there.pair.target) == []

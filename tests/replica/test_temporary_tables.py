"""Statements with the flag THREAD_SPECIFIC, after restarts in the middle of the source's files."""

import json
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pymysql
import pytest

from mtsd.model.fault_points import FaultPoint
from tests.load.compare import differences
from tests.operations.test_skip import catch_up, command, stops, wait_for
from tests.replica.daemon_process import DaemonError, DaemonProcess
from tests.servers.mysqld import GTIDS, NO_GTIDS, Server
from tests.servers.pair import Pair

pytestmark = pytest.mark.servers

NEEDS_PERSON = 3
SIGKILLED = -9
BEGINNING = (
    "CREATE DATABASE d; CREATE TABLE d.t (a INT PRIMARY KEY, b INT);"
    "INSERT INTO d.t VALUES (1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (6, 6);"
    "CREATE TABLE d.u (a INT PRIMARY KEY); INSERT INTO d.u VALUES (1), (2)"
)
LOOK_ALIKES = (
    "DELETE x FROM t x JOIN t y ON x.a = y.a + 3 WHERE x.a = 4",
    "DELETE FROM t WHERE a IN (SELECT a + 4 FROM u)",
    "INSERT INTO t VALUES (CONNECTION_ID() + 1000, 1)",
    "CREATE TABLE numbered SELECT CONNECTION_ID() + 1 c",
    "DROP TABLE numbered",
)
"""What a session without temporary tables may run in statement format."""


@pytest.fixture(scope="module")
def servers() -> Iterator[Pair]:
    with Pair(GTIDS, GTIDS) as pair:
        yield pair


@pytest.fixture
def pair(servers: Pair) -> Pair:
    for server in (servers.target, servers.source):
        wait_for(server, "SELECT COUNT(*) FROM information_schema.processlist"
                 " WHERE command NOT LIKE 'Binlog%' AND user = 'root' AND db = 'd'", 0)  # fmt: skip
        server.sql("DROP DATABASE IF EXISTS d; DROP DATABASE IF EXISTS e")
        server.sql("DROP DATABASE IF EXISTS mtsd")
        server.sql("RESET BINARY LOGS AND GTIDS")
    servers.source.sql(BEGINNING)
    return servers


class Session:
    """A client of the source that stays connected; it logs statements."""

    def __init__(self, server: Server, binlog_format: str = "STATEMENT") -> None:
        self._client = server.client("d")
        self.run(f"SET binlog_format = {binlog_format}")
        ((self.id,),) = self.run("SELECT CONNECTION_ID()")

    def run(self, *statements: str) -> list[tuple[int, ...]]:
        """Run statements, and return what the last one has answered."""
        with self._client.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall())

    def close(self) -> None:
        """End the session, whose temporary tables go with it."""
        self._client.close()


@contextmanager
def session(server: Server, binlog_format: str = "STATEMENT") -> Iterator[Session]:
    with closing(Session(server, binlog_format)) as client:
        yield client


def skip(daemon: DaemonProcess, error: str) -> str:
    """Skip the group that has stopped the daemon with that error, and return the error."""
    number = error.partition("group ")[2].split(",")[0]
    command(daemon, "skip", "--group", number, "--reason", "only temporary tables")
    return error


def known(server: Server) -> dict[str, object]:
    ((text,),) = server.sql("SELECT Temporary_tables FROM mtsd.slave_relay_log_info")
    found: dict[str, object] = json.loads(text)
    return found


def will_be_known(server: Server, threads: list[dict[str, object]]) -> None:
    """Wait for the checkpoint that says so."""
    deadline = time.monotonic() + 30
    while known(server)["threads"] != threads:
        assert time.monotonic() < deadline, known(server)
        time.sleep(0.05)


def open_tables(server: Server, session: Session, *tables: str) -> dict[str, object]:
    ((server_id,),) = server.sql("SELECT @@server_id")
    named = [["d", table] for table in tables]
    return {"server_id": server_id, "thread_id": session.id, "tables": named}


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_look_alikes_after_a_restart(pair: Pair, tmp_path: Path, end: str) -> None:
    daemon = DaemonProcess(pair.source, pair.target, tmp_path)
    daemon.start()
    daemon.wait_until_caught_up()
    if end == "stop":
        assert daemon.stop() == 0
    else:
        daemon.kill()
    for binlog_format in ("ROW", "MIXED"):
        with session(pair.source, binlog_format) as client:
            # It is not logged, and what looks at it is.
            client.run(
                "CREATE TEMPORARY TABLE tt (a INT PRIMARY KEY, b INT)",
                "INSERT INTO tt VALUES (77, 7)",
                f"CREATE TABLE like_tt_{binlog_format} LIKE tt",
                "DELETE FROM t WHERE a IN (SELECT a FROM tt)",
                "INSERT INTO t SELECT * FROM tt",
                "TRUNCATE tt",
            )
    with session(pair.source) as client:
        client.run(*LOOK_ALIKES)
        daemon.start()
        daemon.wait_until_caught_up()
        client.run("TRUNCATE u", "DELETE FROM t WHERE a IN (SELECT a FROM u)")
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
    assert differences(pair.source, pair.target) == []
    assert known(pair.target) == {"complete": True, "threads": []}


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


@pytest.mark.parametrize("end", ["stop", "kill", "session"])
def test_what_is_lost_is_named(pair: Pair, tmp_path: Path, end: str) -> None:
    daemon = DaemonProcess(pair.source, pair.target, tmp_path)
    catch_up(daemon)
    daemon.start()
    with session(pair.source) as one, session(pair.source) as other:
        one.run("CREATE TEMPORARY TABLE t (a INT)", "CREATE TEMPORARY TABLE hidden (a INT)")
        other.run("CREATE TEMPORARY TABLE v (a INT)", "INSERT INTO v VALUES (1)")
        pair.source.sql("INSERT INTO d.u VALUES (10)")
        daemon.wait_until_caught_up()
        rows = pair.target.sql("SELECT * FROM d.t")
        if end == "stop":
            assert daemon.stop() == 0
            assert "stopped while the source has temporary tables" in daemon.log.read_text()
            assert "d.hidden, d.t, d.v" in daemon.log.read_text()
        elif end == "kill":
            daemon.kill()
        else:
            for (id_,) in pair.target.sql(
                "SELECT id FROM information_schema.processlist WHERE user = 'root'"
                " AND id <> CONNECTION_ID()"
            ):
                # The first one that is lost ends the others.
                with suppress(pymysql.err.OperationalError):
                    pair.target.sql(f"KILL {id_}")
        if end != "session":
            daemon.start()
        pair.source.sql("INSERT INTO d.u VALUES (11)")
        daemon.wait_until_caught_up()
        assert "temporary tables that the target has lost" in daemon.log.read_text()
        # What does not need them goes on.
        other.run("DROP TABLE v", "CREATE TEMPORARY TABLE v (a INT)", "INSERT INTO v VALUES (2)")
        other.run("INSERT INTO u SELECT a + 20 FROM v")
        one.run("DROP TABLE hidden")
        daemon.wait_until_caught_up()
        one.run("TRUNCATE t")
        assert daemon.wait() == NEEDS_PERSON
        assert "the target has lost d.t:" in str(daemon.records()[-1]["error"])
        skip(daemon, str(daemon.records()[-1]["error"]))
        assert pair.target.sql("SELECT * FROM d.t") == rows
    # `other`'s table was in the session that has just ended, and is dropped unused.
    catch_up(daemon)
    assert known(pair.target) == {"complete": True, "threads": []}
    assert differences(pair.source, pair.target) == []


@pytest.mark.parametrize("end", [pytest.param("stop", marks=pytest.mark.long), "kill"])
def test_a_restart_of_the_source_leaves_none(pair: Pair, tmp_path: Path, end: str) -> None:
    """Afterwards, sessions have the ids of former ones."""
    daemon = DaemonProcess(pair.source, pair.target, tmp_path)
    catch_up(daemon)
    daemon.start()
    with session(pair.source) as client:
        client.run("CREATE TEMPORARY TABLE t (a INT)", "CREATE TEMPORARY TABLE w (a INT)")
        daemon.wait_until_caught_up()
        will_be_known(pair.target, [open_tables(pair.source, client, "t", "w")])
        pair.source.stop() if end == "stop" else pair.source.kill()
        pair.source.start()
        daemon.wait_until_caught_up()
        with session(pair.source) as again:
            again.run("TRUNCATE t", *LOOK_ALIKES)
        while True:
            with session(pair.source) as again:
                if again.id < client.id:
                    continue
                again.run(
                    "CREATE TEMPORARY TABLE w (a INT)",
                    "INSERT INTO w VALUES (1)",
                    "INSERT INTO t SELECT a, a FROM w",
                )
                break
    daemon.wait_until_caught_up()
    assert daemon.stop() == 0
    assert known(pair.target) == {"complete": True, "threads": []}
    assert differences(pair.source, pair.target) == []


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
    command(daemon, "position", "set", f"{file}:{offset}")
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


@pytest.mark.parametrize(
    "point",
    [
        FaultPoint.BEFORE_CHECKPOINT,
        pytest.param(FaultPoint.AFTER_CHECKPOINT, marks=pytest.mark.long),
        pytest.param(FaultPoint.AFTER_READ, marks=pytest.mark.long),
        pytest.param(FaultPoint.AFTER_BUNDLE, marks=pytest.mark.long),
        pytest.param(FaultPoint.BEFORE_STOP_CHECKPOINT, marks=pytest.mark.long),
    ],
)
def test_killed_beside_its_creation(pair: Pair, tmp_path: Path, point: FaultPoint) -> None:
    """The record of what is open may be behind, like the position; never ahead of either."""
    daemon = DaemonProcess(pair.source, pair.target, tmp_path)
    catch_up(daemon)
    with session(pair.source) as client:
        daemon.start(fault=point)
        if point is not FaultPoint.AFTER_READ:
            # There, what a dump begins with is enough to end it.
            daemon.wait_until_running()
        client.run("CREATE TEMPORARY TABLE t (a INT)")
        pair.source.sql("INSERT INTO d.u VALUES (10)")
        if point is FaultPoint.BEFORE_STOP_CHECKPOINT:
            daemon.wait_until_caught_up()
            assert daemon.stop() == SIGKILLED
        else:
            assert daemon.wait() == SIGKILLED
        rows = pair.target.sql("SELECT * FROM d.t")
        client.run("INSERT INTO t VALUES (1)")
        daemon.start()
        pair.source.sql("INSERT INTO d.u VALUES (11)")
        try:
            daemon.wait_until_caught_up()
        except DaemonError:
            skip(daemon, str(daemon.records()[-1]["error"]))
            assert "the target has lost d.t:" in str(daemon.records()[-1]["error"])
        else:
            # It died before it had read of the table, so that this one has made it.
            assert daemon.stop() == 0
        assert pair.target.sql("SELECT * FROM d.t") == rows
    catch_up(daemon)
    assert known(pair.target) == {"complete": True, "threads": []}
    assert differences(pair.source, pair.target) == []


def test_a_source_that_is_a_replica(tmp_path: Path) -> None:
    """Its binlog has the threads of its own source, and its start leaves none of their tables."""
    options = {**NO_GTIDS, "binlog_format": "STATEMENT"}
    with Pair(options, NO_GTIDS) as pair, Server(options) as first:
        file, offset, *_ = first.sql("SHOW BINARY LOG STATUS")[0]
        pair.source.sql(
            f"CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = {first.port},"
            f" SOURCE_USER = 'root', SOURCE_LOG_FILE = '{file}', SOURCE_LOG_POS = {offset},"
            " GET_SOURCE_PUBLIC_KEY = 1; START REPLICA"
        )
        first.sql(BEGINNING)
        daemon = DaemonProcess(pair.source, pair.target, tmp_path)

        def relayed() -> None:
            offset = first.sql("SHOW BINARY LOG STATUS")[0][1]
            wait_for(pair.source, "SELECT SOURCE_POS_WAIT("
                     f"'{file}', {offset}, 30) >= 0", 1)  # fmt: skip

        relayed()
        catch_up(daemon)
        daemon.start()
        with session(first) as client, session(first) as without:
            own = None
            while own is None or own.id < client.id:
                if own is not None:
                    own.close()
                own = Session(pair.source)
            # Two sessions with one id, of two servers.
            own.run("CREATE DATABASE o", "CREATE TABLE o.o (a INT)")
            own.run("CREATE TEMPORARY TABLE d.t (a INT)", "INSERT INTO d.t VALUES (1), (2)")
            without.run(*LOOK_ALIKES)
            client.run("CREATE TEMPORARY TABLE t (a INT)", "INSERT INTO t VALUES (500)")
            client.run("INSERT INTO u SELECT a FROM t")
            own.run("INSERT INTO o.o SELECT a FROM d.t")
            relayed()
            daemon.wait_until_caught_up()
            own.close()
        relayed()
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        assert differences(pair.source, pair.target) == []

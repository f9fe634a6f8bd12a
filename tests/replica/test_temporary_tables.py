"""Statements with the flag THREAD_SPECIFIC, after restarts in the middle of the source's files."""

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from mtsd.model.fault_points import FaultPoint
from tests.load.compare import differences
from tests.operations.test_skip import catch_up, command, stops, wait_for
from tests.replica.daemon_process import DaemonProcess
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
        server.sql("DROP DATABASE IF EXISTS d; DROP DATABASE IF EXISTS mtsd")
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


def test_a_base_table_that_a_temporary_one_hides(pair: Pair, tmp_path: Path) -> None:
    """Two sessions hide the same table; each is known of until it has dropped its own."""
    daemon = DaemonProcess(pair.source, pair.target, tmp_path)
    catch_up(daemon)
    rows = pair.target.sql("SELECT * FROM d.t")
    with (
        session(pair.source) as one,
        session(pair.source) as other,
        session(pair.source) as without,
    ):
        one.run("CREATE TEMPORARY TABLE t (a INT)")
        assert "contains temporary tables" in skip(daemon, stops(daemon))
        other.run("CREATE TEMPORARY TABLE t (a INT)")
        assert "contains temporary tables" in skip(daemon, stops(daemon))
        without.run("DELETE FROM u WHERE a IN (SELECT a FROM t WHERE a = 2)")
        catch_up(daemon)
        assert pair.target.sql("SELECT a FROM d.u") == [(1,)]
        assert known(pair.target) == {
            "complete": True,
            "threads": [open_tables(pair.source, each, "t") for each in (one, other)],
        }

        one.run("TRUNCATE t")
        error = skip(daemon, stops(daemon))
        assert "may use a temporary table of its session" in error
        assert "it has d.t)" in error
        one.run("DROP TABLE t")
        daemon.start()
        daemon.wait_until_caught_up()
        daemon.kill()
        assert pair.target.sql("SELECT * FROM d.t") == rows

        one.run("DELETE FROM t WHERE a IN (SELECT a FROM u)")
        catch_up(daemon)
        assert len(pair.target.sql("SELECT * FROM d.t")) == len(rows) - 1
        assert known(pair.target)["threads"] == [open_tables(pair.source, other, "t")]
        other.run("ALTER TABLE t ADD c INT, RENAME TO w")
        assert "it has d.t)" in skip(daemon, stops(daemon))
        other.run("INSERT INTO w VALUES (1, 2)")
        assert "it has d.w)" in skip(daemon, stops(daemon))
    # The end of its session, too, drops it.
    with session(pair.source) as client:
        wait_for(pair.source, "SELECT COUNT(*) FROM information_schema.processlist"
                 f" WHERE id = {other.id}", 0)  # fmt: skip
        client.run("TRUNCATE t")
    catch_up(daemon)
    assert known(pair.target) == {"complete": True, "threads": []}
    assert differences(pair.source, pair.target) == []


@pytest.mark.parametrize("end", [pytest.param("stop", marks=pytest.mark.long), "kill"])
def test_a_restart_of_the_source_leaves_none(pair: Pair, tmp_path: Path, end: str) -> None:
    daemon = DaemonProcess(pair.source, pair.target, tmp_path)
    catch_up(daemon)
    with session(pair.source) as client:
        client.run("CREATE TEMPORARY TABLE t (a INT)")
        assert "contains temporary tables" in skip(daemon, stops(daemon))
        catch_up(daemon)
        assert known(pair.target)["threads"] == [open_tables(pair.source, client, "t")]
        pair.source.stop() if end == "stop" else pair.source.kill()
        pair.source.start()
    catch_up(daemon)
    with session(pair.source) as client:
        client.run(*LOOK_ALIKES, "TRUNCATE u")
    catch_up(daemon)
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
        client.run("CREATE TEMPORARY TABLE t (a INT)")
        skip(daemon, stops(daemon))
        pair.source.sql("INSERT INTO d.u VALUES (10)")
        daemon.start(fault=point)
        if point is FaultPoint.BEFORE_STOP_CHECKPOINT:
            daemon.wait_until_caught_up()
            assert daemon.stop() == SIGKILLED
        else:
            assert daemon.wait() == SIGKILLED
        rows = pair.target.sql("SELECT * FROM d.t")
        client.run("TRUNCATE t")
        assert "it has d.t)" in skip(daemon, stops(daemon))
        assert pair.target.sql("SELECT * FROM d.t") == rows
    catch_up(daemon)
    assert known(pair.target) == {"complete": True, "threads": []}


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
        with session(first) as client, session(first) as without:
            without.run(*LOOK_ALIKES)
            relayed()
            catch_up(daemon)
            assert differences(pair.source, pair.target) == []
            client.run("CREATE TEMPORARY TABLE t (a INT)", "TRUNCATE t")
            relayed()
            skip(daemon, stops(daemon))
            assert "it has d.t)" in skip(daemon, stops(daemon))
            catch_up(daemon)
            assert known(pair.target)["threads"] == [open_tables(first, client, "t")]

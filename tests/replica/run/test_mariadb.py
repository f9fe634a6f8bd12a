"""From MariaDB to MariaDB: every way to begin, kills, another source, and what is refused."""

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path
from threading import Event

import pymysql
import pytest

from mtsd.cli.main import main
from mtsd.model.fault_points import FaultPoint
from mtsd.model.gtid import GtidSet
from tests.fix_daemon import NEEDS_PERSON, SIGKILLED, assert_none_in_doubt, command
from tests.fix_families import mariadbs
from tests.fix_kills import OFTEN, ON_ERROR, ON_STOP, ONCE, SMALL
from tests.load.mariadb import DATABASES, MariadbLoad, unequal
from tests.operations.checked import told
from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.mariadb import provide_mariadb
from tests.servers.mysqld import Server
from tests.servers.pair import Pair
from tests.servers.provision import Options

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]
LONG = pytest.mark.long


@contextmanager
def small_pair(tmp_path: Path, **settings: Value) -> Iterator[tuple[Pair, DaemonProcess]]:
    """Start two servers with a table on the source, and a daemon that has not been started."""
    with mariadbs() as pair:
        pair.source.sql("CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY)")
        yield pair, DaemonProcess(pair.source, pair.target, tmp_path, settings)


def insert(server: Server, *numbers: int, domain: int = 0) -> None:
    for number in numbers:
        server.sql(f"SET gtid_domain_id = {domain}; INSERT INTO a.t VALUES ({number})")


def stopped(daemon: DaemonProcess) -> str:
    """Start a daemon that does not go on, and return why."""
    daemon.start()
    assert daemon.wait() == NEEDS_PERSON, daemon.last_words()
    return str(daemon.records()[-1]["error"])


def caught_up(daemon: DaemonProcess) -> None:
    daemon.start()
    daemon.wait_until_caught_up()
    assert daemon.stop() == 0


def checkpoints(server: Server, file: str) -> int:
    """Return how many notes for the server's own recovery a file has."""
    events = server.sql(f"SHOW BINLOG EVENTS IN '{file}'")
    return sum(kind == "Binlog_checkpoint" for _, _, kind, *_ in events)


def test_a_restart_past_a_checkpoint_between_transactions(tmp_path: Path) -> None:
    """The source sends that, but not the transaction before it, which is applied."""
    with mariadbs("11.8") as pair:
        pair.source.sql("CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY)")
        # InnoDB says only later that what is in the file before is durable.
        pair.source.sql("INSERT INTO a.t VALUES (1); FLUSH BINARY LOGS; INSERT INTO a.t VALUES (2)")
        file, *_ = pair.source.binlog_end()
        deadline = time.monotonic() + 60
        while checkpoints(pair.source, file) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        insert(pair.source, 3)
        settings: dict[str, Value] = {"replica.parallel_type": "auto"}
        daemon = DaemonProcess(pair.source, pair.target, tmp_path, settings)
        chosen = "SELECT Parallel_type FROM mtsd.slave_chosen_policy"
        caught_up(daemon)
        # There were no tables whose keys could tell anything.
        assert pair.target.sql(chosen) == []
        insert(pair.source, 4)
        caught_up(daemon)
        assert pair.target.sql(chosen) == [("row",)]
        # What would be chosen now does not count, until a person has named another one.
        pair.source.sql("SET GLOBAL binlog_format = 'STATEMENT'")
        daemon.start()
        daemon.wait_until_caught_up()
        status = daemon.status()
        assert status is not None
        assert status.parallel_type == "row"
        assert "the keys of 1 of 1 tables tell" in status.parallel_type_because
        assert daemon.stop() == 0
        daemon.settings["replica.parallel_type"] = "table"
        caught_up(daemon)
        assert pair.target.sql(chosen) == []
        assert pair.target.sql("SELECT id FROM a.t") == [(1,), (2,), (3,), (4,)]


def test_a_start_that_is_farther_in_one_domain(tmp_path: Path) -> None:
    """The source says of the last transaction of each domain only that it leaves it out."""
    with mariadbs("11.8") as pair:
        pair.source.sql("CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY)")
        for number in range(1, 11):
            insert(pair.source, number, domain=1 + number % 2)
            if number in {6, 8}:
                pair.source.sql("FLUSH BINARY LOGS")
        # As a replica that applies the domains in parallel.
        pair.target.sql("CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY)")
        pair.target.sql("INSERT INTO a.t VALUES (2), (1), (3), (5), (7)")
        settings: dict[str, Value] = {"source.start": "gtid:0-1-2,1-1-1,2-1-4"}
        caught_up(DaemonProcess(pair.source, pair.target, tmp_path, settings))
        assert pair.target.sql("SELECT id FROM a.t") == [(number,) for number in range(1, 11)]


@pytest.mark.parametrize("series", ["10.11", "11.8"])
def test_a_start_at_a_number_that_the_source_lacks(series: str, tmp_path: Path) -> None:
    """As a source that has filtered that transaction out of what it replicates itself."""
    with mariadbs(series) as pair:
        pair.source.sql("CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY)")
        insert(pair.source, 1)
        pair.source.sql("SET gtid_seq_no = 10; INSERT INTO a.t VALUES (2)")
        insert(pair.source, 3)
        pair.target.sql("CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY)")
        settings: dict[str, Value] = {"source.start": "gtid:0-1-5"}
        caught_up(DaemonProcess(pair.source, pair.target, tmp_path, settings))
        assert pair.target.sql("SELECT id FROM a.t") == [(2,), (3,)]


@pytest.mark.parametrize("series", ["10.11", "11.8"])
def test_a_start_in_a_domain_whose_numbers_go_back(series: str, tmp_path: Path) -> None:
    """Of several servers that write to it: a larger number of another one is not its place."""
    with mariadbs(series) as pair:
        pair.source.sql(
            "SET server_id = 3, gtid_seq_no = 100;"
            "CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY)"
        )
        insert(pair.source, 1, 2, domain=1)
        pair.source.sql("SET gtid_seq_no = 49; INSERT INTO a.t VALUES (3)")
        insert(pair.source, 4, domain=1)
        pair.source.sql("SET gtid_seq_no = 50; INSERT INTO a.t VALUES (5)")
        insert(pair.source, 6, domain=1)
        pair.target.sql("CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY)")
        pair.target.sql("INSERT INTO a.t VALUES (1), (3), (5)")
        settings: dict[str, Value] = {"source.start": "gtid:0-1-50,1-1-1"}
        caught_up(DaemonProcess(pair.source, pair.target, tmp_path, settings))
        assert pair.target.sql("SELECT id FROM a.t") == [(number,) for number in range(1, 7)]


COMPRESSED: Options = {"log_bin_compress": "ON", "log_bin_compress_min_len": 10}


@pytest.mark.parametrize(
    ("source", "target", "options", "formats", "workers"),
    [
        ("10.11", "10.11", {}, ("ROW",), 4),
        ("11.8", "11.8", COMPRESSED, ("ROW", "STATEMENT", "MIXED"), 4),
        pytest.param("10.11", "11.8", {"binlog_checksum": "NONE"}, ("MIXED",), 0, marks=LONG),
        pytest.param("10.11", "10.11", COMPRESSED, ("STATEMENT",), 4, marks=LONG),
        pytest.param("11.8", "11.8", {}, ("ROW",), 0, marks=LONG),
        pytest.param("11.8", "11.8", {"binlog_checksum": "NONE"}, ("ROW",), 4, marks=LONG),
    ],
)
def test_a_backlog(
    source: str,
    target: str,
    options: Options,
    formats: tuple[str, ...],
    workers: int,
    tmp_path: Path,
) -> None:
    with mariadbs(source, target, options=options) as pair:
        load = MariadbLoad(pair.source, 1, formats)
        load.prepare()
        for worker in range(len(DATABASES)):
            load.write(worker, until=Event(), transactions=60)
        settings: dict[str, Value] = {"replica.parallel_workers": workers}
        caught_up(DaemonProcess(pair.source, pair.target, tmp_path, settings))
        assert unequal(pair.source, pair.target) == []


@pytest.mark.parametrize(
    "policy",
    ["row", pytest.param("table", marks=LONG), pytest.param("commit_parent", marks=LONG)],
)
def test_a_backlog_by_another_policy(policy: str, tmp_path: Path) -> None:
    waits: Options = {"binlog_commit_wait_count": 4, "binlog_commit_wait_usec": 20_000}
    with mariadbs("11.8", "11.8", options={**COMPRESSED, **waits}) as pair:
        load = MariadbLoad(pair.source, 2, ("ROW", "ROW", "MIXED", "STATEMENT"))
        load.prepare()
        load.run(transactions=80)
        settings: dict[str, Value] = {"replica.parallel_type": policy}
        caught_up(DaemonProcess(pair.source, pair.target, tmp_path, settings))
        assert unequal(pair.source, pair.target) == []


@pytest.mark.parametrize(
    ("series", "count", "most"),
    [
        pytest.param("10.11", 12, 4, id="10.11-some"),
        pytest.param("10.11", len(FaultPoint), 20, marks=LONG, id="10.11-all"),
        pytest.param("11.8", len(FaultPoint), 20, marks=LONG, id="11.8-all"),
    ],
)
def test_killed_at_fault_points(series: str, count: int, most: int, tmp_path: Path) -> None:
    chance = random.Random(7)
    points = [point for point in FaultPoint if point not in ON_ERROR | ON_STOP]
    chance.shuffle(points)
    with mariadbs(series) as pair:
        load = MariadbLoad(pair.source, 2, ("ROW", "ROW", "ROW", "STATEMENT"))
        load.prepare()
        daemon = DaemonProcess(pair.source, pair.target, tmp_path, SMALL)
        with load.running(pause=0.02):
            for point in points[:count]:
                passes = chance.randint(1, most) if point in OFTEN else chance.randint(1, 3)
                if point in ONCE:
                    passes = 1
                daemon.start(fault=f"{point}:{passes}")
                assert daemon.wait() == SIGKILLED, (point, daemon.last_words())
                if chance.random() < 0.2:
                    pair.target.kill()
                    pair.target.start()
        caught_up(daemon)
        assert unequal(pair.source, pair.target) == []


def test_it_goes_on_by_gtid_over_domains_and_files(tmp_path: Path) -> None:
    with small_pair(tmp_path) as (pair, daemon):
        insert(pair.source, 1)
        caught_up(daemon)
        insert(pair.source, 11, 12, domain=7)
        pair.source.sql("FLUSH BINARY LOGS")
        insert(pair.source, 2)
        insert(pair.source, 13, domain=7)
        caught_up(daemon)
        ((known, uuid),) = pair.target.sql(
            "SELECT Executed_gtid_set, Source_uuid FROM mtsd.slave_relay_log_info"
        )
        assert known == pair.source.sql("SELECT @@gtid_binlog_pos")[0][0] == "0-1-4,7-1-3"
        assert uuid == "server_id 1"
        said = [record for record in daemon.records() if record["event"].startswith("connected")]  # type: ignore[attr-defined] # a text
        assert {record["by"] for record in said} == {"GTID set"}
        assert unequal(pair.source, pair.target) == []
        # The target's own replica goes on after that, beside what mtsd has logged in domain 0.
        insert(pair.source, 14, domain=7)
        ((own,),) = pair.target.sql("SELECT @@gtid_binlog_pos")
        pair.target.sql(f"INSERT INTO a.t VALUES (14); SET GLOBAL gtid_slave_pos = '{own},7-1-4'")
        said_to = stopped(daemon)
        assert "executed 1 of the source's transactions after the position" in said_to
        assert "mtsd position set gtid:0-1-4,7-1-4 --forward --config" in said_to
        assert "target-executed-beyond" in told(tmp_path, daemon.settings).bad
        command(daemon, "position", "set", "gtid:0-1-4,7-1-4", "--forward")
        insert(pair.source, 3)
        caught_up(daemon)
        assert unequal(pair.source, pair.target) == []


@pytest.mark.parametrize("way", ["gtid", "file", "latest"])
def test_where_it_begins(way: str, tmp_path: Path) -> None:
    with small_pair(tmp_path) as (pair, daemon):
        insert(pair.source, 1)
        insert(pair.source, 11, domain=7)
        gtids = pair.source.sql("SELECT @@gtid_binlog_pos")[0][0]
        file, offset, _ = pair.source.binlog_end()
        pair.target.sql("CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY)")
        start = {"gtid": f"gtid:{gtids}", "file": f"{file}:{offset}", "latest": "latest"}[way]
        daemon.settings["source.start"] = start
        daemon.start()
        daemon.wait_until_running()
        insert(pair.source, 2)
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        assert pair.target.sql("SELECT id FROM a.t") == [(2,)]
        known = pair.target.sql("SELECT Executed_gtid_set FROM mtsd.slave_relay_log_info")
        assert known == pair.source.sql("SELECT @@gtid_binlog_pos")
        insert(pair.source, 12, domain=7)
        pair.source.sql("FLUSH BINARY LOGS")
        insert(pair.source, 3)
        caught_up(daemon)
        known = pair.target.sql("SELECT Executed_gtid_set FROM mtsd.slave_relay_log_info")
        assert known == pair.source.sql("SELECT @@gtid_binlog_pos")
        assert pair.target.sql("SELECT id FROM a.t") == [(2,), (3,), (12,)]


def test_a_role_for_a_user_whom_the_source_does_not_name(tmp_path: Path) -> None:
    """MariaDB's own replica stops there, too; the error says which group that is."""
    with small_pair(tmp_path) as (pair, daemon):
        pair.source.sql("CREATE ROLE r; GRANT r TO CURRENT_USER()")
        said = stopped(daemon)
        assert "group 4, ending at" in said
        assert "CURRENT_USER, of which the source does not say who that was" in said
        assert "mtsd skip --group" in said
        assert_none_in_doubt(pair.target)
        assert pair.target.sql("SELECT COUNT(*) FROM mtsd.slave_stopped_group") == [(1,)]


def test_what_the_source_has_purged(tmp_path: Path) -> None:
    with small_pair(tmp_path) as (pair, daemon):
        caught_up(daemon)
        insert(pair.source, 1)
        pair.source.sql("FLUSH BINARY LOGS")
        insert(pair.source, 2)
        last = pair.source.binlog_end()[0]
        deadline = time.monotonic() + 60
        # It keeps a file for a dump of which it does not know that it has ended.
        while len(pair.source.sql("SHOW BINARY LOGS")) > 1:
            assert time.monotonic() < deadline
            pair.source.sql(f"INSERT INTO a.t VALUES ({random.randrange(1 << 30)})")
            pair.source.sql(f"PURGE BINARY LOGS TO '{last}'")
            time.sleep(0.2)
        assert "the source has purged what is needed next: 0-1-3" in stopped(daemon)
        daemon.settings["replica.channel"] = "other"
        daemon.settings["source.server_id"] = 4202
        pair.target.sql("DROP DATABASE mtsd")
        said = stopped(daemon)
        assert "not in its binary log" in said
        assert "0-1-3" in said


def test_a_source_that_was_reset(tmp_path: Path) -> None:
    with small_pair(tmp_path) as (pair, daemon):
        insert(pair.source, 1, 2)
        caught_up(daemon)
        pair.source.sql("RESET MASTER")
        insert(pair.source, 3)
        assert "the target is ahead of its source, which lacks 0-1-4" in stopped(daemon)


def test_another_source_continues_by_gtid(tmp_path: Path) -> None:
    """A replica of the former source takes over, and goes on with the same domain."""
    third = Server(
        {"server_id": 3, "binlog_format": "ROW", "log_slave_updates": "ON"},
        installation=provide_mariadb("10.11"),
    )
    with small_pair(tmp_path, **SMALL) as (pair, daemon), third:
        insert(pair.source, *range(20))
        insert(pair.source, *range(100, 110), domain=7)
        third.sql(
            f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={pair.source.port},"
            " MASTER_USER='root', MASTER_USE_GTID=slave_pos; START SLAVE"
        )
        caught_up(daemon)
        goal = pair.source.sql("SELECT @@gtid_binlog_pos")[0][0]
        assert third.sql(f"SELECT MASTER_GTID_WAIT('{goal}', 60)") == [(0,)]
        third.sql("STOP SLAVE; RESET SLAVE ALL")
        pair.source.stop()
        insert(third, *range(20, 40))
        insert(third, *range(110, 120), domain=7)
        moved = DaemonProcess(third, pair.target, tmp_path, daemon.settings)
        moved.settings["source.port"] = third.port
        caught_up(moved)
        ((known, uuid),) = pair.target.sql(
            "SELECT Executed_gtid_set, Source_uuid FROM mtsd.slave_relay_log_info"
        )
        assert (known, uuid) == ("0-3-42,7-3-20", "server_id 3")
        assert unequal(third, pair.target) == []


STRICT: Options = {"gtid_strict_mode": "ON", "log_slave_updates": "ON"}


def own_replica_position(daemon: DaemonProcess) -> str:
    """Return what the target's own replica goes on from, as docs/mariadb.md says."""
    ((position,),) = daemon.target.sql("SELECT Executed_gtid_set FROM mtsd.slave_relay_log_info")
    ((own,),) = daemon.target.sql("SELECT @@gtid_binlog_pos")
    return f"{position},{own}"


def test_the_targets_own_replica_takes_over_and_gives_back(tmp_path: Path) -> None:
    """Whatever mtsd writes has a domain of its own, so that nothing stands in the way."""
    with mariadbs("11.8", "10.11", target_options=STRICT) as pair:
        pair.source.sql("CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY)")
        # In one session: another one knows it only some time after the end of the first.
        pair.source.sql(
            "XA START 'x'; INSERT INTO a.t VALUES (0); XA END 'x'; XA PREPARE 'x'; XA COMMIT 'x';"
            "SET binlog_format=STATEMENT; INSERT INTO a.t VALUES (1)"
        )
        insert(pair.source, *range(2, 9))
        daemon = DaemonProcess(pair.source, pair.target, tmp_path, SMALL)
        caught_up(daemon)
        ((goal,),) = pair.source.sql("SELECT @@gtid_binlog_pos")
        command(daemon, "position", "set", f"gtid:{goal}")
        insert(pair.source, 9)
        caught_up(daemon)
        assert GtidSet.parse(pair.target.sql("SELECT @@gtid_binlog_state")[0][0]).domains() == {2}
        position = own_replica_position(daemon)
        pair.target.sql(f"SET GLOBAL gtid_slave_pos = '{position}'")
        assert pair.target.sql("SELECT @@gtid_slave_pos") == [(position,)]
        pair.target.sql(
            f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={pair.source.port},"
            " MASTER_USER='root', MASTER_USE_GTID=slave_pos; START SLAVE"
        )
        insert(pair.source, 10)
        ((goal,),) = pair.source.sql("SELECT @@gtid_binlog_pos")
        assert pair.target.sql(f"SELECT MASTER_GTID_WAIT('{goal}', 60)") == [(0,)]
        pair.target.sql("STOP SLAVE; RESET SLAVE ALL")
        command(daemon, "position", "set", f"gtid:{goal}", "--forward")
        insert(pair.source, 11)
        caught_up(daemon)
        assert unequal(pair.source, pair.target) == []
        found = told(tmp_path, daemon.settings)
        assert "in the domain 2" in found.lines["own-domain"]
        # The source begins to use that domain while the daemon runs.
        with daemon:
            insert(pair.source, 12, domain=2)
            assert daemon.wait() == NEEDS_PERSON
        said = "in the GTID domain 2, in which the source has transactions, too"
        assert said in str(daemon.records()[-1]["error"])
        assert said in told(tmp_path, daemon.settings).bad["domain-shared"]


def test_numbers_that_do_not_grow(tmp_path: Path) -> None:
    """Without the strict mode a domain's numbers may go back, and other servers may have them."""
    with small_pair(tmp_path) as (pair, daemon):
        caught_up(daemon)
        source = pair.source
        for number, assignments in enumerate(
            (
                "gtid_seq_no = 100",
                "server_id = 9, gtid_seq_no = 50",
                "server_id = 9",
                "server_id = 8, gtid_seq_no = 60",
                "gtid_seq_no = 200",
            )
        ):
            source.sql(f"SET {assignments}; INSERT INTO a.t VALUES ({number})")
            caught_up(daemon)
        known = pair.target.sql("SELECT Executed_gtid_set FROM mtsd.slave_relay_log_info")
        assert known == source.sql("SELECT @@gtid_binlog_pos")
        assert unequal(source, pair.target) == []


def test_the_check_finds_nothing_wrong(tmp_path: Path) -> None:
    with small_pair(tmp_path) as (pair, daemon):
        for server in (pair.source, pair.target):
            server.sql("SET GLOBAL sync_binlog = 1; SET GLOBAL log_bin_trust_function_creators = 1")
        caught_up(daemon)
        found = told(tmp_path, daemon.settings)
        # The source does not know yet that the dump has ended.
        assert found.bad.keys() <= {"server-id-maybe-taken"}, found.bad
        assert "read by GTID" in found.lines["mariadb-gtids"]


def test_the_check_names_what_reaches_the_position_tables(tmp_path: Path) -> None:
    """A MariaDB does not log that a view, trigger or routine changes another database."""
    with small_pair(tmp_path) as (pair, daemon):
        caught_up(daemon)
        pair.target.sql(
            "CREATE VIEW a.v AS SELECT * FROM mtsd.slave_worker_info;"
            "CREATE VIEW a.only_read AS SELECT COUNT(*) FROM mtsd.slave_worker_info;"
            "CREATE FUNCTION a.f() RETURNS INT DETERMINISTIC RETURN 1;"
            "CREATE PROCEDURE a.p() DELETE FROM `mtsd` . slave_worker_info;"
            "CREATE PROCEDURE a.q() DELETE FROM mtsd.slave_worker_info;"
            "CREATE TRIGGER a.g AFTER DELETE ON a.t FOR EACH ROW"
            " DELETE FROM `mtsd`.`slave_worker_info`"
        )
        assert "position-schema-reached" not in told(tmp_path, daemon.settings).bad
        pair.source.sql("SET GLOBAL binlog_format = MIXED")
        line = told(tmp_path, daemon.settings).bad["position-schema-reached"]
        assert "through a.v, a.g, a.p, a.q:" in line


@pytest.mark.parametrize("engine", ["InnoDB", "MyISAM"])
def test_a_statement_that_deletes_the_position_stops(engine: str, tmp_path: Path) -> None:
    """Its text does not say so, and neither does a MariaDB: a trigger of the target does it."""
    with small_pair(tmp_path) as (pair, daemon):
        pair.source.sql(f"CREATE TABLE a.gate (id INT) ENGINE={engine}")
        caught_up(daemon)
        position = "SELECT * FROM mtsd.slave_worker_info"
        pair.target.sql(
            "CREATE TRIGGER a.g AFTER INSERT ON a.gate FOR EACH ROW"
            " DELETE FROM mtsd.slave_worker_info"
        )
        pair.source.sql("SET binlog_format = STATEMENT; INSERT INTO a.gate VALUES (1)")
        said = stopped(daemon)
        assert "own row for this worker in slave_worker_info is gone" in said, said
        if engine == "InnoDB":
            assert pair.target.sql(position)
            assert not pair.target.sql("SELECT * FROM a.gate")
            pair.target.sql("DROP TRIGGER a.g")
            caught_up(daemon)
            assert unequal(pair.source, pair.target) == []


def granted(daemon: DaemonProcess) -> list[str]:
    """Return what --grants prints for the source, and for the target."""
    daemon.configure()
    with redirect_stdout(StringIO()) as printed:
        assert main(["check", "--grants", "--config", str(daemon.config)]) == 0
    return printed.getvalue().split("\n\n")


DEFINITIONS = """
CREATE DEFINER = nobody@nowhere TRIGGER a.g BEFORE INSERT ON a.t FOR EACH ROW SET @x = 1;
CREATE DEFINER = nobody@nowhere VIEW a.v AS SELECT 1; CREATE SEQUENCE a.s;
CREATE PROCEDURE a.p() SELECT 1; CREATE EVENT a.e ON SCHEDULE EVERY 1 DAY DO SET @x = 1;
CREATE TABLE a.copy ENGINE = InnoDB SELECT 1 AS one; FLUSH TABLES;
SET time_zone = '+03:00'; SET sql_mode = 'ANSI'; SET timestamp = 1700000000;
SET SESSION binlog_format = STATEMENT; INSERT INTO a.copy VALUES (7);
CREATE TEMPORARY TABLE a.w (i INT); INSERT INTO a.w VALUES (8);
INSERT INTO a.copy SELECT i FROM a.w;
CREATE TABLE a.h (i INT) WITH SYSTEM VERSIONING; DELETE HISTORY FROM a.h
"""


def test_the_grants_are_enough(tmp_path: Path) -> None:
    with small_pair(tmp_path) as (pair, daemon):
        daemon.settings |= {"source.user": "repl", "target.user": "mtsd"}
        for server, user, printed in zip(
            (pair.source, pair.target), ("repl", "mtsd"), granted(daemon), strict=True
        ):
            server.sql(f"SET sql_log_bin = 0; CREATE USER {user}@'%'")
            server.sql("SET GLOBAL log_bin_trust_function_creators = 1")
            server.tool("mysql", stdin=f"SET sql_log_bin = 0;{printed}".encode())
        with pair.target.client(user="mtsd") as client:
            for attempt in (
                "INSERT INTO mysql.global_priv VALUES ('%', 'evil', '{\"access\": 1}')",
                "CREATE USER evil",
                "INSTALL PLUGIN x SONAME 'x.so'",
                "CREATE PROCEDURE sys.p() SELECT 1",
                "CREATE DEFINER = root@localhost PROCEDURE test.p() SELECT 1",
            ):
                with pytest.raises(pymysql.err.OperationalError, match="denied"):
                    client.cursor().execute(attempt)
        found = told(tmp_path, daemon.settings)
        assert (found.status, set(found.bad)) == (0, {"accounts", "definers", "sync-binlog"})
        pair.target.sql("SET sql_log_bin = 0; GRANT SET USER ON *.* TO mtsd@'%'")
        pair.source.sql(DEFINITIONS)
        # The restart reads the target's binary log.
        daemon.start(fault=f"{FaultPoint.AFTER_STATEMENT}:3")
        assert daemon.wait() == SIGKILLED, daemon.last_words()
        caught_up(daemon)
        assert unequal(pair.source, pair.target) == []
        assert pair.target.sql("SELECT status FROM information_schema.events") == [
            ("SLAVESIDE_DISABLED",)
        ]
        assert daemon.stop() == 0
        # The server itself would apply such a row for whoever may replay.
        pair.source.sql("INSERT INTO mysql.time_zone VALUES (1, 'N')")
        for allowed, said in (
            ("refuse", "a table of the server's own: this target would apply them"),
            (
                "replicate",
                "command denied to user 'mtsd'@'localhost' for table `mysql`.`time_zone`",
            ),
        ):
            daemon.settings |= {"filter.system_schemas": allowed}
            daemon.start()
            assert daemon.wait() == NEEDS_PERSON, daemon.last_words()
            assert said in daemon.last_words()
        assert pair.target.sql("SELECT * FROM mysql.time_zone") == []
        pair.source.sql("DELETE FROM mysql.time_zone")


def test_a_definition_is_never_applied_twice(tmp_path: Path) -> None:
    """Killed after the statement, before that is on record: the target's binlog shows it."""
    with small_pair(tmp_path) as (pair, daemon):
        caught_up(daemon)
        for number, point in enumerate((FaultPoint.AFTER_STATEMENT, FaultPoint.STATEMENT_SENT)):
            pair.source.sql(f"ALTER TABLE a.t ADD INDEX (id), COMMENT '{number}'")
            daemon.start(fault=f"{point}:1")
            assert daemon.wait() == SIGKILLED, daemon.last_words()
        for point in (
            FaultPoint.AFTER_STATEMENT,
            FaultPoint.BEFORE_SETTLED,
            FaultPoint.BEFORE_COMMIT,
        ):
            pair.source.sql(f"CREATE TABLE a.`{point}` ENGINE=InnoDB SELECT 1 AS one")
            daemon.start(fault=f"{point}:1")
            assert daemon.wait() == SIGKILLED, daemon.last_words()
        caught_up(daemon)
        assert unequal(pair.source, pair.target) == []
        assert len(pair.target.sql("SHOW INDEX FROM a.t")) == 3

"""LOAD DATA in statement format: the file comes with the binlog, and goes to the target."""

from collections.abc import Iterator
from pathlib import Path

import pymysql
import pytest

from tests.apply.statements.loading import SOURCE, TABLE, file, run
from tests.fix_daemon import differences_after, stops
from tests.load.compare import differences
from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.mysqld import GTIDS, NO_GTIDS
from tests.servers.pair import Pair
from tests.servers.proxy import Proxy

pytestmark = pytest.mark.servers

MERGED = "INSERT INTO t VALUES (100, 'in a transaction', 1)"


@pytest.fixture(scope="module")
def servers() -> Iterator[Pair]:
    with Pair({**GTIDS, **SOURCE}, {**GTIDS, "local_infile": 1}) as pair:
        yield pair


@pytest.fixture
def pair(servers: Pair) -> Pair:
    for server in (servers.target, servers.source):
        server.sql("DROP DATABASE IF EXISTS d; DROP DATABASE IF EXISTS mtsd")
        server.sql("RESET BINARY LOGS AND GTIDS")
    servers.source.sql(
        f"CREATE DATABASE d; CREATE TABLE d.t {TABLE}; CREATE TABLE d.m {TABLE} ENGINE = MyISAM;"
        f"CREATE TABLE d.hot (n INT)"
    )
    return servers


def test_every_form(pair: Pair, tmp_path: Path) -> None:
    source = pair.source
    rows = "1\tone\t1\n2\ttwo\t\\N\n3\t\\t\\\\\t3\n"
    plain, odd_name = file(source, "plain", rows), file(source, "it's", rows)
    more = file(source, "more", '"4";"a ""b""";5\r\n"2";"other";7\r\n')
    short = file(source, "short", "hello\nworld\n")
    odd = file(source, "odd", "x\nbyé\n".encode("utf-16-be"))
    nothing = file(source, "nothing", "")
    run(
        source,
        f'LOAD DATA INFILE "{odd_name}" INTO TABLE t',
        f"LOAD DATA LOCAL INFILE '{plain}' IGNORE INTO TABLE m",
        f"LOAD DATA CONCURRENT INFILE '{more}' REPLACE INTO TABLE t CHARACTER SET latin1"
        " FIELDS TERMINATED BY ';' OPTIONALLY ENCLOSED BY '\"' LINES TERMINATED BY '\\r\\n'",
        f"LOAD DATA INFILE '{more}' IGNORE INTO TABLE t"
        " FIELDS TERMINATED BY ';' ENCLOSED BY '\"' LINES TERMINATED BY '\\r\\n' IGNORE 1 LINES",
        "SET @prefix = 'é', @n = 3",
        f"LOAD DATA INFILE '{short}' INTO TABLE t (@word) SET v = CONCAT(@prefix, @word), u = @n",
        f"LOAD DATA LOCAL INFILE '{short}' INTO TABLE t (v) SET u = RAND() * 1000",
        f"LOAD DATA INFILE '{nothing}' INTO TABLE t",
        f"LOAD DATA INFILE '{odd}' INTO TABLE t CHARACTER SET utf16 LINES STARTING BY 'b' (v)",
        "BEGIN",
        MERGED,
        f"LOAD DATA INFILE '{short}' INTO TABLE t (v)",
        "UPDATE t SET u = LAST_INSERT_ID() WHERE id = 100",
        f"LOAD DATA INFILE '{short}' INTO TABLE d.t (v)",
        "SAVEPOINT a",
        f"LOAD DATA INFILE '{short}' INTO TABLE d.t (v)",
        "ROLLBACK TO a",
        "COMMIT",
        "SET sql_mode = 'ANSI_QUOTES'",
        f"LOAD DATA INFILE '{short}' INTO TABLE t FIELDS ESCAPED BY '' (v)",
        "SET sql_mode = ''",
        f"LOAD DATA INFILE '{plain}' INTO TABLE d.m FIELDS TERMINATED BY ',' (u)",
        "CREATE DATABASE IF NOT EXISTS l CHARACTER SET latin1",
        "USE l",
        f"LOAD DATA INFILE '{file(source, 'latin', bytes([0xE9, 10]))}' INTO TABLE d.t (v)",
        "SET collation_database = cp1251_bin",
        f"LOAD DATA INFILE '{file(source, 'cyrillic', bytes([0xE9, 10]))}' INTO TABLE d.t (v)",
        "USE d",
        "DROP DATABASE l",
    )
    with pytest.raises(pymysql.err.IntegrityError):
        run(source, "BEGIN", f"LOAD DATA INFILE '{plain}' INTO TABLE t")
    assert differences_after(pair, tmp_path) == []


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"replica.pending_jobs_size_max": 1 << 20, "replica.batch_bytes": 1 << 18},
    ],
    ids=["in memory", "streamed"],
)
def test_a_large_file(pair: Pair, tmp_path: Path, settings: dict[str, int]) -> None:
    rows = "".join(f"{n}\t{n:020}\t{n * 7}\n" for n in range(1, 150_001))
    large = file(pair.source, "large", rows)
    run(
        pair.source,
        "BEGIN",
        "INSERT INTO hot VALUES (1)",
        f"LOAD DATA INFILE '{large}' INTO TABLE t",
        "UPDATE t SET v = u WHERE id % 1000 = 0",
        "COMMIT",
        f"LOAD DATA INFILE '{large}' INTO TABLE m",
    )
    with DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        assert ("streaming a large group" in daemon.log.read_text()) == bool(settings)
    assert differences(pair.source, pair.target) == []


def test_a_large_file_under_another_timestamp_default(pair: Pair, tmp_path: Path) -> None:
    """The target sets it in no transaction, and the statement comes after its file."""
    large = file(pair.source, "large", "".join(f"{n}\t\\N\n" for n in range(40_000)))
    run(
        pair.source,
        "SET explicit_defaults_for_timestamp = OFF",
        "CREATE TABLE stamps (id INT PRIMARY KEY, at TIMESTAMP)",
        "SET timestamp = 1000000000",
        "BEGIN",
        f"LOAD DATA INFILE '{large}' INTO TABLE stamps",
        "COMMIT",
        "SET explicit_defaults_for_timestamp = ON",
        "CREATE TABLE later (at TIMESTAMP NULL)",
        f"LOAD DATA INFILE '{large}' INTO TABLE later (@id, at)",
    )
    settings = {"replica.pending_jobs_size_max": 1 << 18, "replica.batch_bytes": 1 << 16}
    with DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        assert "streaming a large group" in daemon.log.read_text()
    assert differences(pair.source, pair.target) == []
    assert pair.target.sql("SELECT MAX(UNIX_TIMESTAMP(at)) FROM d.stamps") == [(1000000000,)]
    assert pair.target.sql("SELECT COUNT(at) FROM d.later") == [(0,)]


DRIFT = {
    "a key that exists": ("INSERT INTO d.{} VALUES (2, 'there', 1)", 1062),
    # InnoDB's REPLACE leaves such a row as it is, and does not count it.
    "a row that exists": ("INSERT INTO d.{} VALUES (2, 'two', 2)", 1062),
    "a shorter column": ("ALTER TABLE d.{} MODIFY v VARCHAR(2)", 1406),
    "a type that does not fit": ("ALTER TABLE d.{} MODIFY v INT", 1366),
    "a check": ("ALTER TABLE d.{} ADD CHECK (u < 2)", 3819),
    "a column that may not be NULL": ("ALTER TABLE d.{} MODIFY u INT NOT NULL", 1263),
}


@pytest.mark.parametrize("what", DRIFT)
@pytest.mark.parametrize("table", ["t", "m"])
def test_nothing_is_left_out_in_silence(pair: Pair, tmp_path: Path, table: str, what: str) -> None:
    change, error = DRIFT[what]
    rows = file(pair.source, "rows", "1\tone\t\\N\n2\ttwo\t2\n3\tthree\t3\n")
    with DaemonProcess(pair.source, pair.target, tmp_path) as daemon:
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
    pair.target.sql("SET sql_log_bin = 0; " + change.format(table))
    before = pair.target.sql(f"SELECT * FROM d.{table}")
    run(pair.source, f"LOAD DATA INFILE '{rows}' INTO TABLE {table}")
    said = stops(daemon)
    assert f"error {error}" in said
    if table == "t":
        assert pair.target.sql("SELECT * FROM d.t") == before
        assert "Fix the target" in said
    else:
        assert "mtsd resolve" in said or pair.target.sql("SELECT * FROM d.m") == before


LEFT_OUT = {
    "a check": (f"CREATE TABLE d.c {TABLE}", "ALTER TABLE d.c ADD CHECK (u < 2)", 3819),
    "a foreign key": (
        (
            "USE d; CREATE TABLE p (id INT PRIMARY KEY); INSERT INTO p VALUES (1), (2), (3);"
            "CREATE TABLE c (id INT PRIMARY KEY, v INT, u INT, FOREIGN KEY (id) REFERENCES p (id))"
        ),
        "DELETE FROM d.p WHERE id = 2",
        1452,
    ),
}


@pytest.mark.parametrize("what", LEFT_OUT)
def test_nothing_is_left_out_without_a_strict_mode(pair: Pair, tmp_path: Path, what: str) -> None:
    """A server does not count rows that such a constraint refuses as left out."""
    definition, change, error = LEFT_OUT[what]
    rows = file(pair.source, "rows", "1\t1\t1\n2\t2\t2\n3\t3\t3\n")
    pair.source.sql(definition)
    with DaemonProcess(pair.source, pair.target, tmp_path) as daemon:
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
    pair.target.sql(f"SET sql_log_bin = 0; {change}")
    run(pair.source, "SET sql_mode = ''", f"LOAD DATA INFILE '{rows}' INTO TABLE c")
    assert f"error {error}" in stops(daemon)
    assert pair.target.sql("SELECT * FROM d.c") == []


@pytest.mark.parametrize("engine", ["MyISAM", "MEMORY", "InnoDB"])
def test_a_temporary_table_gets_each_row_once(pair: Pair, tmp_path: Path, engine: str) -> None:
    """Where the load warns of something, which a ROLLBACK in that table does not undo."""
    rows = file(pair.source, "rows", "1\n2\n3\n")
    run(
        pair.source,
        f"CREATE TEMPORARY TABLE q (a INT, b VARCHAR(9)) ENGINE = {engine}",
        f"LOAD DATA INFILE '{rows}' INTO TABLE q (a) SET b = CONVERT('x' USING utf8)",
        "INSERT INTO hot SELECT a FROM q",
    )
    with DaemonProcess(pair.source, pair.target, tmp_path) as daemon:
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
    assert pair.source.sql("SELECT COUNT(*) FROM d.hot") == [(3,)]
    assert differences(pair.source, pair.target) == []


def test_a_load_that_failed_half_way(pair: Pair, tmp_path: Path) -> None:
    rows = file(pair.source, "rows", "1\tone\t1\n2\ttwo\t2\n1\tagain\t3\n4\tfour\t4\n")
    with pytest.raises(pymysql.err.IntegrityError):
        run(pair.source, f"LOAD DATA INFILE '{rows}' INTO TABLE m")
    assert pair.source.sql("SELECT COUNT(*) FROM d.m") == [(2,)]
    daemon = DaemonProcess(pair.source, pair.target, tmp_path)
    assert "a LOAD DATA that failed on the source with error 1062" in stops(daemon)
    assert pair.target.sql("SELECT COUNT(*) FROM d.m") == [(0,)]


def test_backslashes_that_may_be_escapes(pair: Pair, tmp_path: Path) -> None:
    """The source writes the same for a file without escapes as for one with them."""
    rows = file(pair.source, "rows", "1\ta\\tb\t1\n")
    mode = "SET sql_mode = 'NO_BACKSLASH_ESCAPES'"
    run(pair.source, mode, f"LOAD DATA INFILE '{rows}' INTO TABLE t")
    said = stops(DaemonProcess(pair.source, pair.target, tmp_path))
    assert "does not log whether they are escapes" in said
    assert pair.target.sql("SELECT COUNT(*) FROM d.t") == [(0,)]


def test_a_target_that_refuses_files(pair: Pair, tmp_path: Path) -> None:
    run(pair.source, f"LOAD DATA INFILE '{file(pair.source, 'a', '1')}' INTO TABLE t (u)")
    pair.target.sql("SET GLOBAL local_infile = OFF")
    daemon = DaemonProcess(pair.source, pair.target, tmp_path)
    try:
        assert "Set local_infile = ON on the target" in stops(daemon)
    finally:
        pair.target.sql("SET GLOBAL local_infile = ON")
    assert differences_after(pair, tmp_path) == []


@pytest.mark.long
def test_from_a_source_without_gtids(tmp_path: Path) -> None:
    with Pair({**NO_GTIDS, **SOURCE}, {**NO_GTIDS, "local_infile": 1}) as pair:
        pair.source.sql(f"CREATE DATABASE d; CREATE TABLE d.t {TABLE}")
        pair.source.sql(f"CREATE TABLE d.m {TABLE} ENGINE = MyISAM; CREATE TABLE d.hot (n INT)")
        test_every_form(pair, tmp_path)


def test_a_file_that_the_target_asks_for(pair: Pair, tmp_path: Path) -> None:
    """A statement of the source asks the target for a file of mtsd's machine: it gets none."""
    asking = b"LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE d.t (v)"
    written = b"INSERT INTO d.t (v) VALUES (1) /*%b*/"
    written %= b"x" * (len(asking) - len(written) + 2)
    pair.source.sql("SET GLOBAL binlog_checksum = NONE")
    try:
        run(pair.source, written.decode())
        with Proxy(pair.source, lambda: lambda data: data.replace(written, asking)) as proxy:
            settings: dict[str, Value] = {"source.port": proxy.port, "source.tls": "disabled"}
            said = stops(DaemonProcess(pair.source, pair.target, tmp_path, settings))
    finally:
        pair.source.sql("SET GLOBAL binlog_checksum = CRC32")
    assert "the target asks for a file of this machine" in said
    assert pair.target.sql("SELECT COUNT(*) FROM d.t") == [(0,)]

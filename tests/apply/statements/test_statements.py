"""Statements as the server's own replica runs them: in their own database, or in none."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.fix_daemon import NEEDS_PERSON, replicated
from tests.fix_families import families
from tests.load.compare import differences
from tests.replica.daemon_process import DaemonProcess
from tests.servers.mysqld import GTIDS, NO_GTIDS, Server
from tests.servers.pair import Pair
from tests.servers.provision import Options

pytestmark = pytest.mark.servers

STOPS_S = 60.0


@pytest.fixture
def pair() -> Iterator[Pair]:
    with Pair(GTIDS, GTIDS) as pair:
        yield pair


def run(server: Server, *statements: str, database: str | None = None) -> None:
    with closing(server.client(database)) as client, client.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


@pytest.mark.parametrize(
    "statements",
    [
        ("CREATE TABLE n1 (i INT)",),
        ("DROP TABLE IF EXISTS slave_in_doubt",),
        ("ALTER DATABASE CHARACTER SET latin1",),
        ("SET binlog_format = STATEMENT", "INSERT INTO c.t SELECT COUNT(*) FROM views"),
    ],
    ids=lambda statements: statements[-1][:20],
)
def test_a_default_database_that_the_target_lacks_is_an_error(
    pair: Pair, tmp_path: Path, statements: tuple[str, ...]
) -> None:
    run(
        pair.source,
        "CREATE DATABASE b",
        "CREATE DATABASE c",
        "CREATE TABLE c.t (i INT PRIMARY KEY)",
        "CREATE TABLE b.views (i INT)",
    )
    with DaemonProcess(pair.source, pair.target, tmp_path) as daemon:
        daemon.wait_until_caught_up()
        tables = pair.target.sql("SHOW TABLES FROM mtsd")
        created = pair.target.sql("SHOW CREATE DATABASE mtsd")
        run(pair.target, "SET sql_log_bin = 0", "DROP DATABASE b")
        run(pair.source, *statements, database="b")
        assert daemon.wait(STOPS_S) == NEEDS_PERSON
        assert "error 1049" in daemon.last_words()
        assert "Unknown database 'b'" in daemon.last_words()
    assert pair.target.sql("SHOW TABLES FROM mtsd") == tables
    assert pair.target.sql("SHOW CREATE DATABASE mtsd") == created
    assert pair.target.sql("SELECT COUNT(*) FROM c.t") == [(0,)]


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE c.n SELECT DATABASE() d",
        "LOAD DATA INFILE '{file}' INTO TABLE c.t (i) SET s = SCHEMA()",
    ],
    ids=["create", "load"],
)
def test_what_would_depend_on_having_no_default_database(
    pair: Pair, tmp_path: Path, statement: str
) -> None:
    loaded = pair.source.datadir.parent / "loaded"
    loaded.write_text("1\n")
    run(pair.source, "CREATE DATABASE c", "CREATE TABLE c.t (i INT, s VARCHAR(64))")
    run(pair.source, "SET binlog_format = STATEMENT", statement.format(file=loaded))
    with DaemonProcess(pair.source, pair.target, tmp_path) as daemon:
        assert daemon.wait(STOPS_S) == NEEDS_PERSON
        assert "in a session without a default database" in daemon.last_words()


def test_a_default_database_that_another_session_has_dropped(pair: Pair, tmp_path: Path) -> None:
    """The source goes on with statements whose names all have their own databases."""
    run(pair.source, "CREATE DATABASE b", "CREATE DATABASE c", "CREATE TABLE c.v (i INT)")
    with (
        DaemonProcess(pair.source, pair.target, tmp_path) as daemon,
        closing(pair.source.client("b")) as client,
        client.cursor() as cursor,
    ):
        run(pair.source, "DROP DATABASE b")
        for statement in (
            "CREATE TABLE c.t (i INT PRIMARY KEY)",
            "CREATE DATABASE e",
            "ALTER DATABASE e CHARACTER SET latin1",
            "CREATE TABLE e.t LIKE c.t",
            "TRUNCATE c.t",
            "CREATE VIEW c.w AS SELECT * FROM c.v",
            "SET binlog_format = STATEMENT",
            "INSERT INTO c.v VALUES (1)",
            "DROP DATABASE e",
        ):
            cursor.execute(statement)
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
    assert differences(pair.source, pair.target) == []


def test_statements_that_look_like_others(pair: Pair, tmp_path: Path) -> None:
    run(
        pair.source,
        "CREATE DATABASE d",
        "USE d",
        "CREATE TABLE t (a INT PRIMARY KEY, b INT)",
        "INSERT INTO t VALUES (1, 1), (2, 2), (3, 3), (4, 4)",
        "CREATE TABLE s0 ENGINE=InnoDB SELECT 1 a",
        "CREATE TABLE s1 CHARSET=latin1 SELECT 'x' a",
        "CREATE TABLE s2 COMMENT='START TRANSACTION' ROW_FORMAT=DYNAMIC SELECT 1 a",
        "CREATE TABLE s3 (KEY (a)) PARTITION BY HASH (a) PARTITIONS 2 SELECT 1 a",
        "CREATE TEMPORARY TABLE tt (i INT, KEY (i))",
        "CREATE TABLE copied LIKE tt",
        "CREATE TABLE filled SELECT * FROM tt",
        "TRUNCATE tt",
        "DROP TABLE tt",
        "SET restrict_fk_on_non_standard_key = OFF",
        "CREATE TABLE parent (a INT, KEY (a))",
        "CREATE TABLE child (a INT, FOREIGN KEY (a) REFERENCES parent (a))",
        "SET binlog_format = STATEMENT",
        "DELETE x FROM t x JOIN t y ON x.a = y.a + 3",
        "DELETE FROM t WHERE a IN (SELECT i + 3 FROM filled) OR a = 3",
        "INSERT INTO t VALUES (CONNECTION_ID() + 100, 1)",
        "CREATE TABLE numbered SELECT CONNECTION_ID() + 1 c",
        "DROP TABLE s0",
    )
    with DaemonProcess(pair.source, pair.target, tmp_path) as daemon:
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
    assert differences(pair.source, pair.target) == []


def test_names_that_look_like_something_else(pair: Pair, tmp_path: Path) -> None:
    """With ANSI_QUOTES a backslash in a name is a backslash; after a dot any word is a name."""
    run(
        pair.source,
        "CREATE DATABASE d",
        "USE d",
        "SET sql_mode = 'ANSI_QUOTES', binlog_format = STATEMENT",
        'CREATE TABLE "t\\" (i INT PRIMARY KEY)',
        'CREATE TEMPORARY TABLE "u"",\\" (i INT)',
        'INSERT INTO "u"",\\" VALUES (1)',
        'INSERT INTO "t\\" SELECT i FROM "u"",\\"',
        'DROP TEMPORARY TABLE "u"",\\"',
        "CREATE EVENT \"e\\\" ON SCHEDULE EVERY 1 DAY COMMENT 'x' DO SELECT 1",
        'ALTER EVENT "e\\" ENABLE',
        "CREATE TABLE d.current_user (i INT PRIMARY KEY)",
        "CREATE USER 'u'@'h'",
        "GRANT SELECT, UPDATE ON d.current_user TO 'u'@'h'",
        "REVOKE SELECT ON d.current_user FROM 'u'@'h'",
    )
    with DaemonProcess(pair.source, pair.target, tmp_path) as daemon:
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
    assert differences(pair.source, pair.target) == []


def test_what_looks_like_a_comment_in_another_language(pair: Pair, tmp_path: Path) -> None:
    """JavaScript has private fields (#x), apostrophes in comments, and no version comments."""
    run(
        pair.source,
        "CREATE DATABASE d",
        "CREATE LIBRARY d.one LANGUAGE JAVASCRIPT AS $$ export class A { x = 1; #y = 2; } $$",
        "CREATE LIBRARY d.two LANGUAGE JAVASCRIPT AS $$ let a; /*!50000 it's */ $$",
        "CREATE FUNCTION d.f() RETURNS INT NO SQL LANGUAGE JAVASCRIPT"
        " AS $$ let x = 0; // # don't $$",
    )
    libraries = "SELECT library_name, library_definition FROM information_schema.libraries"
    routines = (
        "SELECT routine_definition FROM information_schema.routines WHERE routine_schema = 'd'"
    )
    with DaemonProcess(pair.source, pair.target, tmp_path) as daemon:
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
    for query in (libraries, routines):
        assert pair.target.sql(query) == pair.source.sql(query) != []


def test_a_table_that_is_created_from_a_query_with_a_warning(pair: Pair, tmp_path: Path) -> None:
    """MySQL warns of utf8mb3."""
    run(pair.source, "CREATE DATABASE d", "CREATE TABLE d.t AS SELECT _utf8mb3'x' AS a")
    with DaemonProcess(pair.source, pair.target, tmp_path) as daemon:
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
    assert pair.target.sql("SELECT a FROM d.t") == [("x",)]


@pytest.mark.parametrize("family", ["9.7", "11.8"])
def test_an_event_runs_in_the_time_zone_of_the_server(family: str, tmp_path: Path) -> None:
    """A source does not always log which one that was, for example not for a prepared statement."""
    zones = "SELECT event_name, time_zone FROM information_schema.events ORDER BY 1"
    with families(family, family) as pair:
        run(
            pair.source,
            "CREATE DATABASE d",
            "USE d",
            "CREATE EVENT e ON SCHEDULE AT CURRENT_TIMESTAMP + INTERVAL 1 YEAR DO SELECT 1",
            "PREPARE s FROM 'CREATE EVENT f ON SCHEDULE EVERY 1 HOUR DO SELECT 1'",
            "EXECUTE s",
            "DROP EVENT f",
            "EXECUTE s",
            "SET time_zone = '+02:00'",
            "CREATE EVENT g ON SCHEDULE EVERY 1 HOUR STARTS '2040-01-01' DO SELECT 1",
        )
        replicated(pair, tmp_path)
        assert pair.target.sql(zones) == pair.source.sql(zones)


def test_a_temporary_table_stops_what_may_use_it(pair: Pair, tmp_path: Path) -> None:
    """Its TRUNCATE must not empty the base table that it hides."""
    run(
        pair.source,
        "CREATE DATABASE d",
        "USE d",
        "CREATE TABLE t (a INT PRIMARY KEY)",
        "INSERT INTO t VALUES (1)",
        "SET binlog_format = STATEMENT",
        "CREATE TEMPORARY TABLE t (a INT)",
        "FLUSH BINARY LOGS",
        "TRUNCATE t",
    )
    *_, end = pair.source.sql("SHOW BINARY LOGS")
    pair.target.sql("CREATE DATABASE d; CREATE TABLE d.t (a INT PRIMARY KEY)")
    pair.target.sql("INSERT INTO d.t VALUES (1)")
    settings = {"source.start": f"{end[0]}:4"}
    with DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
        assert daemon.wait(STOPS_S) == NEEDS_PERSON
        assert "may use a temporary table of its session" in daemon.last_words()
    assert pair.target.sql("SELECT a FROM d.t") == [(1,)]


@pytest.mark.parametrize("workers", [4, 0])
@pytest.mark.parametrize(("of_source", "of_target"), [("OFF", "ON"), ("ON", "OFF")])
def test_null_in_a_timestamp_with_another_default_on_the_target(
    of_source: str, of_target: str, workers: int, tmp_path: Path
) -> None:
    """Outside of strict mode the values would differ without an error."""
    with Pair(
        {**NO_GTIDS, "binlog_format": "STATEMENT", "explicit_defaults_for_timestamp": of_source},
        {**NO_GTIDS, "explicit_defaults_for_timestamp": of_target, "local_infile": "ON"},
    ) as pair:
        run(
            pair.source,
            "CREATE DATABASE a",
            "CREATE TABLE a.t (i INT PRIMARY KEY, at TIMESTAMP NOT NULL DEFAULT '2020-02-02')",
            "CREATE TABLE a.m LIKE a.t",
            "ALTER TABLE a.m ENGINE = MyISAM",
            "CREATE TABLE a.null_ (n INT)",
            "INSERT INTO a.null_ VALUES (NULL)",
        )
        (pair.source.folder / "file").write_text("40\t\\N\n41\t\\N\n")
        daemon = DaemonProcess(
            pair.source, pair.target, tmp_path, {"replica.parallel_workers": workers}
        )
        daemon.start()
        for start, value in ((0, "DEFAULT"), (100, of_target), (200, of_source)):
            run(
                pair.source,
                f"SET explicit_defaults_for_timestamp = {value}, sql_mode = ''",
                # Only definitions of such columns say it.
                "BEGIN",
                f"INSERT INTO a.t SELECT {start + 31}, n FROM a.null_",
                f"CREATE TEMPORARY TABLE a.t{start} (at TIMESTAMP)",
                f"UPDATE a.t SET at = NULL WHERE i = {start + 31}",
                "COMMIT",
                f"DROP TEMPORARY TABLE a.t{start}",
                *null_in_timestamps(start, pair.source.folder / "file"),
            )
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        assert differences(pair.source, pair.target) == []


@pytest.mark.parametrize("options", [GTIDS, NO_GTIDS], ids=["gtids", "no_gtids"])
def test_revoke_of_what_is_not_granted_from_a_source_before_8_3(
    options: Options, tmp_path: Path
) -> None:
    """It was no error there, and is logged: the version that logged it decides on the target."""
    former = "SET original_server_version = 80036"
    with Pair(options, options) as pair:
        run(
            pair.source,
            "CREATE DATABASE a",
            "CREATE TABLE a.t (i INT)",
            "CREATE PROCEDURE a.p() BEGIN END",
            "CREATE ROLE r",
            "GRANT INSERT ON a.* TO r",
            "GRANT INSERT, UPDATE (i) ON a.t TO r",
            "GRANT EXECUTE ON PROCEDURE a.p TO r",
            *(
                statement
                for what in ("SELECT ON a.*", "SELECT, INSERT ON a.t", "SELECT (i) ON a.t",
                             "ALTER ROUTINE ON PROCEDURE a.p")
                for statement in (former, f"REVOKE {what} FROM r")
            ),
        )  # fmt: skip
        with DaemonProcess(pair.source, pair.target, tmp_path) as daemon:
            daemon.wait_until_caught_up()
            # Of another version it is an error, also in the session that the others ran in.
            run(pair.target, "REVOKE UPDATE (i) ON a.t FROM r")
            run(pair.source, "REVOKE UPDATE (i) ON a.t FROM r")
            assert daemon.wait(STOPS_S) == NEEDS_PERSON
            assert "error 1147" in daemon.last_words()
        assert differences(pair.source, pair.target) == []


def null_in_timestamps(start: int, file: Path) -> Iterator[str]:
    """Yield statements that store NULL in columns that are TIMESTAMP NOT NULL."""
    yield "SET sql_mode = '', timestamp = 1000000000"
    for table in ("a.t", "a.m"):
        yield f"INSERT INTO {table} VALUES ({start + 1}, NULL), ({start + 2}, NULL)"
        yield f"INSERT INTO {table} SELECT {start + 3}, n FROM a.null_"
        yield f"INSERT INTO {table} VALUES ({start + 4}, '2020-01-01')"
        yield f"UPDATE {table} SET at = NULL WHERE i = {start + 4}"
        yield (
            f"LOAD DATA INFILE '{file}' INTO TABLE {table} (i, @at)"
            f" SET i = i + {start}, at = NULLIF(@at, @at)"
        )
    yield "BEGIN"
    yield f"INSERT INTO a.t VALUES ({start + 11}, NULL), ({start + 12}, NULL)"
    yield f"CREATE TEMPORARY TABLE a.s{start} (at TIMESTAMP)"
    yield f"UPDATE a.t SET at = NULL WHERE i = {start + 1}"
    yield "COMMIT"
    yield f"DROP TEMPORARY TABLE a.s{start}"
    yield f"XA START 'x{start}'"
    yield f"INSERT INTO a.t VALUES ({start + 21}, NULL), ({start + 22}, NULL)"
    yield f"XA END 'x{start}'"
    yield f"XA PREPARE 'x{start}'"
    yield f"XA COMMIT 'x{start}'"


def test_create_select_under_another_timestamp_default(tmp_path: Path) -> None:
    """The target sets explicit_defaults_for_timestamp in no transaction, and this one begins it."""
    with Pair({**GTIDS, "explicit_defaults_for_timestamp": "ON"}, GTIDS) as pair:
        run(
            pair.source,
            "CREATE DATABASE a",
            "CREATE TABLE a.t (i INT PRIMARY KEY)",
            "INSERT INTO a.t VALUES (1)",
            "SET explicit_defaults_for_timestamp = OFF",
            "CREATE TABLE a.of_session (at TIMESTAMP)",
            "CREATE TABLE a.copy (at TIMESTAMP) SELECT i FROM a.t",
            "CREATE TABLE a.plain SELECT i FROM a.t",
            "SET explicit_defaults_for_timestamp = ON",
            "CREATE TABLE a.again (at TIMESTAMP) SELECT i FROM a.t",
        )
        with DaemonProcess(pair.source, pair.target, tmp_path) as daemon:
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
        assert differences(pair.source, pair.target) == []


def test_null_in_a_timestamp_is_the_time_where_both_servers_say_so(tmp_path: Path) -> None:
    """What changes rows has no explicit_defaults_for_timestamp in its event."""
    options = {**GTIDS, "explicit_defaults_for_timestamp": "OFF"}
    with Pair({**options, "binlog_format": "STATEMENT"}, options) as pair:
        run(
            pair.source,
            "CREATE DATABASE a",
            "CREATE TABLE a.t (i INT PRIMARY KEY, at TIMESTAMP)",
            "SET timestamp = 1000000000",
            "INSERT INTO a.t VALUES (1, NULL)",
        )
        with DaemonProcess(pair.source, pair.target, tmp_path) as daemon:
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
        assert differences(pair.source, pair.target) == []
        assert pair.target.sql("SELECT i, UNIX_TIMESTAMP(at) FROM a.t") == [(1, 1000000000)]

"""The load and the comparison themselves: a comparison that overlooks something proves nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pymysql
import pytest

from tests.load import small
from tests.load.columns import WIDE
from tests.load.compare import checksums, differences, doubles
from tests.load.journal import Entry, Ledger, audit
from tests.load.mixed import Mix, MixedLoad
from tests.load.tables import ODD, ODD_TABLE
from tests.servers.mysqld import Server
from tests.servers.pair import Pair

pytestmark = pytest.mark.servers

ALL = Mix(
    users=True,
    create_select=True,
    statement_format=True,
    non_transactional=True,
    temporary=True,
)


EXACT = """
    CREATE TABLE d1.exact (
        id INT PRIMARY KEY, f FLOAT, d DOUBLE, t TIME(6), j JSON, v VECTOR(2), g POINT,
        c CHAR(9), s SET('a', 'b')
    );
    INSERT INTO d1.exact VALUES (1, 1.1, 0.3, '1:00', '{"a": 1}', TO_VECTOR('[1,2]'),
        POINT(1, 1), 'word', 'a,b')
"""


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with Pair() as pair:
        yield pair


@pytest.fixture(scope="module")
def load(pair: Pair) -> MixedLoad:
    """Run a load, then make the target a copy of the source by the server's own programs."""
    load = MixedLoad(pair.source, seed=7, databases=4, mix=ALL)
    load.prepare()
    load.run(transactions=800)
    pair.source.sql(EXACT)
    copy(pair)
    return load


def copy(pair: Pair) -> None:
    logs = [str(name) for name, *_ in pair.source.sql("SHOW BINARY LOGS")]
    pair.target.tool("mysql", "--binary-mode", stdin=pair.source.tool("mysqlbinlog", *logs))


def test_a_copy_is_equal(pair: Pair, load: MixedLoad) -> None:
    assert load.committed == 800
    assert differences(pair.source, pair.target, users=True) == []
    assert checksums(pair.source) == checksums(pair.target)
    assert audit(pair.source, load.ledger) == audit(pair.target, load.ledger) == []


def test_the_mix_is_rich(pair: Pair, load: MixedLoad) -> None:
    assert load.definitions > 10
    files = [str(name) for name, *_ in pair.source.sql("SHOW BINARY LOGS")]
    log = [row for name in files for row in pair.source.sql(f"SHOW BINLOG EVENTS IN '{name}'")]
    kinds = {str(row[2]) for row in log}
    assert {"Transaction_payload", "Rows_query", "Table_map", "Gtid_tagged_log_event"} <= kinds
    assert any("SAVEPOINT" in str(row[5]) for row in log)
    rows = {name: int(text.split()[0]) for name, text in checksums(pair.source).items()}
    filled = ("accounts", "child", "grandchild", "journal", "partitioned", "modern", *WIDE)
    assert all(rows[f"d0.{table}"] for table in filled)
    assert rows[f"{ODD}.{ODD_TABLE}"]


@contextmanager
def spoilt(target: Server, table: str, statements: str) -> Iterator[None]:
    """Change a table of the target, and put it back as it was."""
    target.sql(
        f"SET sql_mode = ''; CREATE DATABASE saved; CREATE TABLE saved.t LIKE {table};"
        f"INSERT INTO saved.t SELECT * FROM {table}; {statements}"
    )
    try:
        yield
    finally:
        target.sql(f"DROP TABLE {table}; RENAME TABLE saved.t TO {table}; DROP DATABASE saved")


@pytest.mark.parametrize(
    ("table", "statement", "expected"),
    [
        *(
            (
                "d1.exact",
                f"UPDATE d1.exact SET {change}",
                ["its 1 rows differ", "  1 x at the source: 1|", "  1 x at the target: 1|"],
            )
            for change in (
                "f = 1.1000001E0 + 2e-7",
                "d = 0.30000000000000004E0",
                "t = '01:00:00.000001'",
                """j = '{"a": 2}'""",
                "v = TO_VECTOR('[1,2.0000002]')",
                "g = ST_SRID(g, 4326)",
                "c = 'Word'",
                "s = 'b'",
                "c = NULL",
            )
        ),
        (
            "d2.journal",
            "INSERT INTO d2.journal VALUES (77, 77), (77, 77)",
            ["rows at the source, ", "  2 x at the target: 77|77"],
        ),
        (
            "d1.exact",
            "DELETE FROM d1.exact",
            ["1 rows at the source, 0 at the target", "  1 x at the source: 1|"],
        ),
        (
            "d0.nullable",
            "ALTER TABLE d0.nullable DROP INDEX c",
            ["UNIQUE KEY `c` (`c`) at the source, nothing more at the target"],
        ),
        (
            "d1.nullable",
            "ALTER TABLE d1.nullable ADD INDEX (d)",
            ["nothing more at the source, KEY `d` (`d`) at the target"],
        ),
        (
            "d2.nullable",
            "ALTER TABLE d2.nullable ALTER COLUMN d SET DEFAULT 8",
            ["`d` int NOT NULL DEFAULT '-1' at the source, `d` int NOT NULL DEFAULT '8' at"],
        ),
        (
            "d3.nullable",
            "ALTER TABLE d3.nullable ADD COLUMN z INT INVISIBLE",
            ["nothing more at the source, `z` int DEFAULT NULL /*!80023 INVISIBLE */ at"],
        ),
    ],
)
def test_a_table_that_differs_is_told(
    pair: Pair, load: MixedLoad, table: str, statement: str, expected: list[str]
) -> None:
    assert load.committed
    with spoilt(pair.target, table, statement):
        told = differences(pair.source, pair.target, ignore_schemas=("mtsd", "saved"))
    assert len(told) == len(expected), told
    assert told[0].startswith(f"table {table}: ")
    for line, part in zip(told, expected, strict=True):
        assert part in line


@pytest.mark.parametrize(
    ("spoil", "mend", "expected"),
    [
        (
            "CREATE DATABASE more; CREATE TABLE more.t (a INT)",
            "DROP DATABASE more",
            ["database more: at the target only", "table more.t: at the target only"],
        ),
        (
            "ALTER DATABASE d2 COLLATE utf8mb4_bin",
            "ALTER DATABASE d2 COLLATE utf8mb4_0900_ai_ci",
            ["database d2: CREATE DATABASE `d2` /*!40100 DEFAULT CHARACTER SET utf8mb4"],
        ),
        (
            (
                "CREATE VIEW d0.v AS SELECT 1; CREATE FUNCTION d0.f () RETURNS INT NO SQL RETURN 1;"
                "CREATE TRIGGER d0.g BEFORE INSERT ON d0.nokey FOR EACH ROW SET NEW.a = 1"
            ),
            "DROP VIEW d0.v; DROP FUNCTION d0.f; DROP TRIGGER d0.g",
            [
                "parameter d0.f function 0: at the target only",
                "routine d0.f (function): at the target only",
                "trigger d0.g: at the target only",
                "view d0.v: at the target only",
            ],
        ),
        (
            "CREATE USER 'extra'; GRANT SELECT ON d0.* TO 'extra'",
            "DROP USER 'extra'",
            ["user extra@%: at the target only"],
        ),
    ],
)
def test_a_definition_that_differs_is_told(
    pair: Pair, load: MixedLoad, spoil: str, mend: str, expected: list[str]
) -> None:
    assert load.committed
    pair.target.sql(spoil)
    try:
        told = differences(pair.source, pair.target, users=True)
    finally:
        pair.target.sql(mend)
    assert len(told) == len(expected), told
    assert all(line.startswith(part) for line, part in zip(told, expected, strict=True)), told


def test_an_event_must_not_happen_twice(pair: Pair, load: MixedLoad) -> None:
    assert load.committed
    create = "CREATE EVENT d0.later ON SCHEDULE AT '2037-01-01 00:00:00' {} DO SELECT 1"
    pair.source.sql(create.format(""))
    pair.target.sql(create.format("DISABLE ON REPLICA"))
    assert differences(pair.source, pair.target) == []
    pair.target.sql("ALTER EVENT d0.later ENABLE")
    assert differences(pair.source, pair.target) == [
        "event d0.later: enabled at the source and at the target, so it happens twice"
    ]
    for server in (pair.source, pair.target):
        server.sql("DROP EVENT d0.later")


def test_doubles_and_losses_are_told(pair: Pair, load: MixedLoad) -> None:
    first, second = sorted(entry for entry in load.ledger.committed if entry.database == "d0")[:2]
    where = "WHERE worker = {0.worker} AND number = {0.number}"
    with spoilt(
        pair.target,
        "d0.journal",
        f"INSERT INTO d0.journal SELECT * FROM d0.journal {where.format(first)};"
        f"DELETE FROM d0.journal {where.format(second)}; INSERT INTO d0.journal VALUES (9, 9)",
    ):
        assert doubles(pair.target) == [f"{first}: 2 times"]
        assert audit(pair.target, load.ledger) == [
            f"{second}: committed, but not there",
            "transaction 9/9 in d0: there, but rolled back or never run",
            f"{first}: 2 times",
        ]
        ledger = Ledger(load.ledger.committed - {second}, {second, Entry("d0", 9, 9)})
        assert audit(pair.target, ledger) == [f"{first}: 2 times"]


def test_a_load_outlives_its_server_and_knows_what_it_did() -> None:
    with Server() as server:
        load = MixedLoad(server, seed=3, databases=2, tolerant=True)
        load.prepare()
        seen = [0]
        with load.running():
            wait_for_commits(load, 20)
            seen.append(load.committed)
            server.kill()
            server.start()
            wait_for_commits(load, seen[-1] + 20)
        seen.append(load.committed)
        assert seen == sorted(set(seen))
        assert audit(server, load.ledger) == []
        assert sum(load.given_up.values()) >= 1
        load.run(seconds=0.5, rate=60)
        intolerant = MixedLoad(server, seed=4, databases=2)
        server.kill()
        with pytest.raises(pymysql.err.OperationalError):
            intolerant.run(transactions=1)


def wait_for_commits(load: MixedLoad, number: int) -> None:
    deadline = time.monotonic() + 120
    while load.committed < number:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_the_benchmarks_transactions() -> None:
    with Server({"gtid_mode": "OFF"}) as server:
        small.prepare(server)
        filled = small.fill(server, 3000)
        assert filled.transactions == 3000
        assert 800 < filled.binlog_bytes / filled.transactions < 1000
        before = time.time()
        lively = small.live(server, rate=200, seconds=0.5)
        assert lively.transactions == 100
        stamps = [
            stamp
            for name in small.database_names()
            for (stamp,) in server.sql("SELECT stamp FROM ticks", name)
        ]
        assert len(stamps) == 100
        assert all(before < stamp / 1e6 < time.time() for stamp in stamps)
        # A slow start is made up for, so the first and the last may be close to each other.
        assert time.time() - before > 0.4
        assert 20_000_000 < small.large(server, 20_000_000).binlog_bytes * 1.05 < 22_000_000

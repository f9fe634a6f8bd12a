"""Databases of the source that `rewrite_db` makes one: what was independent there, is not here."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Thread

import pytest

from tests.filter.beside_a_replica import Rules, Three
from tests.load.equality import unequal
from tests.replica.daemon_process import Value
from tests.servers.mariadb import provide_mariadb
from tests.servers.mysqld import Server
from tests.servers.provision import provide

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]

RULES: Rules = {"rewrite_db": [["a", "x"], ["b", "x"]], "do_db": ["x", "c"]}
"""The database x of the source keeps its name."""
ROUNDS = 60
POLICIES = ["database", "table", "row", "logical_clock", "commit_parent"]
IN_THE_SUITE = ("table", "row", "logical_clock")
LONG = pytest.mark.long


def changes() -> Iterator[str]:
    """Yield changes of the same rows and others by way of three databases, of one session."""
    yield "USE b; SET sql_log_bin = 0"
    yield from (f"INSERT INTO t VALUES ({number}0@, 0)" for number in range(1, ROUNDS + 1))
    yield "SET sql_log_bin = 1"
    for number in range(1, ROUNDS + 1):
        new = f"{number}0@"
        yield f"USE a; INSERT INTO t VALUES ({new}, 1); UPDATE u SET v = {number}1 WHERE i = 1"
        yield f"USE b; DELETE FROM t WHERE i = {new}; UPDATE u SET v = {number}2 WHERE i = 1"
        yield f"USE x; INSERT INTO t VALUES ({new}, 2); UPDATE u SET v = {number}3 WHERE i = 1"
        yield f"USE a; UPDATE t SET v = 3 WHERE i = {new}; UPDATE u SET v = {number}4 WHERE i = 2"
        yield f"USE c; INSERT INTO t VALUES ({new}, 1); UPDATE u SET v = {number} WHERE i = 1"
        yield f"USE b; UPDATE u SET v = {number}5 WHERE i = 2"
    for name in ("a", "b"):
        yield f"USE {name}; CREATE TABLE IF NOT EXISTS n (i INT PRIMARY KEY)"
    yield "INSERT INTO n VALUES (1@); USE a; INSERT INTO n VALUES (2@); DELETE FROM n WHERE i = 2@"
    # The later one takes less time.
    for row in range(1, 5):
        many = ", ".join(f"({row}{number:03}@, 0)" for number in range(500))
        yield f"BEGIN; INSERT INTO u VALUES {many}; UPDATE T1 SET v = 5 WHERE i = {row}; COMMIT"
    for row in range(1, 5):
        yield f"USE b; UPDATE T1 SET v = 6 WHERE i = {row}"


@pytest.fixture(
    scope="module", params=["9.7", "11.8", pytest.param("9.7-to-11.8", marks=pytest.mark.long)]
)
def three(request: pytest.FixtureRequest) -> Iterator[Three]:
    source, _, target = request.param.partition("-to-")
    mysql, mariadb = provide(), provide_mariadb("11.8")
    with Three.running(mysql if source == "9.7" else mariadb, mariadb if target else None) as three:
        three.make([("", "; ".join(changes()))])
        three.replicate_natively(RULES)
        yield three


@pytest.mark.parametrize("mode", ["auto", pytest.param("sql", marks=LONG)])
@pytest.mark.parametrize(
    "policy",
    [pytest.param(name, marks=[] if name in IN_THE_SUITE else LONG) for name in POLICIES],
)
def test_in_the_sources_order(three: Three, policy: str, mode: str, tmp_path: Path) -> None:
    settings: dict[str, Value] = {
        "replica.parallel_type": policy,
        "replica.parallel_workers": 4,
        # By intervals, more of them are in order anyway.
        "replica.batch_groups": 1 if policy == "commit_parent" else 4,
        "target.apply_mode": mode,
    }
    three.replicate_to_target(RULES, tmp_path, settings)
    assert unequal(three.native, three.target) == []


SESSIONS = 4
"""Of each database; they change rows of their own."""


def change_rows(server: Server, database: str, first: int) -> None:
    with closing(server.client(database)) as client, client.cursor() as cursor:
        cursor.execute("SET SESSION binlog_format = ROW")
        low = 1000 * (1 + first)
        for row in range(first, 80, SESSIONS):
            cursor.execute("BEGIN")
            if database == "a":
                # It takes the longer of the two.
                cursor.execute(f"UPDATE u SET v = {row} WHERE i BETWEEN {low} AND {low + 199}")
            cursor.execute(f"UPDATE t SET v = {ord(database)} WHERE i = {100 + row}")
            cursor.execute("COMMIT")


def test_group_commits(tmp_path: Path) -> None:
    """A MariaDB commits together what changes the same rows of the target."""
    with Three.running(provide_mariadb("11.8")) as three:
        three.make([])
        new = ", ".join(f"({100 + row}, 0)" for row in range(80))
        many = ", ".join(
            f"({1000 * (1 + first) + number}, -1)"
            for first in range(SESSIONS)
            for number in range(200)
        )
        three.source.sql(
            f"USE a; INSERT INTO t VALUES {new}; INSERT INTO u VALUES {many};"
            f"SET sql_log_bin = 0; INSERT INTO b.t VALUES {new};"
            f"SET GLOBAL binlog_commit_wait_count = {2 * SESSIONS},"
            " GLOBAL binlog_commit_wait_usec = 20000"
        )
        sessions = [
            Thread(target=change_rows, args=(three.source, database, first))
            for database in ("a", "b")
            for first in range(SESSIONS)
        ]
        for session in sessions:
            session.start()
        for session in sessions:
            session.join()
        three.replicate_natively(RULES)
        settings: dict[str, Value] = {
            "replica.parallel_type": "commit_parent",
            "replica.parallel_workers": 4,
            "replica.batch_groups": 1,
        }
        three.replicate_to_target(RULES, tmp_path, settings)
        assert unequal(three.native, three.target) == []

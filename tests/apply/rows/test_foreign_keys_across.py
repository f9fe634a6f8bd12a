"""Foreign keys from one database to another, of which a MariaDB's binary log does not tell.

A MySQL's tells of them, and from 9.6 on of those within a database as well.
"""

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.fix_families import families
from tests.load.equality import unequal
from tests.operations.checked import told
from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.mysqld import Server
from tests.servers.pair import Pair

pytestmark = [pytest.mark.servers, pytest.mark.timeout(300)]

DEFINITIONS = (
    "CREATE DATABASE a; CREATE DATABASE b; CREATE TABLE a.parent (i INT PRIMARY KEY);"
    " CREATE TABLE a.slow (i INT PRIMARY KEY, v INT); INSERT INTO a.slow VALUES (1, 0)"
)
CHILD = "CREATE TABLE b.child (i INT PRIMARY KEY, p INT REFERENCES a.parent (i))"
LOAD = (
    "BEGIN; UPDATE a.slow SET v = 1; INSERT INTO a.parent VALUES (1); COMMIT;"
    " INSERT INTO b.child VALUES (1, 1); DELETE FROM b.child; DELETE FROM a.parent"
)


@pytest.fixture(scope="module", params=["11.8", "9.7"])
def servers(request: pytest.FixtureRequest) -> Iterator[Pair]:
    with families(request.param, request.param) as pair:
        yield pair


@pytest.fixture
def pair(servers: Pair) -> Pair:
    for server in (servers.target, servers.source):
        server.sql(
            "DROP DATABASE IF EXISTS b; DROP DATABASE IF EXISTS a; DROP DATABASE IF EXISTS c;"
            "DROP DATABASE IF EXISTS mtsd"
        )
    servers.source.reset_binlog()
    return servers


@contextmanager
def row_locked(server: Server, database: str = "a") -> Iterator[None]:
    """Hold up the first transaction of the load."""
    with closing(server.client(database)) as client, client.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("SELECT * FROM slow FOR UPDATE")
        yield
        cursor.execute("ROLLBACK")


@pytest.mark.parametrize(
    ("policy", "known"),
    [("database", True), ("database", False), ("table", False), ("row", True)],
)
def test_a_child_waits_for_its_parent(pair: Pair, policy: str, known: bool, tmp_path: Path) -> None:
    settings: dict[str, Value] = {"replica.parallel_type": policy, "replica.parallel_workers": 4}
    pair.source.sql(f"{DEFINITIONS}; {CHILD}" if known else DEFINITIONS)
    daemon = DaemonProcess(pair.source, pair.target, tmp_path, settings)
    daemon.start()
    daemon.wait_until_caught_up()
    if known:
        # They are read when it starts.
        assert daemon.stop() == 0
    with row_locked(pair.target):
        pair.source.sql(LOAD if known else f"{CHILD}; {LOAD}")
        if known:
            daemon.start()
        daemon.wait_until_running()
        daemon.wait_for_status(lambda status: status.pending_groups >= 2, "nothing is queued")
        time.sleep(0.5)
        assert daemon.running, daemon.last_words()
    daemon.wait_until_caught_up()
    assert daemon.stop() == 0
    assert pair.target.sql("SELECT v FROM a.slow") == [(1,)]


@pytest.mark.parametrize("policy", ["database", "row"])
def test_a_key_that_is_dropped_no_longer_cascades(pair: Pair, policy: str, tmp_path: Path) -> None:
    settings: dict[str, Value] = {"replica.parallel_type": policy, "replica.parallel_workers": 4}
    pair.source.sql(
        f"{DEFINITIONS}; CREATE TABLE b.slow LIKE a.slow; INSERT INTO b.slow VALUES (1, 0);"
        "CREATE TABLE b.child (i INT PRIMARY KEY, p INT,"
        " CONSTRAINT fk FOREIGN KEY (p) REFERENCES a.parent (i) ON DELETE CASCADE);"
        "INSERT INTO a.parent VALUES (1); INSERT INTO b.child VALUES (1, 1)"
    )
    daemon = DaemonProcess(pair.source, pair.target, tmp_path, settings)
    with daemon:
        daemon.wait_until_caught_up()
        # The keys are read when it starts.
        assert daemon.stop() == 0
        daemon.start()
        daemon.wait_until_running()
        with row_locked(pair.target, "b"):
            pair.source.sql(
                "UPDATE b.slow SET v = 1; ALTER TABLE b.child DROP FOREIGN KEY fk;"
                "SET SESSION binlog_format = STATEMENT; DELETE FROM a.parent; DROP TABLE a.parent"
            )
            daemon.wait_for_status(lambda status: status.pending_groups >= 3, "nothing is queued")
            time.sleep(0.5)
            assert daemon.running, daemon.last_words()
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
    assert pair.target.sql("SELECT * FROM b.child") == [(1, 1)]


def test_it_is_foretold(pair: Pair, tmp_path: Path) -> None:
    mariadb = "MariaDB" in str(pair.source.sql("SELECT VERSION()"))
    pair.source.sql(f"{DEFINITIONS}; {CHILD}")
    for policy in ("database", "table"):
        daemon = DaemonProcess(
            pair.source, pair.target, tmp_path, {"replica.parallel_type": policy}
        )
        found = told(tmp_path, daemon.settings).bad
        assert ("foreign-keys" in found) != mariadb
        assert ("foreign-keys-join" in found) == (mariadb and policy == "database")


@pytest.mark.parametrize("policy", ["database", "row"])
def test_within_a_database_they_leave_groups_together(
    pair: Pair, policy: str, tmp_path: Path
) -> None:
    """One database with such keys to and from others changes nothing about this."""
    pair.source.sql(
        f"{DEFINITIONS}; {CHILD}; CREATE DATABASE c; CREATE TABLE c.parent (i INT PRIMARY KEY);"
        "CREATE TABLE c.child (i INT PRIMARY KEY, p INT REFERENCES c.parent (i) ON DELETE CASCADE)"
    )
    settings: dict[str, Value] = {"replica.parallel_type": policy, "replica.parallel_workers": 2}
    daemon = DaemonProcess(pair.source, pair.target, tmp_path, settings)
    with daemon:
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
    pair.source.sql(
        ";".join(
            f"INSERT INTO c.parent VALUES ({i}); INSERT INTO c.child VALUES ({i}, {i})"
            for i in range(200)
        )
    )
    pair.source.sql("DELETE FROM c.parent WHERE i < 100")
    before = len(pair.target.sql("SHOW BINLOG EVENTS"))
    with daemon:
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
    commits = [event for _, _, event, *_ in pair.target.sql("SHOW BINLOG EVENTS")[before:]]
    assert commits.count("Xid") < 100
    assert unequal(pair.source, pair.target) == []

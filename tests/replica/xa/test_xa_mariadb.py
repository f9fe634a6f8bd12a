"""XA transactions where MariaDB is the source, the target, or both."""

import random
from contextlib import closing
from pathlib import Path

import pytest

from mtsd.model.fault_points import FaultPoint
from tests.fix_daemon import SIGKILLED
from tests.fix_families import families
from tests.load.xa import MariadbXaLoad
from tests.replica.daemon_process import DaemonProcess, Value
from tests.replica.xa.xa_of_families import PAIRS, assert_equal, running, survive_kills
from tests.replica.xa.xa_prepared import prepare, prepared

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]
LONG = pytest.mark.long
SMALL: dict[str, Value] = {
    # What is larger is streamed.
    "replica.pending_jobs_size_max": 262_144,
    "replica.batch_bytes": 65_536,
}


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_prepared_and_completed(source: str, target: str, tmp_path: Path) -> None:
    with running(source, target, tmp_path) as (pair, daemon):
        prepare(
            pair.source, "'one'", "INSERT INTO a.t VALUES (10, 1)", "DELETE FROM b.t WHERE id = 1"
        )
        prepare(pair.source, "X'00ff','b',2147483647", "UPDATE a.t SET v = 7 WHERE id = 1")
        prepare(pair.source, "'z',''", "UPDATE b.t SET v = 8 WHERE id = 2")
        pair.source.sql("INSERT INTO a.t VALUES (11, 1); INSERT INTO b.t VALUES (11, 1)")
        assert_equal(pair, daemon)
        assert len(prepared(pair.target)) == 3
        pair.source.sql("XA COMMIT 'one'; XA ROLLBACK X'00ff','b',2147483647")
        pair.source.sql("UPDATE a.t SET v = 9 WHERE id = 1")
        assert_equal(pair, daemon)
        pair.source.sql(
            "XA COMMIT 'z','';"
            "XA START 'one'; INSERT INTO a.t VALUES (20, 1); XA END 'one'; XA PREPARE 'one';"
            "XA COMMIT 'one'; XA START 'one'; INSERT INTO b.t VALUES (20, 1); XA END 'one';"
            "XA COMMIT 'one' ONE PHASE; SET binlog_format = STATEMENT;"
            "XA START 'two'; UPDATE a.t SET v = 4 WHERE id = 2; XA END 'two'; XA PREPARE 'two';"
            "XA COMMIT 'two'; INSERT INTO a.t VALUES (21, 1)"
        )
        assert_equal(pair, daemon)
        assert prepared(pair.target) == set()
        assert daemon.stop() == 0


MANY_ROWS = (
    "INSERT INTO a.l WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i <"
    " 600) SELECT i + {first}, REPEAT('x', 1000) FROM n"
)


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_one_that_is_streamed(source: str, target: str, tmp_path: Path) -> None:
    with running(source, target, tmp_path, SMALL) as (pair, daemon):
        pair.source.sql("CREATE TABLE a.l (id INT PRIMARY KEY, v VARCHAR(1000)) ENGINE=InnoDB")
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        prepare(pair.source, "'big'", MANY_ROWS.format(first=0))
        prepare(pair.source, "'other'", MANY_ROWS.format(first=1000))
        daemon.start(fault=f"{FaultPoint.BEFORE_CHUNK}:4")
        assert daemon.wait() == SIGKILLED
        daemon.start(fault=f"{FaultPoint.AFTER_STATEMENT}:1")
        assert daemon.wait() == SIGKILLED
        daemon.start()
        assert_equal(pair, daemon)
        assert len(prepared(pair.target)) == 2
        pair.source.sql("XA COMMIT 'big'; XA ROLLBACK 'other'")
        assert_equal(pair, daemon)
        assert pair.target.sql("SELECT COUNT(*) FROM a.l") == [(600,)]
        assert daemon.stop() == 0


POINTS = (
    FaultPoint.BEFORE_IN_DOUBT, FaultPoint.AFTER_IN_DOUBT, FaultPoint.BEFORE_STATEMENT,
    FaultPoint.STATEMENT_SENT, FaultPoint.AFTER_STATEMENT, FaultPoint.BEFORE_SETTLED,
    FaultPoint.AFTER_SETTLED,
)  # fmt: skip


@pytest.mark.parametrize(("source", "target"), PAIRS[:1] + PAIRS[2:4])
@pytest.mark.parametrize("kills", [3, pytest.param(4 * len(POINTS), marks=LONG)])
def test_each_happens_once(source: str, target: str, kills: int, tmp_path: Path) -> None:
    chance = random.Random(f"{source} {target} {kills}")
    cases = [(point, number) for point in POINTS for number in range(1, 5)]
    with running(source, target, tmp_path) as (pair, daemon):
        for again, (point, number) in enumerate(chance.sample(cases, kills)):
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
            update = "UPDATE {}.t SET v = v + 1 WHERE id = {}"
            prepare(pair.source, f"'x{again}'", update.format("a", 1), update.format("b", 1))
            prepare(pair.source, f"X'00','y{again}'", update.format("a", 2))
            completions = f"XA COMMIT 'x{again}'; XA ROLLBACK X'00','y{again}'"
            if number > 2:
                # Together with its prepare, a commit would be one ordinary transaction.
                daemon.start()
                daemon.wait_until_caught_up()
                assert daemon.stop() == 0
                pair.source.sql(completions)
            daemon.start(fault=f"{point}:{number if number <= 2 else number - 2}")
            assert daemon.wait() == SIGKILLED, (point, number, daemon.last_words())
            if chance.random() < 0.5:
                pair.target.kill()
                pair.target.start()
            if number <= 2:
                pair.source.sql(completions)
            daemon.start()
            assert_equal(pair, daemon)
            assert prepared(pair.target) == set(), (point, number)


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_what_is_prepared_survives_everything(source: str, target: str, tmp_path: Path) -> None:
    with running(source, target, tmp_path) as (pair, daemon):
        prepare(pair.source, "'x'", "UPDATE a.t SET v = 5 WHERE id = 1")
        prepare(pair.source, "'y','',7", "UPDATE a.t SET v = 6 WHERE id = 2")
        assert_equal(pair, daemon)
        both = prepared(pair.target)
        assert len(both) == 2
        daemon.kill()
        for server in (pair.target, pair.source):
            server.kill()
            server.start()
        assert prepared(pair.target) == both
        daemon.start()
        assert_equal(pair, daemon)
        assert daemon.stop() == 0
        pair.target.restart()
        pair.source.sql("XA COMMIT 'x'; XA ROLLBACK 'y','',7")
        daemon.start()
        assert_equal(pair, daemon)
        assert prepared(pair.target) == set()
        assert daemon.stop() == 0


@pytest.mark.parametrize("kills", [4, pytest.param(80, marks=LONG)])
def test_killed_at_random(kills: int, tmp_path: Path) -> None:
    chance = random.Random(kills)
    with families("10.11", "10.11") as pair:
        load = MariadbXaLoad(pair.source, seed=kills)
        load.prepare()
        daemon = DaemonProcess(pair.source, pair.target, tmp_path, SMALL)
        survive_kills(pair, daemon, load, chance, kills, rate=20)


def test_the_session_of_a_worker_remains(tmp_path: Path) -> None:
    """Its temporary tables outlive what it has prepared; one in a branch is refused."""
    with (
        running("10.11", "10.11", tmp_path) as (pair, daemon),
        closing(pair.source.client()) as client,
        client.cursor() as cursor,
    ):
        for statement in (
            "SET binlog_format = STATEMENT", "CREATE TEMPORARY TABLE a.x (i INT)",
            "INSERT INTO a.x VALUES (41)",
        ):  # fmt: skip
            cursor.execute(statement)
        prepare(pair.source, "'x'", "UPDATE a.t SET v = 5 WHERE id = 1")
        pair.source.sql("XA COMMIT 'x'")
        cursor.execute("INSERT INTO a.t SELECT i, i FROM a.x")
        assert_equal(pair, daemon)
        for statement in (
            "XA START 'y'", "INSERT INTO a.t SELECT i + 1, i FROM a.x", "XA END 'y'",
            "XA PREPARE 'y'",
        ):  # fmt: skip
            cursor.execute(statement)
        assert daemon.wait() == 3
        assert "uses temporary tables of its session" in daemon.last_words()


@pytest.mark.parametrize(
    ("xid", "why"),
    [
        ("'x','',4294967296", "a format id that a MariaDB does not accept"),
        ("'','x'", "an empty global part (gtrid), which a MariaDB does not accept"),
    ],
)
def test_xids_that_mariadb_does_not_accept(xid: str, why: str, tmp_path: Path) -> None:
    with running("9.7", "10.11", tmp_path) as (pair, daemon):
        prepare(pair.source, xid, "UPDATE a.t SET v = 5 WHERE id = 1")
        assert daemon.wait() == 3
        assert why in daemon.last_words()

"""XA transactions whose prepare and commit both wait: applied as part of ordinary transactions."""

from pathlib import Path

import pytest

from mtsd.model.fault_points import FaultPoint
from tests.fix_daemon import SIGKILLED, assert_none_in_doubt
from tests.replica.daemon_process import Value
from tests.replica.xa.xa_of_families import PAIRS, assert_equal, running
from tests.replica.xa.xa_prepared import prepare, prepared
from tests.servers.mysqld import Server

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]

ROUNDS = 4
BY_NAMES = ("database", "table")
POLICIES = ("database", "table", "row", "logical_clock", "commit_parent")
FAMILIES = [pytest.param("9.7", "9.7", id="9.7"), *PAIRS[:1], *PAIRS[2:4]]


def prepares(server: Server) -> int:
    """Return how many transactions a server has ever prepared."""
    rows = server.sql("SHOW GLOBAL STATUS LIKE 'Com_xa_prepare'")
    return int(str(rows[0][1]))


def log_pairs(source: Server, first: int) -> None:
    """Log XA transactions, of which several are prepared at a time, and others in between."""
    for number in range(first, first + ROUNDS):
        for name in ("a", "b"):
            prepare(
                source,
                f"'{name}{number}'",
                f"INSERT INTO {name}.t VALUES ({number}, 1)",
                f"UPDATE {name}.t SET v = v + 1 WHERE id = 1",
            )
        source.sql(
            f"INSERT INTO a.t VALUES ({number + 50}, 2); XA COMMIT 'a{number}';"
            f"UPDATE b.t SET v = 1 - v WHERE id = 2; XA COMMIT 'b{number}'"
        )


@pytest.mark.parametrize(
    ("source", "target"),
    [
        *FAMILIES[:2],
        *(pytest.param(*each.values, id=each.id, marks=pytest.mark.long) for each in FAMILIES[2:]),
    ],
)
def test_nothing_is_prepared_on_the_target(source: str, target: str, tmp_path: Path) -> None:
    with running(source, target, tmp_path) as (pair, daemon):
        for number, policy in enumerate(POLICIES, 1):
            assert daemon.stop() == 0
            before = prepares(pair.target)
            log_pairs(pair.source, 100 * number)
            # The last one has no commit yet.
            prepare(pair.source, "'last'", "UPDATE a.t SET v = v + 1 WHERE id = 3")
            daemon.settings["replica.parallel_type"] = policy
            daemon.start()
            assert_equal(pair, daemon)
            # By the clock, two that depend on each other may be with different workers.
            assert 1 <= prepares(pair.target) - before <= (1 if policy in BY_NAMES else 5), policy
            assert len(prepared(pair.target)) == 1
            pair.source.sql("XA COMMIT 'last'")
            assert_equal(pair, daemon)
            assert prepared(pair.target) == set()
        assert daemon.stop() == 0


@pytest.mark.parametrize("mode", ["binlog", pytest.param("sql", marks=pytest.mark.long)])
def test_killed_at_every_point_of_their_transaction(mode: str, tmp_path: Path) -> None:
    points = (
        (FaultPoint.BEFORE_BUNDLE, FaultPoint.BUNDLE_SENT, FaultPoint.AFTER_BUNDLE)
        if mode == "binlog"
        else (FaultPoint.BEFORE_COMMIT, FaultPoint.COMMIT_SENT, FaultPoint.AFTER_BUNDLE)
    )
    with running("9.7", "9.7", tmp_path, {"target.apply_mode": mode}) as (pair, daemon):
        before = prepares(pair.target)
        for number, point in enumerate(points, 1):
            assert daemon.stop() == 0
            log_pairs(pair.source, 100 * number)
            daemon.start(fault=f"{point}:1")
            assert daemon.wait() == SIGKILLED, (point, daemon.last_words())
            daemon.start()
            assert_equal(pair, daemon)
        assert prepares(pair.target) == before
        assert daemon.stop() == 0


def test_a_failure_concerns_one_group(tmp_path: Path) -> None:
    """All that was in one transaction is replayed, killed in the middle of that, too."""
    with running("9.7", "9.7", tmp_path) as (pair, daemon):
        assert daemon.stop() == 0
        log_pairs(pair.source, 100)
        pair.target.sql("INSERT INTO a.t VALUES (102, 7)")
        for fault in (
            f"{FaultPoint.BEFORE_REPLAY}:1",
            f"{FaultPoint.BEFORE_BUNDLE}:3",
            f"{FaultPoint.AFTER_BUNDLE}:2",
        ):
            daemon.start(fault=fault)
            assert daemon.wait() == SIGKILLED, (fault, daemon.last_words())
        daemon.start()
        assert daemon.wait() == 3
        assert "1062" in daemon.last_words()
        assert "XA PREPARE" in daemon.last_words() or "102" in daemon.last_words()
        assert_none_in_doubt(pair.target)
        assert prepared(pair.target) == set()
        pair.target.sql("DELETE FROM a.t WHERE id = 102")
        daemon.start()
        assert_equal(pair, daemon)
        assert prepared(pair.target) == set()
        assert daemon.stop() == 0


def test_a_table_without_transactions_on_the_target(tmp_path: Path) -> None:
    """Then each group is applied as what it is."""
    with running("9.7", "9.7", tmp_path) as (pair, daemon):
        assert daemon.stop() == 0
        pair.target.sql("ALTER TABLE a.t ENGINE = MyISAM")
        before = prepares(pair.target)
        log_pairs(pair.source, 100)
        daemon.start()
        assert_equal(pair, daemon)
        assert prepares(pair.target) > before
        assert daemon.stop() == 0


@pytest.mark.parametrize("fails", ["rows", "a pair"])
@pytest.mark.parametrize(("policy", "workers"), [("database", 4), ("row", 0)])
def test_a_failure_after_a_prepare_that_was_passed(
    policy: str, workers: int, fails: str, tmp_path: Path
) -> None:
    """What has failed waits for all before it, and so for the prepare that it has passed."""
    settings: dict[str, Value] = {
        "replica.parallel_type": policy,
        "replica.parallel_workers": workers,
    }
    with running("9.7", "9.7", tmp_path, settings) as (pair, daemon):
        assert daemon.stop() == 0
        prepare(pair.source, "'open'", "INSERT INTO a.t VALUES (100, 1)")
        if fails == "rows":
            pair.source.sql("INSERT INTO a.t VALUES (101, 1), (102, 2)")
        else:
            prepare(pair.source, "'x'", "INSERT INTO a.t VALUES (101, 1), (102, 2)")
            pair.source.sql("XA COMMIT 'x'")
        pair.source.sql("INSERT INTO a.t VALUES (103, 3)")
        pair.target.sql("INSERT INTO a.t VALUES (102, 7)")
        daemon.start()
        assert daemon.wait() == 3
        assert "1062" in daemon.last_words()
        assert len(prepared(pair.target)) == 1
        daemon.settings["replica.skip_errors"] = [1062]
        daemon.start()
        daemon.wait_until_caught_up()
        assert pair.target.sql("SELECT id FROM a.t WHERE id > 100 ORDER BY id") == [(102,), (103,)]
        pair.target.sql("INSERT INTO a.t VALUES (101, 1); UPDATE a.t SET v = 2 WHERE id = 102")
        pair.source.sql("XA COMMIT 'open'")
        assert_equal(pair, daemon)
        assert daemon.stop() == 0

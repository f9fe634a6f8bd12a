"""XA transactions that change nothing on the target, though they have on the source."""

from pathlib import Path

import pytest

from tests.fix_daemon import NEEDS_PERSON, command, stopped_at
from tests.fix_servers import wait_for
from tests.operations.skipping import REASON, group_of
from tests.replica.daemon_process import DaemonProcess, Value
from tests.replica.xa.xa_of_families import running
from tests.replica.xa.xa_prepared import prepare, prepared
from tests.servers.pair import Pair

pytestmark = pytest.mark.servers

NOTHING_RECORDED = "SELECT * FROM mtsd.slave_prepared_transaction"


@pytest.mark.parametrize(
    ("source", "target"), [("9.7", "9.7"), ("9.7", "11.8"), ("11.8", "11.8"), ("11.8", "9.7")]
)
def test_rows_that_are_missing_are_no_error(source: str, target: str, tmp_path: Path) -> None:
    """A server forgets what has changed nothing: a MySQL in a restart, a MariaDB at once."""
    settings: dict[str, Value] = {"replica.exec_mode": "idempotent"}
    with running(source, target, tmp_path, settings) as (pair, daemon):
        pair.target.sql("DELETE FROM a.t WHERE id = 3; UPDATE a.t SET v = 9 WHERE id = 1")
        prepare(pair.source, "'x'", "DELETE FROM a.t WHERE id = 3")
        prepare(pair.source, "'y'", "DELETE FROM a.t WHERE id = 2")
        prepare(pair.source, "'z'", "UPDATE a.t SET v = 9 WHERE id = 1")
        daemon.wait_until_caught_up()
        recorded = pair.target.sql(
            "SELECT CAST(Gtrid AS CHAR), Changes FROM mtsd.slave_prepared_transaction ORDER BY 1"
        )
        assert recorded == [("x", 0), ("y", 1), ("z", 0)]
        assert daemon.stop() == 0
        pair.target.restart()
        assert len(prepared(pair.target)) == 1
        daemon.start()
        pair.source.sql("XA COMMIT 'x'; XA COMMIT 'y'; XA COMMIT 'z'")
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        assert pair.target.sql("SELECT * FROM a.t") == [(1, 9)]
        assert pair.target.sql(NOTHING_RECORDED) == []
        assert prepared(pair.target) == set()


@pytest.mark.parametrize("together", [False, True], ids=["one by one", "as a pair"])
@pytest.mark.parametrize("series", ["9.7", "11.8"])
def test_skip_errors_skips_the_completion_with_its_prepare(
    series: str, together: bool, tmp_path: Path
) -> None:
    settings: dict[str, Value] = {"replica.skip_errors": [1062]}
    with running(series, series, tmp_path, settings) as (pair, daemon):
        pair.target.sql("INSERT INTO a.t VALUES (50, 7)")
        if together:
            assert daemon.stop() == 0
        prepare(pair.source, "'x'", "INSERT INTO a.t VALUES (50, 1)")
        if together:
            pair.source.sql("XA COMMIT 'x'")
            daemon.start()
        daemon.wait_until_caught_up()
        if not together:
            pair.source.sql("XA COMMIT 'x'")
        pair.source.sql("INSERT INTO b.t VALUES (50, 1)")
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        assert pair.target.sql("SELECT v FROM a.t WHERE id = 50") == [(7,)]
        assert pair.target.sql("SELECT v FROM b.t WHERE id = 50") == [(1,)]
        assert pair.target.sql(NOTHING_RECORDED) == []
        assert prepared(pair.target) == set()


@pytest.mark.parametrize("series", ["9.7", "11.8"])
def test_the_completion_of_a_skipped_prepare_completes_nobody_elses(
    series: str, tmp_path: Path
) -> None:
    """The error that is skipped may be that somebody has already prepared that xid there."""
    settings: dict[str, Value] = {"replica.skip_errors": [1440]}
    with running(series, series, tmp_path, settings) as (pair, daemon):
        prepare(pair.target, "'x'", "INSERT INTO b.t VALUES (50, 1)")
        prepare(pair.source, "'x'", "INSERT INTO a.t VALUES (50, 1)")
        daemon.wait_until_caught_up()
        pair.source.sql("XA COMMIT 'x'; INSERT INTO b.t VALUES (51, 1)")
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        assert len(prepared(pair.target)) == 1
        assert pair.target.sql(NOTHING_RECORDED) == []


def test_a_reset_asks_nobody_to_complete_what_is_somebody_elses(tmp_path: Path) -> None:
    settings: dict[str, Value] = {"replica.skip_errors": [1440]}
    with running("9.7", "9.7", tmp_path, settings) as (pair, daemon):
        prepare(pair.target, "'x'", "INSERT INTO b.t VALUES (50, 1)")
        for xid in ("'x'", "'y'"):
            prepare(pair.source, xid, f"INSERT INTO a.t VALUES (ORD({xid}), 1)")
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        said = command(daemon, "position", "reset")
        (told,) = (line for line in said.splitlines() if "was prepared" in line)
        assert told.startswith("mtsd: warning: X'79'")


@pytest.mark.parametrize(("series", "gtid"), [("9.7", "off"), ("9.7", "preserve"), ("11.8", "off")])
def test_a_person_skips_a_prepare(series: str, gtid: str, tmp_path: Path) -> None:
    """Its completion needs no second skip, and completes nobody else's."""
    with running(series, series, tmp_path, {"target.gtid": gtid}) as (pair, daemon):
        pair.target.sql("INSERT INTO a.t VALUES (50, 7)")
        prepare(pair.target, "'y'", "INSERT INTO b.t VALUES (60, 1)")
        for xid, key in (("'x'", 50), ("'y'", 51), ("'z'", 52)):
            prepare(pair.source, xid, f"INSERT INTO a.t VALUES ({key}, 1)")
        for _ in range(2):
            assert daemon.wait() == NEEDS_PERSON
            command(daemon, "skip", *group_of(stopped_at(daemon), "group"), *REASON)
            daemon.start()
        daemon.wait_until_caught_up()
        pair.source.sql("XA COMMIT 'y'")
        daemon.wait_until_caught_up()
        # The prepares are before the position that the next start reads from.
        assert daemon.stop() == 0
        daemon.start()
        pair.source.sql("XA COMMIT 'x'; XA COMMIT 'z'; INSERT INTO b.t VALUES (50, 1)")
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        assert pair.target.sql("SELECT v FROM a.t WHERE id >= 50 ORDER BY id") == [(7,), (1,)]
        assert pair.target.sql("SELECT id FROM b.t WHERE id >= 50") == [(50,)]
        assert len(prepared(pair.target)) == 1
        assert pair.target.sql(NOTHING_RECORDED) == []


def skip_a_prepare(pair: Pair, daemon: DaemonProcess) -> None:
    """Let a person skip a prepare whose row the target has already."""
    pair.target.sql("INSERT INTO a.t VALUES (50, 7)")
    prepare(pair.source, "'x'", "INSERT INTO a.t VALUES (50, 1)")
    assert daemon.wait() == NEEDS_PERSON
    command(daemon, "skip", *group_of(stopped_at(daemon), "group"), *REASON)


def test_what_is_left_of_a_skipped_prepare_whose_completion_was_read_before(
    tmp_path: Path,
) -> None:
    """A start reads both groups again, and what it records anew goes with the next checkpoint."""
    settings: dict[str, Value] = {"replica.checkpoint_period": 3600}
    with running("9.7", "9.7", tmp_path, settings) as (pair, daemon):
        skip_a_prepare(pair, daemon)
        pair.source.sql("XA COMMIT 'x'; INSERT INTO b.t VALUES (50, 1)")
        daemon.start()
        wait_for(pair.target, "SELECT COUNT(*) FROM b.t WHERE id = 50", 1)
        daemon.kill()
        daemon.start()
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        assert pair.target.sql("SELECT v FROM a.t WHERE id = 50") == [(7,)]
        assert pair.target.sql(NOTHING_RECORDED) == []


def test_a_skipped_prepare_that_is_read_again_leaves_the_next_one_of_its_xid(
    tmp_path: Path,
) -> None:
    settings: dict[str, Value] = {"replica.checkpoint_period": 3600}
    with running("9.7", "9.7", tmp_path, settings) as (pair, daemon):
        skip_a_prepare(pair, daemon)
        pair.source.sql("XA COMMIT 'x'")
        prepare(pair.source, "'x'", "INSERT INTO a.t VALUES (51, 1)")
        pair.source.sql("INSERT INTO b.t VALUES (50, 1)")
        daemon.start()
        wait_for(pair.target, "SELECT COUNT(*) FROM b.t WHERE id = 50", 1)
        daemon.kill()
        daemon.start()
        pair.source.sql("XA COMMIT 'x'")
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        assert prepared(pair.target) == set()
        assert pair.target.sql("SELECT id, v FROM a.t WHERE id >= 50") == [(50, 7), (51, 1)]
        assert pair.target.sql(NOTHING_RECORDED) == []

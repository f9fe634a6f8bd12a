"""Tables without transactions whose groups share a record: applied once, or a person is asked."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import pytest

from mtsd.apply.position.in_doubt_table import InDoubt
from mtsd.apply.position.position_tables import PositionTables
from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.bytes.framing import FileFramer
from mtsd.binlog.events.query import parse_query
from mtsd.model.fault_points import FaultPoint
from mtsd.model.position import Position
from mtsd.replica.recovery.evidence import RowsOfRun
from tests.fix_daemon import NEEDS_PERSON, SIGKILLED, catch_up, command, stopped_at, stops
from tests.load.compare import differences
from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.mysqld import GTIDS, NO_GTIDS, Options
from tests.servers.pair import Pair

pytestmark = pytest.mark.servers

TARGETS: dict[str, Options] = {
    "GTIDs": GTIDS,
    "binlog": NO_GTIDS,
}
QUERY = EventType.QUERY_EVENT
ONE_WORKER: dict[str, Value] = {"replica.parallel_workers": 1}
MOST = 16
"""Groups of a packet."""


@contextmanager
def begun(target: str, folder: Path) -> Iterator[tuple[Pair, DaemonProcess]]:
    """Begin with tables of three engines on both sides, and everything applied."""
    with Pair(GTIDS, TARGETS[target]) as pair:
        pair.source.sql(
            "CREATE DATABASE a;"
            "CREATE TABLE a.m (id INT PRIMARY KEY, v INT) ENGINE = MyISAM;"
            "CREATE TABLE a.h (id INT PRIMARY KEY, v INT) ENGINE = MEMORY;"
            "CREATE TABLE a.t (id INT PRIMARY KEY, v INT)"
        )
        daemon = DaemonProcess(pair.source, pair.target, folder, ONE_WORKER)
        try:
            catch_up(daemon)
            yield pair, daemon
        finally:
            daemon.close()


def load(pair: Pair, *, at: int = 0, times: int = 6) -> None:
    """Let the source change tables of all three engines, in transactions of one statement."""
    for n in range(at, at + times):
        i = 10 * n
        pair.source.sql(
            f"INSERT INTO a.m VALUES ({i}, 0), ({i + 1}, 0); INSERT INTO a.h VALUES ({i}, 0);"
            f"INSERT INTO a.t VALUES ({i}, 0); UPDATE a.t SET v = v + 1;"
            f"UPDATE a.m SET v = v + 1; DELETE FROM a.m WHERE id = {i + 1};"
            f"UPDATE a.h SET v = v + 1 WHERE id <= {i}"
        )


def assert_equal(pair: Pair) -> None:
    assert differences(pair.source, pair.target) == []
    assert pair.target.sql("SELECT * FROM mtsd.slave_in_doubt") == []


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("point", "passes"),
    [
        (FaultPoint.BEFORE_IN_DOUBT, 1),
        (FaultPoint.BEFORE_BUNDLE, 2),
        (FaultPoint.BUNDLE_SENT, 1),
        (FaultPoint.BUNDLE_SENT, 2),
        (FaultPoint.AFTER_IN_DOUBT, 3),
        (FaultPoint.AFTER_BUNDLE, 1),
        (FaultPoint.AFTER_BUNDLE, 11),
        (FaultPoint.BEFORE_CHECKPOINT, 1),
    ],
)
def test_killed(point: FaultPoint, passes: int, target: str, tmp_path: Path) -> None:
    with begun(target, tmp_path) as (pair, daemon):
        load(pair)
        daemon.start(fault=f"{point}:{passes}")
        assert daemon.wait() == SIGKILLED, daemon.last_words()
        catch_up(daemon)
        load(pair, at=6, times=1)
        catch_up(daemon)
        assert_equal(pair)


@pytest.mark.parametrize("target", TARGETS)
def test_a_row_in_the_way_of_one_of_a_run(target: str, tmp_path: Path) -> None:
    with begun(target, tmp_path) as (pair, daemon):
        pair.target.sql("INSERT INTO a.m VALUES (51, 7), (100, 7)")
        for n in range(10):
            pair.source.sql(f"INSERT INTO a.m VALUES ({10 * n}, 0), ({10 * n + 1}, 0)")
        pair.source.sql("INSERT INTO a.m VALUES (100, 0), (101, 0); INSERT INTO a.t VALUES (1, 1)")
        # The second row is in the way: what is before it remains.
        errors = {stops(daemon) for _ in range(2)}
        (error,) = {each for each in errors if "was interrupted" in each}
        assert all("non-transactional tables" in each for each in errors)
        asked = re.search(r"mtsd resolve --group (\d+) --not-applied", error)
        assert asked is not None, error
        assert pair.target.sql("SELECT COUNT(*) FROM a.m WHERE id < 50") == [(10,)]
        assert pair.target.sql("SELECT COUNT(*) FROM a.m WHERE id BETWEEN 50 AND 99") == [(2,)]
        assert command(daemon, "resolve").count("--applied") <= 1
        pair.target.sql("DELETE FROM a.m WHERE id IN (50, 51)")
        command(daemon, "resolve", "--group", asked[1], "--not-applied")
        # The first row is in the way: nothing remains.
        for _ in range(2):
            error = stops(daemon)
            assert "Duplicate entry '100'" in error
            assert "Unknown error" not in error
        pair.target.sql("DELETE FROM a.m WHERE id = 100")
        catch_up(daemon)
        assert_equal(pair)


@pytest.mark.parametrize("target", TARGETS)
def test_a_half_applied_one_of_a_run_that_is_skipped(target: str, tmp_path: Path) -> None:
    """Those after it have not begun, so nobody is asked about them."""
    with begun(target, tmp_path) as (pair, daemon):
        pair.target.sql("INSERT INTO a.m VALUES (1, 7)")
        for n in range(40):
            pair.source.sql(f"INSERT INTO a.m VALUES ({10 * n}, 0), ({10 * n + 1}, 0)")
        with blocked(pair, daemon, "a.m"):
            daemon.kill()
        assert "was interrupted" in stops(daemon)
        number = str(stopped_at(daemon)["number"])
        command(daemon, "skip", "--group", number, "--reason", "the row is ours")
        catch_up(daemon)
        # The second row was in the way: the first one is there.
        assert pair.target.sql("SELECT COUNT(*), SUM(v) FROM a.m") == [(80, 7)]
        assert pair.target.sql("SELECT * FROM mtsd.slave_in_doubt") == []


def test_a_session_that_ends_before_its_group_has_begun(tmp_path: Path) -> None:
    """What waited for a lock has not begun: the target's binlog tells."""
    with begun("binlog", tmp_path) as (pair, daemon):
        load(pair)
        with blocked(pair, daemon, "a.h"):
            daemon.kill()
            daemon.start()
            time.sleep(1)
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        assert_equal(pair)


@pytest.mark.parametrize("target", TARGETS)
def test_a_target_that_is_killed(target: str, tmp_path: Path) -> None:
    with begun(target, tmp_path) as (pair, daemon):
        pair.target.sql("ALTER TABLE a.m DROP PRIMARY KEY")
        for n in range(40):
            pair.source.sql(f"INSERT INTO a.m VALUES ({n}, 0)")
        with blocked(pair, daemon, "a.m"):
            pass
        while not pair.target.sql("SELECT * FROM a.m LIMIT 1"):
            pass
        pair.target.kill()
        daemon.kill()
        pair.target.start()
        pair.target.sql("REPAIR TABLE a.m")
        daemon.start()
        asked = 0
        while True:
            try:
                daemon.wait_until_caught_up()
                break
            except AssertionError:
                assert daemon.wait() == NEEDS_PERSON, daemon.last_words()
            found = re.search(r"--group (\d+) --not-applied", str(daemon.records()[-1]["error"]))
            assert found is not None, daemon.last_words()
            asked += 1
            (last,) = pair.target.sql("SELECT MAX(id) FROM a.m")[0]
            rows = pair.target.sql("SELECT COUNT(*) FROM a.m")[0][0]
            # Those of the packet before have their rows, and go with the next low-water mark.
            record = pair.target.sql(
                f"SELECT COUNT(*) FROM mtsd.slave_in_doubt WHERE Group_number >= {rows + FIRST}"
            )
            assert record[0][0] <= MOST
            told = "--applied" if is_there(pair, int(found[1])) else "--not-applied"
            assert last is not None
            command(daemon, "resolve", "--group", found[1], told)
            daemon.start()
        assert asked <= 1
        assert daemon.stop() == 0
        assert pair.target.sql("SELECT id, COUNT(*) FROM a.m GROUP BY id ORDER BY id") == [
            (n, 1) for n in range(40)
        ]


def is_there(pair: Pair, number: int) -> bool:
    """Tell whether the group of that number has its row: the groups are numbered as the rows."""
    rows = pair.target.sql("SELECT COUNT(*) FROM a.m")[0][0]
    first = pair.target.sql("SELECT MIN(Group_number) FROM mtsd.slave_in_doubt")[0][0]
    assert first is not None
    return bool(rows > number - FIRST)


FIRST = 5


@pytest.mark.parametrize("target", TARGETS)
def test_a_binlog_tells_which_rows_have_their_place(target: str, tmp_path: Path) -> None:
    with begun(target, tmp_path) as (pair, daemon):
        load(pair)
        catch_up(daemon)
        (log,) = pair.target.datadir.glob(Path(pair.target.binlog_end()[0]).name)
        events = [event[:-4] for event in FileFramer().feed(log.read_bytes())]
    threads = {parse_query(event).thread_id for event in events if event[4] == QUERY}
    unsettled: dict[int, set[int]] = {1: set(), 2: set()}
    for thread, worker in product(threads, unsettled):
        record = InDoubt(
            9, worker, Position("f", 4), "non_transactional", "", "", "a", b"", log.name, 4, thread
        )
        rows = RowsOfRun(PositionTables("mtsd", ""), record)
        for event in events:
            rows.see(event)
        if rows.unsettled:
            unsettled[worker].add(thread)
    assert not unsettled[1]
    assert unsettled[2], "of another worker, none has its place"


@contextmanager
def blocked(pair: Pair, daemon: DaemonProcess, table: str) -> Iterator[None]:
    """Start the daemon, which waits for a lock of a table; that is held during the block."""
    with pair.target.client() as blocker, blocker.cursor() as cursor:
        cursor.execute(f"LOCK TABLES {table} READ")
        daemon.start()
        deadline = time.monotonic() + 120
        while not pair.target.sql(
            "SELECT 1 FROM information_schema.processlist"
            " WHERE state = 'Waiting for table metadata lock'"
        ):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield
        cursor.execute("UNLOCK TABLES")

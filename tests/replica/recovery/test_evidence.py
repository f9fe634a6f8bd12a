"""Killed around a statement that commits by itself, it is applied once, or a person is asked."""

import random
import re
import time
from itertools import product
from pathlib import Path

import pytest

from mtsd.model.fault_points import FaultPoint
from tests.fix_daemon import SIGKILLED, catch_up, command, servers_and_daemon
from tests.fix_kills import SMALL
from tests.fix_servers import wait_for
from tests.load.compare import differences
from tests.replica.daemon_process import DaemonProcess
from tests.servers.mysqld import GTIDS, NO_GTIDS, Options
from tests.servers.pair import Pair

pytestmark = pytest.mark.servers

TARGETS: dict[str, Options] = {
    "GTIDs": GTIDS,
    "GTIDs, no binlog": {**GTIDS, "skip_log_bin": None},
    "binlog": NO_GTIDS,
    "compressed binlog": {**NO_GTIDS, "binlog_transaction_compression": "ON"},
}
KINDS = [
    kind if kind in {"GTIDs", "binlog"} else pytest.param(kind, marks=pytest.mark.long)
    for kind in TARGETS
]
NEITHER: Options = {**NO_GTIDS, "skip_log_bin": None}
POINTS = (
    FaultPoint.BEFORE_IN_DOUBT, FaultPoint.AFTER_IN_DOUBT, FaultPoint.BEFORE_STATEMENT,
    FaultPoint.STATEMENT_SENT, FaultPoint.AFTER_STATEMENT, FaultPoint.BEFORE_SETTLED,
    FaultPoint.AFTER_SETTLED,
)  # fmt: skip
STATEMENTS = (
    "CREATE TABLE a.made (i INT)",
    # A second time, it would add another index.
    "ALTER TABLE a.t ADD INDEX (v)",
    "CREATE TABLE a.copy SELECT * FROM a.t",
    "ALTER TABLE a.t MODIFY v VARCHAR(20), ADD INDEX (v, id)",
    "DROP TABLE a.made",
    "CREATE OR REPLACE VIEW a.seen AS SELECT id FROM a.t",
    "TRUNCATE TABLE a.copy",
)
CASES = [
    case
    for case in product(POINTS, range(len(STATEMENTS)))
    # What the last two of them settle may be settled by a checkpoint.
    if case[0] is not FaultPoint.AFTER_SETTLED or case[1] < len(STATEMENTS) - 2
]


def make_anew(pair: Pair, daemon: DaemonProcess) -> None:
    """Begin with a table and some rows on both sides, and everything applied."""
    pair.source.sql(
        "DROP DATABASE IF EXISTS a; CREATE DATABASE a;"
        "CREATE TABLE a.t (id INT PRIMARY KEY, v VARCHAR(10));"
        "INSERT INTO a.t VALUES (1, 'x'), (2, 'y')"
    )
    catch_up(daemon)


def kill_at(pair: Pair, daemon: DaemonProcess, point: FaultPoint, number: int) -> None:
    """Run all statements on the source; the daemon dies at a point of one, and the target too."""
    for statement in STATEMENTS:
        pair.source.sql(statement)
    daemon.start(fault=f"{point}:{number + 1}")
    assert daemon.wait() == SIGKILLED, daemon.last_words()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cases", [3, pytest.param(len(CASES), marks=pytest.mark.long)])
@pytest.mark.timeout(900)
def test_applied_once(kind: str, cases: int, tmp_path: Path) -> None:
    chance = random.Random(f"{kind} {cases}")
    with servers_and_daemon(TARGETS[kind], tmp_path) as (pair, daemon):
        for point, number in chance.sample(CASES, cases):
            make_anew(pair, daemon)
            kill_at(pair, daemon, point, number)
            if chance.random() < 0.4:
                pair.target.kill()
                pair.target.start()
            catch_up(daemon)
            assert differences(pair.source, pair.target) == [], (point, STATEMENTS[number])


@pytest.mark.parametrize("kind", ["GTIDs", "binlog"])
def test_a_settlement_that_is_owed(kind: str, tmp_path: Path) -> None:
    with servers_and_daemon(TARGETS[kind], tmp_path) as (pair, daemon):
        make_anew(pair, daemon)
        records = "SELECT COUNT(*) FROM mtsd.slave_in_doubt"
        # No low-water mark says that it is done.
        daemon.settings["replica.checkpoint_period"] = 60
        pair.source.sql("ALTER TABLE a.t ADD INDEX (v); INSERT INTO a.t VALUES (3, 'z')")
        daemon.start(fault=f"{FaultPoint.AFTER_BUNDLE}:1")
        assert daemon.wait() == SIGKILLED
        # The row of the worker came with the rows; the record says nothing more.
        assert pair.target.sql(records) == [(1,)]
        assert "no group is in doubt" in command(daemon, "resolve")
        pair.source.sql("ALTER TABLE a.t ADD INDEX (v, id)")
        daemon.start()
        daemon.wait_until_caught_up()
        assert daemon.running
        # It is settled by itself where nothing comes.
        wait_for(pair.target, records, 0)
        daemon.kill()
        # Nor does the worker use its session while a large transaction is streamed there.
        pair.source.sql(
            "ALTER TABLE a.t MODIFY v VARCHAR(300); SET cte_max_recursion_depth = 5000;"
            "INSERT INTO a.t WITH RECURSIVE n(i) AS (SELECT 10 UNION ALL SELECT i + 1 FROM n"
            " WHERE i < 4000) SELECT i, REPEAT('x', 250) FROM n"
        )
        daemon.settings.update(SMALL)
        daemon.settings.update({"replica.checkpoint_period": 60, "replica.parallel_workers": 1})
        daemon.start(fault=f"{FaultPoint.BEFORE_CHUNK}:3:waits")
        while not (daemon.folder / "there").exists():
            assert daemon.running, daemon.last_words()
            time.sleep(0.02)
        time.sleep(1.5)
        daemon.kill()
        assert pair.target.sql("SELECT COUNT(*) FROM a.t WHERE id >= 10") == [(0,)]
        catch_up(daemon)
        assert differences(pair.source, pair.target) == []


@pytest.mark.parametrize("cases", [3, pytest.param(len(CASES), marks=pytest.mark.long)])
@pytest.mark.timeout(900)
def test_a_person_is_asked_where_there_is_no_evidence(cases: int, tmp_path: Path) -> None:
    chance = random.Random(cases)
    asked = 0
    with servers_and_daemon(NEITHER, tmp_path) as (pair, daemon):
        # One that can only be asked about is always among them.
        known = [(FaultPoint.AFTER_STATEMENT, 1), (FaultPoint.AFTER_IN_DOUBT, 3)]
        for point, number in known + chance.sample(CASES, cases - len(known)):
            make_anew(pair, daemon)
            kill_at(pair, daemon, point, number)
            daemon.start()
            try:
                daemon.wait_until_caught_up()
            except AssertionError:
                assert daemon.wait() == 3
                asked += 1
                answer(pair, daemon)
                catch_up(daemon)
            else:
                assert daemon.stop() == 0
            assert differences(pair.source, pair.target) == [], (point, STATEMENTS[number])
    assert asked >= 2


def answer(pair: Pair, daemon: DaemonProcess) -> None:
    """Look at the target, and say what is there, as the daemon's last error asks for."""
    said = str(daemon.records()[-1]["error"])
    assert "neither GTIDs nor a binlog" in said
    found = re.search(r"mtsd resolve --group (\d+) --applied", said)
    assert found is not None
    assert f"group {found[1]}: ddl" in command(daemon, "resolve")
    if "VIEW `a`.`seen`" in said:
        applied = bool(pair.target.sql("SHOW TABLES FROM a LIKE 'seen'"))
    else:
        statement = next(text for text in STATEMENTS if text in said)
        assert statement.startswith("ALTER TABLE")
        index = "v" if "MODIFY" not in statement else "v_2"
        applied = bool(pair.target.sql(f"SHOW INDEX FROM a.t WHERE Key_name = '{index}'"))
    command(daemon, "resolve", "--group", found[1], "--applied" if applied else "--not-applied")
    assert "said to be" in command(daemon, "resolve")


@pytest.mark.parametrize(
    ("point", "target_too"),
    [
        (FaultPoint.AFTER_IN_DOUBT, False),
        (FaultPoint.AFTER_IN_DOUBT, True),
        (FaultPoint.AFTER_BUNDLE, False),
    ],
)
def test_a_table_without_transactions(point: FaultPoint, target_too: bool, tmp_path: Path) -> None:
    """A person is asked where the target, too, was killed: it logs what it has begun at its end."""
    with servers_and_daemon(GTIDS, tmp_path) as (pair, daemon):
        make_anew(pair, daemon)
        pair.source.sql("CREATE TABLE a.plain (id INT PRIMARY KEY) ENGINE=MyISAM")
        catch_up(daemon)
        pair.source.sql("INSERT INTO a.plain VALUES (1), (2)")
        blocker = pair.target.client()
        if target_too:
            # Otherwise it goes on by itself to the end of what it was sent.
            with blocker.cursor() as cursor:
                cursor.execute("LOCK TABLES a.plain READ")
        daemon.start(fault=f"{point}:1")
        assert daemon.wait() == SIGKILLED
        if target_too:
            pair.target.kill()
            pair.target.start()
        blocker.close()
        daemon.start()
        if target_too:
            assert daemon.wait() == 3
            said = str(daemon.records()[-1]["error"])
            assert "non-transactional tables" in said
            found = re.search(r"--group (\d+)", said)
            assert found is not None
            command(daemon, "resolve", "--group", found[1], "--not-applied")
            daemon.start()
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        assert differences(pair.source, pair.target) == []


def test_resolve_is_refused_where_it_cannot_be_meant(tmp_path: Path) -> None:
    with servers_and_daemon({}, tmp_path) as (pair, daemon):
        make_anew(pair, daemon)
        assert "no group is in doubt" in command(daemon, "resolve")
        said = command(daemon, "resolve", "--group", "3", "--applied", status=3)
        assert "group 3 is not in doubt; in doubt: none" in said
        command(daemon, "resolve", "--group", "3", status=2)
        command(daemon, "resolve", "--applied", status=2)


@pytest.mark.parametrize("then", ["", "FLUSH BINARY LOGS"])
def test_another_binlog_under_the_same_name_tells_nothing(then: str, tmp_path: Path) -> None:
    """The target was restored, or is a server that has replicated the former one."""
    with servers_and_daemon(NO_GTIDS, tmp_path) as (pair, daemon):
        make_anew(pair, daemon)
        pair.target.sql("FLUSH BINARY LOGS")
        kill_at(pair, daemon, FaultPoint.AFTER_STATEMENT, 1)
        ((log,),) = pair.target.sql("SELECT Target_log_name FROM mtsd.slave_in_doubt")
        pair.target.reset_binlog()
        if then:
            # Here is the place that the record names: the first one of a file.
            pair.target.sql(then)
            pair.target.sql("UPDATE mtsd.slave_in_doubt SET Target_log_pos = 158")
            assert pair.target.binlog_end()[0] == log
        else:
            pair.target.sql("UPDATE mtsd.slave_in_doubt SET Target_log_name = 'binlog.000001'")
        daemon.start()
        assert daemon.wait(20) == 3
        assert "another binlog now at binlog.00000" in str(daemon.records()[-1]["error"])
        ((number,),) = pair.target.sql("SELECT Group_number FROM mtsd.slave_in_doubt")
        command(daemon, "resolve", "--group", str(number), "--applied")
        catch_up(daemon)
        assert differences(pair.source, pair.target) == []

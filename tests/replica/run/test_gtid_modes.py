"""What the target learns of the source's GTIDs: mirrored, preserved, or nothing."""

import random
import time
from contextlib import closing
from pathlib import Path
from threading import Event, Thread

import pytest

from mtsd.model.fault_points import FaultPoint
from mtsd.model.gtid import GtidSet
from tests.fix_daemon import SIGKILLED, command
from tests.fix_loads import MIX
from tests.load.compare import differences
from tests.load.journal import audit
from tests.load.mixed import Mix, MixedLoad
from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.mysqld import GTIDS, NO_GTIDS, Options, Server
from tests.servers.pair import Pair

pytestmark = pytest.mark.servers

SETTINGS: dict[str, Value] = {
    "replica.pending_jobs_size_max": 262_144,
    "replica.batch_bytes": 65_536,
    "replica.checkpoint_period": 0.1,
}


def executed(server: Server) -> GtidSet:
    return GtidSet.parse(str(server.sql("SELECT @@global.gtid_executed")[0][0]))


def of_mode(mode: str) -> dict[str, Value]:
    """Return settings with the mode; mirroring is only for targets that write no binlog."""
    return {**SETTINGS, "target.gtid": mode, "target.binary_log": mode == "preserve"}


@pytest.mark.parametrize(
    ("mode", "target"),
    [
        ("auto", {**GTIDS, "skip_log_bin": None}),
        pytest.param("mirror", GTIDS, marks=pytest.mark.long),
        ("preserve", GTIDS),
    ],
)
def test_the_target_has_executed_what_the_source_has(
    mode: str, target: Options, tmp_path: Path
) -> None:
    chance = random.Random(mode)
    with Pair(GTIDS, target) as pair:
        settings = of_mode(mode)
        daemon = DaemonProcess(pair.source, pair.target, tmp_path, settings)
        load = MixedLoad(pair.source, seed=3, databases=2, mix=MIX)
        load.prepare()
        pair.source.sql(
            "SET gtid_next = '3e11fa47-71ca-11e1-9e33-c80aa9429562:7'; BEGIN; COMMIT;"
            "SET gtid_next = 'AUTOMATIC:blue'; CREATE DATABASE tagged;"
            "CREATE TABLE tagged.t (i INT);"
            "INSERT INTO tagged.t VALUES (1); INSERT INTO tagged.t VALUES (2)"
        )
        stopping = Event()
        thread = Thread(target=lambda: load.run(until=stopping, rate=30))
        thread.start()
        try:
            for _ in range(3):
                daemon.start()
                time.sleep(0.8 + chance.random())
                daemon.kill()
                if chance.random() < 0.3:
                    pair.target.kill()
                    pair.target.start()
        finally:
            stopping.set()
            thread.join()
        daemon.start()
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0, daemon.last_words()
        assert audit(pair.target, load.ledger) == []
        assert differences(pair.source, pair.target) == []
        missing = executed(pair.source).minus(executed(pair.target))
        assert not missing, missing
        daemon.close()


@pytest.mark.parametrize("mode", ["auto", "preserve"])
@pytest.mark.parametrize("point", [FaultPoint.BEFORE_CHECKPOINT, FaultPoint.AFTER_CHECKPOINT])
def test_a_kill_at_a_checkpoint_leaves_out_no_empty_group(
    mode: str, point: FaultPoint, tmp_path: Path
) -> None:
    target = GTIDS if mode == "preserve" else {**GTIDS, "skip_log_bin": None}
    with Pair(GTIDS, target) as pair:
        daemon = DaemonProcess(pair.source, pair.target, tmp_path, of_mode(mode))
        daemon.start()
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        pair.source.sql(
            "SET gtid_next = '3e11fa47-71ca-11e1-9e33-c80aa9429562:7'; BEGIN; COMMIT;"
            "SET gtid_next = 'AUTOMATIC'; CREATE DATABASE a"
        )
        daemon.start(fault=f"{point}:1")
        assert daemon.wait() == SIGKILLED
        daemon.start()
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        missing = executed(pair.source).minus(executed(pair.target))
        assert not missing, missing


def test_off_tells_nothing(tmp_path: Path) -> None:
    with Pair(GTIDS, GTIDS) as pair:
        pair.source.sql("CREATE DATABASE a; CREATE TABLE a.t (i INT); INSERT INTO a.t VALUES (1)")
        with DaemonProcess(pair.source, pair.target, tmp_path) as daemon:
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
        both = executed(pair.source).minus(executed(pair.source).minus(executed(pair.target)))
        assert not both


@pytest.mark.parametrize("mode", ["preserve", "mirror"])
def test_lost_position_tables(mode: str, tmp_path: Path) -> None:
    with Pair(GTIDS, GTIDS) as pair:
        pair.source.sql(
            "CREATE DATABASE a; CREATE TABLE a.t (i INT); INSERT INTO a.t VALUES (1);"
            "INSERT INTO a.t VALUES (2)"
        )
        settings = of_mode(mode)
        daemon = DaemonProcess(pair.source, pair.target, tmp_path, settings)
        daemon.start()
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        pair.target.sql("DROP DATABASE mtsd")
        pair.source.sql("INSERT INTO a.t VALUES (3)")
        daemon.start()
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        assert pair.target.sql("SELECT i FROM a.t ORDER BY i") == [(1,), (2,), (3,)]
        pair.target.sql("DROP DATABASE mtsd")
        daemon.settings["source.start"] = ""
        daemon.start()
        assert daemon.wait() == 3
        assert "Say where to begin" in str(daemon.records()[-1]["error"])


def test_preserved_groups_that_the_target_has_already(tmp_path: Path) -> None:
    with Pair(GTIDS, GTIDS) as pair:
        pair.source.sql("CREATE DATABASE a; CREATE TABLE a.t (i INT); INSERT INTO a.t VALUES (1)")
        settings = {**SETTINGS, "target.gtid": "preserve"}
        daemon = DaemonProcess(pair.source, pair.target, tmp_path, settings)
        daemon.start()
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        ((gtids,),) = pair.source.sql("SELECT @@global.gtid_executed")
        uuid, _, last = str(gtids).partition(":1-")
        pair.source.sql("INSERT INTO a.t VALUES (2); INSERT INTO a.t VALUES (3)")
        pair.target.sql(
            f"SET gtid_next = '{uuid}:{int(last) + 1}'; INSERT INTO a.t VALUES (2);"
            "SET gtid_next = 'AUTOMATIC'"
        )
        daemon.start()
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        assert pair.target.sql("SELECT i FROM a.t ORDER BY i") == [(1,), (2,), (3,)]
        daemon.close()


@pytest.mark.parametrize("apply_mode", ["binlog", "sql"])
@pytest.mark.parametrize("of_rows", [True, False])
def test_a_preserved_group_that_somebody_executes_meanwhile(
    apply_mode: str, of_rows: bool, tmp_path: Path
) -> None:
    """The target skips it, as it would its own replica's: and so does the daemon, and goes on."""
    settings: dict[str, Value] = {
        **SETTINGS,
        "target.gtid": "preserve",
        "target.apply_mode": apply_mode,
    }
    with Pair(GTIDS, GTIDS) as pair:
        pair.source.sql("CREATE DATABASE a; CREATE TABLE a.t (i INT); INSERT INTO a.t VALUES (1)")
        with DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
            daemon.wait_until_caught_up()
            ((gtids,),) = pair.source.sql("SELECT @@global.gtid_executed")
            uuid, _, last = str(gtids).partition(":1-")
            with closing(pair.target.client()) as other, other.cursor() as cursor:
                cursor.execute(f"SET gtid_next = '{uuid}:{int(last) + 1}'")
                cursor.execute("BEGIN")
                logged = "ROW" if of_rows else "STATEMENT"
                pair.source.sql(
                    f"SET binlog_format = {logged}; INSERT INTO a.t VALUES (2);"
                    "SET binlog_format = ROW; INSERT INTO a.t VALUES (3)"
                )
                daemon.wait_for_status(
                    lambda now: any(each.target_wait for each in now.workers), "nothing waits"
                )
                cursor.execute("INSERT INTO a.t VALUES (20)")
                cursor.execute("COMMIT")
            pair.source.sql("INSERT INTO a.t VALUES (4)")
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
        assert pair.target.sql("SELECT i FROM a.t ORDER BY i") == [(1,), (3,), (4,), (20,)]


@pytest.mark.parametrize("target", [GTIDS, {**GTIDS, "log_replica_updates": "OFF"}])
def test_nothing_is_mirrored_to_a_target_that_writes_a_binlog(
    target: Options, tmp_path: Path
) -> None:
    with Pair(GTIDS, target) as pair:
        pair.source.sql("CREATE DATABASE a")
        with DaemonProcess(pair.source, pair.target, tmp_path, {"target.gtid": "mirror"}) as daemon:
            assert daemon.wait() == 3
        said = str(daemon.records()[-1]["error"])
        assert '[target] gtid is "mirror", but the target writes what mtsd applies to' in said
        assert "set [target] binary_log = false" in said.lower()
        assert pair.target.sql("SHOW DATABASES LIKE 'mtsd'") == []
        assert not executed(pair.source).intersection(executed(pair.target))


@pytest.mark.parametrize("mode", ["mirror", "preserve"])
def test_a_target_without_gtids_cannot_learn_any(mode: str, tmp_path: Path) -> None:
    with Pair(GTIDS, NO_GTIDS) as pair:
        with DaemonProcess(pair.source, pair.target, tmp_path, {"target.gtid": mode}) as daemon:
            assert daemon.wait() == 3
        said = str(daemon.records()[-1]["error"])
        assert f'[target] gtid is "{mode}", but the target\'s gtid_mode is not ON' in said


def test_a_group_without_a_gtid_cannot_keep_it(tmp_path: Path) -> None:
    with Pair(NO_GTIDS, GTIDS) as pair:
        pair.source.sql("CREATE DATABASE a")
        settings = {"target.gtid": "preserve"}
        with DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
            assert daemon.wait() == 3
        assert "group 1, ending at binlog.000001" in str(daemon.records()[-1]["error"])
        assert "has no GTID to be applied under" in str(daemon.records()[-1]["error"])


def test_a_streamed_group_without_a_gtid_cannot_keep_it_either(tmp_path: Path) -> None:
    with Pair(NO_GTIDS, GTIDS) as pair:
        pair.source.sql("CREATE DATABASE a; CREATE TABLE a.t (c LONGBLOB)")
        file, offset = pair.source.sql("SHOW BINARY LOG STATUS")[0][:2]
        pair.source.sql("INSERT INTO a.t VALUES (REPEAT('x', 1000000))")
        pair.target.sql("CREATE DATABASE a; CREATE TABLE a.t (c LONGBLOB)")
        settings = {**SETTINGS, "target.gtid": "preserve", "source.start": f"{file}:{offset}"}
        with DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
            assert daemon.wait() == 3
        said = str(daemon.records()[-1]["error"])
        assert said.startswith("group 1, streamed because of its size, has no GTID")
        assert pair.target.sql("SELECT COUNT(*) FROM a.t") == [(0,)]


def test_earliest_says_what_a_mirroring_daemon_left_in_gtid_purged(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    with Pair(GTIDS, GTIDS) as pair, Server(GTIDS) as last:
        pair.source.sql("CREATE DATABASE a")
        with DaemonProcess(pair.source, pair.target, first, of_mode("mirror")) as daemon:
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
        ((uuid,),) = pair.source.sql("SELECT @@server_uuid")
        with DaemonProcess(pair.target, last, second) as behind:
            assert behind.wait() == 3
            said = str(behind.records()[-1]["error"])
            assert f"gtid_purged contains {uuid}:1: transactions that are not in" in said
            assert "because a restore or a replica that mirrors GTIDs has added them" in said
            assert "their changes cannot be replicated" in said
            behind.settings["source.allow_partial_history"] = True
            behind.start()
            behind.wait_until_running()
            assert behind.stop() == 0


SWITCHES = ("OFF_PERMISSIVE", "ON_PERMISSIVE", "ON", "ON_PERMISSIVE", "OFF_PERMISSIVE", "OFF")


@pytest.mark.parametrize(
    "target",
    [pytest.param(GTIDS, id="gtids"), pytest.param(NO_GTIDS, id="none", marks=pytest.mark.long)],
)
def test_the_source_is_switched_to_gtids_and_back(target: Options, tmp_path: Path) -> None:
    chance = random.Random(len(target))
    source: Options = {**NO_GTIDS, "enforce_gtid_consistency": "ON"}
    with Pair(source, target) as pair:
        daemon = DaemonProcess(pair.source, pair.target, tmp_path, SETTINGS)
        load = MixedLoad(
            pair.source, seed=5, databases=2, mix=Mix(statement_format=True, over_max=False)
        )
        load.prepare()
        stopping = Event()
        thread = Thread(target=lambda: load.run(until=stopping, rate=30))
        thread.start()
        try:
            for mode in SWITCHES:
                daemon.start()
                if mode == "ON":
                    # What has no GTID has to be read before, also again after a kill.
                    daemon.wait_until_caught_up()
                pair.source.sql(f"SET GLOBAL gtid_mode = {mode}")
                daemon.wait_until_caught_up()
                time.sleep(chance.random())
                if chance.random() < 0.7:
                    daemon.kill()
                else:
                    assert daemon.stop() == 0
        finally:
            stopping.set()
            thread.join()
        daemon.start()
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        assert differences(pair.source, pair.target) == []
        assert audit(pair.target, load.ledger) == []


def test_the_target_is_switched_from_gtids(tmp_path: Path) -> None:
    """Open sessions learn of it when they set the next GTID."""
    with Pair(GTIDS, GTIDS) as pair, DaemonProcess(pair.source, pair.target, tmp_path) as daemon:
        pair.source.sql("CREATE DATABASE a; CREATE TABLE a.t (i INT)")
        daemon.wait_until_caught_up()
        for mode in ("ON_PERMISSIVE", "OFF_PERMISSIVE", "OFF"):
            pair.target.sql(f"SET GLOBAL gtid_mode = {mode}")
        pair.source.sql("ALTER TABLE a.t ADD COLUMN v INT; INSERT INTO a.t VALUES (1, 2)")
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        assert pair.target.sql("SELECT i, v FROM a.t") == [(1, 2)]


@pytest.mark.parametrize("by", ["start", "set"])
def test_preserved_from_a_position_the_history_is_not_made_up(by: str, tmp_path: Path) -> None:
    """Only what the channel passes is told the target, also once its set of GTIDs is known."""
    with Pair(GTIDS, GTIDS) as pair:
        create = "CREATE DATABASE a; CREATE TABLE a.t (i INT);"
        pair.source.sql(f"{create} INSERT INTO a.t VALUES (1); FLUSH BINARY LOGS")
        pair.source.sql("INSERT INTO a.t VALUES (2)")
        file, offset, history = pair.source.binlog_end()
        pair.target.sql(f"{create} INSERT INTO a.t VALUES (1), (2)")
        pair.source.sql(
            "SET gtid_next = '3e11fa47-71ca-11e1-9e33-c80aa9429562:7'; BEGIN; COMMIT;"
            "SET gtid_next = 'AUTOMATIC'; INSERT INTO a.t VALUES (3); FLUSH BINARY LOGS;"
            "INSERT INTO a.t VALUES (4)"
        )
        place = f"{file}:{offset}"
        settings: dict[str, Value] = {
            "target.gtid": "preserve",
            "source.start": place if by == "start" else "latest",
        }
        daemon = DaemonProcess(pair.source, pair.target, tmp_path, settings)
        if by == "set":
            daemon.configure()
            command(daemon, "position", "set", place)
        daemon.start()
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        assert pair.target.sql("SELECT i FROM a.t ORDER BY i") == [(1,), (2,), (3,), (4,)]
        new = executed(pair.source).minus(GtidSet.parse(history))
        assert executed(pair.target).intersection(executed(pair.source)) == new
        daemon.close()

"""`mtsd skip`: past the one group that stopped the replica, and past nothing else."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mtsd.model.fault_points import FaultPoint
from mtsd.model.gtid import GtidSet
from tests.fix_daemon import (
    NEEDS_PERSON,
    SIGKILLED,
    assert_none_in_doubt,
    catch_up,
    command,
    json_status,
    stopped_at,
    stops,
)
from tests.fix_servers import wait_for
from tests.operations.checked import told
from tests.operations.skipping import BEGINNING, REASON, begun, conflict, group_of, passed
from tests.replica.daemon_process import Value
from tests.servers.locks import lock_of
from tests.servers.mysqld import GTIDS, NO_GTIDS, Server
from tests.servers.pair import Pair

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def with_gtids() -> Iterator[Pair]:
    with Pair(GTIDS, GTIDS) as pair:
        yield pair


@pytest.fixture(scope="module")
def without_gtids() -> Iterator[Pair]:
    with Pair(NO_GTIDS, {**NO_GTIDS, "skip_log_bin": None}) as pair:
        yield pair


@pytest.fixture
def pair(with_gtids: Pair) -> Pair:
    return with_gtids


LONG = pytest.mark.long


@pytest.mark.parametrize("by", ["group", pytest.param("gtid", marks=LONG)])
def test_rows_that_later_groups_have_overtaken(pair: Pair, by: str, tmp_path: Path) -> None:
    daemon = begun(pair, tmp_path)
    status = conflict(pair, daemon)
    error = str(daemon.records()[-1]["error"])
    printed = f"mtsd skip --group {status['number']} --reason TEXT --config {daemon.config}"
    assert f"`{printed}` skips it" in error
    assert status["error"] == error
    assert (status["kind"], status["databases"]) == ("rows", "a")
    assert status["later_applied"] is True
    shown = command(daemon, "status", status=3)
    assert "stopped at: group" in shown
    assert "later groups applied" in shown
    assert f"stopped at {status['time']} by group {status['number']}," in command(daemon, "skip")
    # What the next start would stop with is foretold, as long as it has to apply the group.
    said_before = told(tmp_path, daemon.settings)
    assert said_before.status == NEEDS_PERSON
    assert error in said_before.bad["stopped-group"]
    which = group_of(status, by)
    said = command(daemon, "skip", *which, *REASON, "--who", "ann")
    assert said.startswith(f"group {status['number']}, ending at ")
    assert "is skipped: the next start continues after it" in said
    assert json_status(daemon)["stopped_at"] is None
    assert "stopped-group" not in told(tmp_path, daemon.settings).bad
    daemon.settings["replica.parallel_workers"] = 1
    catch_up(daemon)
    passed(pair)
    again = command(daemon, "skip", *which, *REASON)
    assert "was already skipped by ann at " in again
    assert pair.target.sql(
        "SELECT Channel_name, Group_number, `Databases`, Kind, Error_number, Message, Who, Why"
        " FROM mtsd.slave_skipped_group"
    ) == [("", status["number"], "a", "rows", 1062, error, "ann", REASON[1])]
    (skipped,) = json_status(daemon)["skipped"]
    assert (skipped["who"], skipped["why"]) == ("ann", REASON[1])
    assert "skipped: group" in command(daemon, "status", status=4)
    assert f"by ann: group {status['number']}," in command(daemon, "skip")
    assert any(
        record["event"] == "group not applied: skipped by a person" for record in daemon.records()
    )
    # What is only listed does not need the daemon stopped, and does not wait.
    daemon.start()
    daemon.wait_until_caught_up()
    assert f"by ann: group {status['number']}," in command(daemon, "skip")
    assert command(daemon, "resolve") == "no group is in doubt\n"
    assert command(daemon, "position", "show").startswith("executed  ")
    running = json.loads(command(daemon, "status", "--json"))
    assert (running["state"], running["skipped"]) == ("running", [skipped])
    assert daemon.stop() == 0


def test_without_gtids(without_gtids: Pair, tmp_path: Path) -> None:
    daemon = begun(without_gtids, tmp_path)
    status = conflict(without_gtids, daemon)
    command(daemon, "skip", *group_of(status, "position"), *REASON)
    catch_up(daemon)
    passed(without_gtids)
    ((who,),) = without_gtids.target.sql("SELECT Who FROM mtsd.slave_skipped_group")
    assert "@" in str(who)


@pytest.mark.parametrize("mode", ["mirror", "preserve"])
def test_its_gtid_counts_as_executed(mode: str, tmp_path: Path) -> None:
    target = {**GTIDS, "skip_log_bin": None} if mode == "mirror" else GTIDS
    with Pair(GTIDS, target) as pair:
        daemon = begun(pair, tmp_path, {"target.gtid": mode})
        # Without a GTID of the target's own, which the channel does not know.
        status = conflict(pair, daemon)
        assert "It fails at: insert into a.t, id = 2." in status["error"]
        command(daemon, "skip", *group_of(status, "gtid"), *REASON)
        for point in (FaultPoint.AFTER_RECOVERY_WRITE, FaultPoint.BEFORE_CHECKPOINT):
            daemon.start(fault=f"{point}:1")
            assert daemon.wait() == SIGKILLED
        catch_up(daemon)
        passed(pair)
        ((executed,),) = pair.source.sql("SELECT @@gtid_executed")
        ((known,),) = pair.target.sql("SELECT @@gtid_executed")
        assert GtidSet.parse(str(executed)).issubset(GtidSet.parse(str(known)))


@pytest.mark.parametrize(
    "point",
    [
        pytest.param(FaultPoint.AFTER_FENCING, marks=LONG),
        pytest.param(FaultPoint.AFTER_RECOVERY_WRITE, marks=LONG),
        pytest.param(FaultPoint.AFTER_READ, marks=LONG),
        pytest.param(FaultPoint.BEFORE_BUNDLE, marks=LONG),
        FaultPoint.AFTER_BUNDLE,
        pytest.param(FaultPoint.BEFORE_CHECKPOINT, marks=LONG),
        pytest.param(FaultPoint.AFTER_CHECKPOINT, marks=LONG),
    ],
)
def test_a_start_that_is_killed_behind_it(
    without_gtids: Pair, point: FaultPoint, tmp_path: Path
) -> None:
    daemon = begun(without_gtids, tmp_path)
    command(daemon, "skip", *group_of(conflict(without_gtids, daemon), "group"), *REASON)
    daemon.start(fault=f"{point}:1")
    assert daemon.wait() == SIGKILLED
    catch_up(daemon)
    passed(without_gtids)


def test_a_definition_that_always_fails(pair: Pair, tmp_path: Path) -> None:
    daemon = begun(pair, tmp_path)
    pair.target.sql("DROP TABLE a.t")
    pair.source.sql(
        "INSERT INTO b.t VALUES (1); ALTER TABLE a.t ADD INDEX (v); INSERT INTO b.t VALUES (2);"
        "CREATE TABLE a.u (i INT)"
    )
    error = stops(daemon)
    assert "error 1146" in error
    status = stopped_at(daemon)
    assert status["kind"] == "ddl"
    assert "error 1146" in stops(daemon)
    command(daemon, "skip", *group_of(status, "gtid"), *REASON)
    catch_up(daemon)
    assert pair.target.sql("SELECT id FROM b.t ORDER BY id") == [(1,), (2,)]
    assert pair.target.sql("SHOW TABLES FROM a") == [("u",)]
    assert_none_in_doubt(pair.target)


def test_groups_that_are_not_supported(pair: Pair, tmp_path: Path) -> None:
    # A server that writes a binary log cannot keep what is prepared outside of it.
    daemon = begun(pair, tmp_path, {"target.binary_log": False})
    pair.source.sql(
        "INSERT INTO a.t VALUES (1, 1); XA START 'x'; INSERT INTO a.t VALUES (2, 1); XA END 'x';"
        # Together with a commit, the prepare would be an ordinary transaction.
        "XA PREPARE 'x'; XA ROLLBACK 'x'; INSERT INTO a.t VALUES (3, 1)"
    )
    for _ in range(2):
        assert "XA transactions cannot be applied" in stops(daemon)
        status = stopped_at(daemon)
        assert status["later_applied"] is False
        command(daemon, "skip", *group_of(status, "group"), *REASON)
    catch_up(daemon)
    assert pair.target.sql("SELECT id FROM a.t ORDER BY id") == [(1,), (3,)]
    assert pair.target.sql("SELECT COUNT(*) FROM mtsd.slave_skipped_group") == [(2,)]


@pytest.mark.parametrize("failure", ["conflict", "packet"])
def test_a_streamed_group(pair: Pair, failure: str, tmp_path: Path) -> None:
    settings: dict[str, Value] = {
        "replica.pending_jobs_size_max": 1 << 20, "replica.batch_bytes": 1 << 18,
    }  # fmt: skip
    daemon = begun(pair, tmp_path, settings)
    pair.source.sql("CREATE TABLE b.l (id INT PRIMARY KEY, v LONGBLOB)")
    catch_up(daemon)
    ((before,),) = pair.target.sql("SELECT @@global.max_allowed_packet")
    if failure == "packet":
        pair.target.sql("SET GLOBAL max_allowed_packet = 1048576")
    else:
        pair.target.sql("INSERT INTO b.l VALUES (9, 'ours')")
    try:
        pair.source.sql(
            "BEGIN; INSERT INTO b.l VALUES (1, REPEAT('x', 400000)), (2, REPEAT('y', 1200000)),"
            " (9, REPEAT('z', 400000)); COMMIT; INSERT INTO b.t VALUES (1)"
        )
        assert "streamed because of its size" in stops(daemon)
        status = stopped_at(daemon)
        assert status["kind"] == ("streamed" if failure == "packet" else status["kind"])
        command(daemon, "skip", "--position", "binlog.000001:99", *REASON, status=NEEDS_PERSON)
        command(daemon, "skip", *group_of(status, "group"), *REASON)
        catch_up(daemon)
    finally:
        pair.target.sql(f"SET GLOBAL max_allowed_packet = {before}")
    ours = [(9,)] if failure == "conflict" else []
    assert pair.target.sql("SELECT id FROM b.l") == ours
    assert pair.target.sql("SELECT id FROM b.t") == [(1,)]


def test_a_row_that_is_too_large(pair: Pair, tmp_path: Path) -> None:
    daemon = begun(pair, tmp_path)
    pair.source.sql("CREATE TABLE b.l (id INT PRIMARY KEY, v LONGBLOB)")
    catch_up(daemon)
    ((before,),) = pair.target.sql("SELECT @@global.max_allowed_packet")
    pair.target.sql("SET GLOBAL max_allowed_packet = 1048576")
    try:
        pair.source.sql(
            "INSERT INTO b.l VALUES (1, 'x'); INSERT INTO b.l VALUES (2, REPEAT('y', 1200000));"
            "INSERT INTO b.l VALUES (3, 'z')"
        )
        assert "raise max_allowed_packet" in stops(daemon)
        command(daemon, "skip", *group_of(stopped_at(daemon), "group"), *REASON)
        catch_up(daemon)
    finally:
        pair.target.sql(f"SET GLOBAL max_allowed_packet = {before}")
    assert pair.target.sql("SELECT id FROM b.l ORDER BY id") == [(1,), (3,)]


def test_a_definition_without_evidence(without_gtids: Pair, tmp_path: Path) -> None:
    pair = without_gtids
    daemon = begun(pair, tmp_path)
    pair.source.sql("ALTER TABLE a.t ADD INDEX (v); INSERT INTO a.t VALUES (1, 1)")
    daemon.start(fault=f"{FaultPoint.AFTER_STATEMENT}:1")
    assert daemon.wait() == SIGKILLED
    ((number,),) = pair.target.sql("SELECT Group_number FROM mtsd.slave_in_doubt")
    # The daemon was killed: that it stops there is for it to find out.
    said = command(daemon, "skip", "--group", str(number), *REASON, status=NEEDS_PERSON)
    assert "no group is on record" in said
    assert "mtsd resolve" in stops(daemon)
    status = stopped_at(daemon)
    assert (status["number"], status["kind"], status["databases"]) == (number, "ddl", "a")
    said = command(daemon, "skip", "--group", str(number), *REASON)
    assert "a part of it, or all, may have been applied" in said
    catch_up(daemon)
    assert pair.target.sql("SELECT id FROM a.t") == [(1,)]
    assert_none_in_doubt(pair.target)


def test_a_table_without_transactions(pair: Pair, tmp_path: Path) -> None:
    daemon = begun(pair, tmp_path)
    pair.source.sql("CREATE TABLE a.plain (id INT PRIMARY KEY) ENGINE=MyISAM")
    catch_up(daemon)
    pair.target.sql("INSERT INTO a.plain VALUES (2)")
    pair.source.sql("INSERT INTO a.plain VALUES (1), (2), (3); INSERT INTO a.t VALUES (1, 1)")
    assert "a part of it may have been applied" in (stops(daemon), stops(daemon))[1]
    said = command(daemon, "skip", *group_of(stopped_at(daemon), "gtid"), *REASON)
    assert "may have been applied" in said
    catch_up(daemon)
    assert pair.target.sql("SELECT * FROM a.plain") == [(1,), (2,)]
    assert pair.target.sql("SELECT id FROM a.t") == [(1,)]


def test_refused(pair: Pair, tmp_path: Path) -> None:
    daemon = begun(pair, tmp_path)
    said = command(daemon, "skip", "--group", "3", *REASON, status=NEEDS_PERSON)
    assert "group 3 is not skipped: no group is on record as having stopped the replica" in said
    assert "no group is on record" in command(daemon, "skip")
    status = conflict(pair, daemon)
    number = status["number"]
    end = status["end"]
    others = [
        ("--group", str(number - 1)),
        ("--group", str(number + 1)),
        ("--position", f"{end['file']}:{end['pos'] - 1}"),
        ("--gtid", f"{end['gtid'].rpartition(':')[0]}:1"),
    ]
    for other in others:
        said = command(daemon, "skip", *other, *REASON, status=NEEDS_PERSON)
        assert f"what stopped the replica is group {number}, ending at" in said
    # Another channel has its own.
    one = ("--set", "replica.channel=other", *group_of(status, "group"), *REASON)
    assert "no group is on record" in command(daemon, "skip", *one, status=NEEDS_PERSON)
    for chosen in ("group", "gtid", "position"):
        said = command(daemon, "skip", *group_of(status, chosen), status=2)
        assert "--reason TEXT is missing" in said
    for alone in (REASON, ("--who", "ann")):
        assert "require one of --group" in command(daemon, "skip", *alone, status=2)
    for usage in (
        ("--group", str(number), "--reason", " "),
        ("--gtid", "what", *REASON),
        ("--gtid", f"{end['gtid']}-99", *REASON),
        ("--position", "latest", *REASON),
        ("--group", "1", "--position", "f.000001:4", *REASON),
    ):
        command(daemon, "skip", *usage, status=2)
    assert pair.target.sql("SELECT COUNT(*) FROM mtsd.slave_skipped_group") == [(0,)]
    pair.target.sql("DELETE FROM a.t WHERE id = 2")
    daemon.start()
    daemon.wait_until_caught_up()
    changes = [
        ("skip", *group_of(status, "group"), *REASON),
        ("resolve", "--group", str(number), "--applied"),
        ("position", "reset"),
    ]
    for change in changes:
        said = command(daemon, *change, status=NEEDS_PERSON)
        assert (
            f"a daemon is running on channel '' of this target, and answers on {tmp_path}" in said
        )
        assert "stop it first" in said
    # Without its socket, as from another machine.
    said = command(daemon, *changes[0], "--set", "status.socket=", status=NEEDS_PERSON)
    assert "a daemon is running on channel '' of this target: stop it first" in said
    assert " of user 'root' from " in said
    assert "former run" not in said
    assert daemon.stop() == 0
    said = command(daemon, "skip", *group_of(status, "group"), *REASON, status=NEEDS_PERSON)
    assert "no group is on record" in said
    assert pair.target.sql("SELECT id FROM a.t ORDER BY id") == [(1,), (2,), (3,), (4,)]


def test_a_skip_that_is_killed_half_way(pair: Pair, tmp_path: Path) -> None:
    daemon = begun(pair, tmp_path)
    which = group_of(conflict(pair, daemon), "group")
    with pair.target.client() as holder, holder.cursor() as cursor:
        # The record goes in, and the row of what is executed has to wait.
        cursor.execute("LOCK TABLES mtsd.slave_worker_info READ")
        skipping = subprocess.Popen(
            [sys.executable, "-m", "mtsd", "skip", *which, *REASON, "--config", str(daemon.config)],
            cwd=Path(__file__).parents[2],
        )
        waiting = (
            "SELECT COUNT(*) FROM information_schema.PROCESSLIST"
            " WHERE STATE = 'Waiting for table metadata lock'"
        )
        wait_for(pair.target, waiting, 1)
        skipping.kill()
        skipping.wait()
        assert pair.target.sql("SELECT COUNT(*) FROM mtsd.slave_skipped_group") == [(0,)]
    # The server goes on with what it had been sent, or not: nobody is let in before that is over.
    locked = f"SELECT COALESCE(IS_USED_LOCK('{lock_of(pair.target)}'), 0)"
    wait_for(pair.target, locked, 0)
    assert "skipped" in command(daemon, "skip", *which, *REASON)
    catch_up(daemon)
    passed(pair)


def test_the_first_group_of_a_channel(pair: Pair, tmp_path: Path) -> None:
    daemon = begun(pair, tmp_path)
    pair.source.sql("RESET BINARY LOGS AND GTIDS; CREATE DATABASE c; INSERT INTO b.t VALUES (1)")
    pair.target.sql("DROP DATABASE mtsd; CREATE DATABASE c")
    assert "error 1007" in stops(daemon)
    assert stopped_at(daemon)["number"] == 1
    command(daemon, "skip", "--group", "1", *REASON)
    catch_up(daemon)
    assert pair.target.sql("SELECT id FROM b.t") == [(1,)]
    pair.source.sql("DROP DATABASE c")
    pair.target.sql("DROP DATABASE c")


def test_another_position(pair: Pair, tmp_path: Path) -> None:
    daemon = begun(pair, tmp_path)
    number = str(conflict(pair, daemon)["number"])
    command(daemon, "position", "set", "latest", "--forward")
    said = command(daemon, "skip", "--group", number, *REASON, status=NEEDS_PERSON)
    assert "no group is on record" in said
    pair.source.sql("INSERT INTO a.t VALUES (5, 1)")
    pair.target.sql("INSERT INTO a.t VALUES (5, 0)")
    stops(daemon)
    number = str(stopped_at(daemon)["number"])
    command(daemon, "skip", "--group", number, *REASON)
    command(daemon, "position", "set", "latest", "--forward")
    assert "was already skipped" in command(daemon, "skip", "--group", number, *REASON)
    command(daemon, "position", "reset")
    assert pair.target.sql("SELECT COUNT(*) FROM mtsd.slave_skipped_group") == [(0,)]


def test_a_group_that_has_been_applied_since(pair: Pair, tmp_path: Path) -> None:
    daemon = begun(pair, tmp_path)
    status = conflict(pair, daemon)
    pair.target.sql("DELETE FROM a.t WHERE id = 2")
    daemon.settings["replica.checkpoint_period"] = 60.0
    daemon.start()
    wait_for(pair.target, "SELECT COUNT(*) FROM a.t WHERE id = 3", 1)
    daemon.kill()
    assert pair.target.sql("SELECT COUNT(*) FROM mtsd.slave_stopped_group") == [(1,)]
    assert json_status(daemon)["stopped_at"] is None
    assert "stopped-group" not in told(tmp_path, daemon.settings).bad
    said = command(daemon, "skip", *group_of(status, "group"), *REASON, status=NEEDS_PERSON)
    assert "has been applied since" in said
    assert "no group is on record" in command(daemon, "skip")
    catch_up(daemon)
    assert pair.target.sql("SELECT COUNT(*) FROM mtsd.slave_stopped_group") == [(0,)]
    assert pair.target.sql("SELECT id FROM a.t ORDER BY id") == [(1,), (2,), (3,), (4,)]


def test_another_position_and_another_source(pair: Pair, tmp_path: Path) -> None:
    daemon = begun(pair, tmp_path)
    status = conflict(pair, daemon)
    command(daemon, "skip", *group_of(status, "gtid"), *REASON)
    # A source that took over has the group under the same GTID, at another place.
    with Server(GTIDS) as other:
        other.sql("RESET BINARY LOGS AND GTIDS")
        other.sql(BEGINNING)
        _with_gtids_of(pair.source, other)
        other.sql("INSERT INTO b.t VALUES (7)")
        daemon.source = other
        daemon.settings["source.port"] = other.port
        catch_up(daemon)
    assert pair.target.sql("SELECT id, v FROM a.t ORDER BY id") == [(1, 1), (2, 0), (4, 1)]
    assert pair.target.sql("SELECT id FROM b.t ORDER BY id") == [(1,), (2,), (7,)]


def _with_gtids_of(source: Server, other: Server) -> None:
    """Make `other` a replica of `source` that has all it has."""
    other.sql("RESET BINARY LOGS AND GTIDS; DROP DATABASE a; DROP DATABASE b")
    other.sql("RESET BINARY LOGS AND GTIDS")
    other.sql(
        f"CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={source.port},"
        " SOURCE_USER='root', SOURCE_AUTO_POSITION=1; START REPLICA"
    )
    wait_for(other, "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'a'", 1)
    wait_for(other, "SELECT COUNT(*) FROM a.t", 4)
    other.sql("STOP REPLICA; RESET REPLICA ALL")


def test_tables_of_an_older_mtsd(pair: Pair, tmp_path: Path) -> None:
    daemon = begun(pair, tmp_path)
    pair.target.sql("DROP TABLE mtsd.slave_stopped_group, mtsd.slave_skipped_group")
    assert json_status(daemon)["executed"] != {"file": "", "pos": 0, "gtid": ""}
    assert "missing in mtsd" not in command(daemon, "check")
    status = conflict(pair, daemon)
    command(daemon, "skip", *group_of(status, "group"), *REASON)
    catch_up(daemon)
    passed(pair)


def test_another_binlog_in_the_same_place(without_gtids: Pair, tmp_path: Path) -> None:
    pair = without_gtids
    daemon = begun(pair, tmp_path)
    command(daemon, "skip", *group_of(conflict(pair, daemon), "group"), *REASON)
    ((file, offset),) = pair.target.sql(
        "SELECT Master_log_name, Master_log_pos FROM mtsd.slave_skipped_group"
    )
    pair.target.sql("UPDATE mtsd.slave_skipped_group SET Master_log_pos = Master_log_pos - 1")
    error = stops(daemon)
    assert f"the source has another group in its place, group 6, ending at {file}:{offset}" in error

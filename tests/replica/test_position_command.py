"""`mtsd position`: shown, set and reset, on a channel without a daemon."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.load.compare import differences
from tests.operations.checked import told
from tests.replica.daemon_process import DaemonProcess
from tests.replica.test_evidence import command
from tests.servers.mysqld import GTIDS
from tests.servers.pair import Pair

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with Pair(GTIDS, GTIDS) as pair:
        yield pair


@pytest.fixture
def daemon(pair: Pair, tmp_path: Path) -> Iterator[DaemonProcess]:
    pair.target.sql("DROP DATABASE IF EXISTS mtsd; DROP DATABASE IF EXISTS a")
    pair.source.sql("DROP DATABASE IF EXISTS a; RESET BINARY LOGS AND GTIDS;"
                    "CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY)")  # fmt: skip
    daemon = DaemonProcess(pair.source, pair.target, tmp_path)
    daemon.start()
    daemon.wait_until_caught_up()
    assert daemon.stop() == 0
    yield daemon
    daemon.close()


def end(pair: Pair) -> tuple[str, str]:
    row = pair.source.sql("SHOW BINARY LOG STATUS")[0]
    return f"{row[0]}:{row[1]}", str(row[4])


def test_shown(pair: Pair, daemon: DaemonProcess) -> None:
    place, gtids = end(pair)
    said = command(daemon, "position", "show")
    assert said.splitlines() == [f"executed  {place}", f"GTIDs     {gtids}"]
    pair.target.sql("DROP DATABASE mtsd")
    assert "none yet" in command(daemon, "position", "show")


@pytest.mark.parametrize("by", ["file", "gtid", "latest"])
def test_set(pair: Pair, daemon: DaemonProcess, by: str) -> None:
    was, _ = end(pair)
    pair.source.sql("INSERT INTO a.t VALUES (1)")
    place, gtids = end(pair)
    wanted = {"file": place, "gtid": f"gtid:{gtids}", "latest": "latest"}[by]
    said = command(daemon, "position", "set", wanted).splitlines()
    assert said[0].startswith(f"was  {was}")
    assert said[1].startswith("now  by GTID set" if by == "gtid" else f"now  {place}")
    shown = command(daemon, "position", "show")
    assert shown.startswith(f"executed  {'what the GTIDs say' if by == 'gtid' else place}")
    ((number,),) = pair.target.sql("SELECT Group_number FROM mtsd.slave_relay_log_info")
    assert number == 2
    pair.source.sql("INSERT INTO a.t VALUES (2); CREATE TABLE a.u (i INT)")
    daemon.start()
    daemon.wait_until_caught_up()
    assert daemon.stop() == 0
    assert pair.target.sql("SELECT id FROM a.t") == [(2,)]
    pair.target.sql("INSERT INTO a.t VALUES (1)")
    assert differences(pair.source, pair.target) == []


def test_reset(pair: Pair, daemon: DaemonProcess) -> None:
    assert "now  none" in command(daemon, "position", "reset")
    assert pair.target.sql("SELECT COUNT(*) FROM mtsd.slave_worker_info") == [(0,)]
    daemon.settings["source.start"] = "latest"
    pair.source.sql("INSERT INTO a.t VALUES (1)")
    daemon.start()
    daemon.wait_until_running()
    pair.source.sql("INSERT INTO a.t VALUES (2)")
    daemon.wait_until_caught_up()
    assert daemon.stop() == 0
    assert pair.target.sql("SELECT id FROM a.t") == [(2,)]


def test_reset_names_what_stays_prepared(pair: Pair, daemon: DaemonProcess) -> None:
    pair.source.sql("XA START 'left'; INSERT INTO a.t VALUES (1); XA END 'left'; XA PREPARE 'left'")
    try:
        daemon.start()
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        said = command(daemon, "position", "reset")
        assert "XA ROLLBACK X'6c656674',X'',1" in said
        assert "now  none" in said
        assert "XA ROLLBACK" not in command(daemon, "position", "reset")
        pair.target.sql("XA ROLLBACK X'6c656674',X'',1")
    finally:
        pair.source.sql("XA ROLLBACK 'left'")


def test_refused(pair: Pair, daemon: DaemonProcess) -> None:
    said = command(daemon, "position", "set", "binlog.000001", status=2)
    assert "PLACE" in said
    pair.target.sql(
        "INSERT INTO mtsd.slave_in_doubt (Channel_name, Group_number, Id, Master_log_name,"
        " Master_log_pos, Kind, Evidence_gtid, Source_gtid, `Databases`, Statement,"
        " Target_log_name, Target_log_pos, Target_thread)"
        " VALUES ('', 9, 1, 'f', 4, 'ddl', '', '', 'a', 'ALTER TABLE a.t', '', 0, 0)"
    )
    for action in (("set", "latest"), ("reset",)):
        assert "group 9 is in doubt" in command(daemon, "position", *action, status=3)
    command(daemon, "position", "set", "latest", "--drop-doubt")
    ((number,),) = pair.target.sql("SELECT Group_number FROM mtsd.slave_relay_log_info")
    assert number == 9
    daemon.start()
    daemon.wait_until_running()
    for action in (("set", "latest"), ("reset",)):
        assert "a daemon is running on channel" in command(daemon, "position", *action, status=3)
    assert daemon.stop() == 0


@pytest.mark.parametrize(
    ("place", "says"),
    [
        ("binlog.000077:4", "the start is binlog.000077:4, but the source's binary log goes from"),
        ("binlog.000001:99999999", "Choose a place within it"),
        ("binlog.000001:5", "binlog.000001:5, but no transaction begins there"),
        ("other.000001:4", "the source's binary log goes from binlog.000001"),
        ("gtid:5a33fa47-71ca-11e1-9e33-c80aa9429562:1", "which the source has not executed"),
    ],
)
def test_a_place_that_is_not_there_is_refused(
    pair: Pair, daemon: DaemonProcess, place: str, says: str
) -> None:
    shown = command(daemon, "position", "show")
    said = command(daemon, "position", "set", place, status=3)
    assert says in said
    assert said.count("\n") == 1
    assert command(daemon, "position", "show") == shown
    # Nor does a first start record it.
    command(daemon, "position", "reset")
    daemon.settings["source.start"] = place
    daemon.start()
    assert daemon.wait() == 3
    assert says in str(daemon.records()[-1]["error"])
    assert pair.target.sql("SELECT COUNT(*) FROM mtsd.slave_relay_log_info") == [(0,)]


def refused_without_row(daemon: DaemonProcess, tmp_path: Path) -> None:
    """Check that the channel without its row is refused, by `mtsd check` too."""
    said = "the row of channel '' in mtsd.slave_relay_log_info is gone"
    daemon.start()
    assert daemon.wait() == 3
    error = str(daemon.records()[-1]["error"])
    assert said in error
    assert "mtsd position set" in error
    assert said in told(tmp_path, daemon.settings).bad["position-row-lost"]


def test_a_lost_row_of_the_channel(pair: Pair, daemon: DaemonProcess, tmp_path: Path) -> None:
    """What its workers have recorded is about numbers that begin again."""
    pair.source.sql("INSERT INTO a.t VALUES (1)")
    place, _ = end(pair)
    pair.target.sql("INSERT INTO a.t VALUES (1); DELETE FROM mtsd.slave_relay_log_info")
    refused_without_row(daemon, tmp_path)
    command(daemon, "position", "set", place)
    ((number,),) = pair.target.sql("SELECT Group_number FROM mtsd.slave_relay_log_info")
    assert number == 2
    pair.target.sql("TRUNCATE mtsd.slave_relay_log_info")
    command(daemon, "position", "reset")
    daemon.settings["source.start"] = "latest"
    daemon.start()
    daemon.wait_until_running()
    pair.source.sql("INSERT INTO a.t VALUES (2)")
    daemon.wait_until_caught_up()
    pair.target.sql("DELETE FROM mtsd.slave_relay_log_info")
    pair.source.sql("INSERT INTO a.t VALUES (3)")
    assert daemon.wait() == 3
    assert "slave_relay_log_info is gone" in str(daemon.records()[-1]["error"])
    refused_without_row(daemon, tmp_path)


def test_only_skipped_groups_of_the_channel_are_left(pair: Pair, daemon: DaemonProcess) -> None:
    pair.target.sql(
        "DELETE FROM mtsd.slave_relay_log_info; DELETE FROM mtsd.slave_worker_info;"
        "INSERT INTO mtsd.slave_skipped_group VALUES"
        " ('', 9, 'binlog.000001', 4, '', 'a', 'rows', 1032, '', 'me', 'why', NOW(6))"
    )
    place, _ = end(pair)
    command(daemon, "position", "set", place)
    ((number,),) = pair.target.sql("SELECT Group_number FROM mtsd.slave_relay_log_info")
    assert number == 9


@pytest.mark.parametrize("skipped", [[], [1032]])
def test_a_lost_row_of_a_worker(pair: Pair, daemon: DaemonProcess, skipped: list[int]) -> None:
    """It is not taken for a row of the source's."""
    daemon.settings["replica.skip_errors"] = skipped
    daemon.start()
    daemon.wait_until_running()
    pair.target.sql("DELETE FROM mtsd.slave_worker_info")
    pair.source.sql("INSERT INTO a.t VALUES (7)")
    assert daemon.wait() == 3
    said = str(daemon.records()[-1]["error"])
    assert "mtsd's own row for this worker in slave_worker_info is gone" in said
    assert "mtsd position set" in said
    assert pair.target.sql("SELECT * FROM a.t") == []


def test_a_position_for_the_source_in_another_schema(pair: Pair, daemon: DaemonProcess) -> None:
    said = command(daemon, "check", "--set", "target.schema=moved")
    assert "but mtsd on the target has one for the same source" in said
    assert "but mtsd on the target" not in command(daemon, "check")
    daemon.settings |= {"target.schema": "moved", "source.start": "latest"}
    daemon.start()
    daemon.wait_until_running()
    assert daemon.stop() == 0
    (warned,) = (each for each in daemon.records() if "another schema" in str(each["event"]))
    assert warned["schema"] == "mtsd"
    daemon.start()
    daemon.wait_until_running()
    assert daemon.stop() == 0
    assert sum("another schema" in str(each["event"]) for each in daemon.records()) == 1
    pair.target.sql("DROP DATABASE moved")

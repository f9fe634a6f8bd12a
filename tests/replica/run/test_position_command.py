"""`mtsd position`: shown, set and reset, on a channel without a daemon."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mtsd.control.stop_status import NOT_BEGUN
from mtsd.model.gtid import GtidSet
from tests.fix_daemon import command
from tests.load.compare import differences
from tests.operations.checked import told
from tests.replica.daemon_process import DaemonProcess, Value, toml
from tests.servers.mysqld import GTIDS, Server
from tests.servers.pair import Pair

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with Pair(GTIDS, GTIDS) as pair:
        yield pair


@pytest.fixture
def daemon(pair: Pair, tmp_path: Path) -> Iterator[DaemonProcess]:
    pair.target.sql("DROP DATABASE IF EXISTS mtsd; DROP DATABASE IF EXISTS a;"
                    "RESET BINARY LOGS AND GTIDS")  # fmt: skip
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
    # mysqldump writes a set as an addition.
    wanted = {"file": place, "gtid": f"gtid:+{gtids}", "latest": "latest"}[by]
    inserted = f"1 transaction ({gtids.partition(':')[0]}:3)"
    said = command(daemon, "position", "set", wanted, status=3)
    assert f"goes forward by {inserted}, never to be applied. If that is meant," in said
    assert "say so with --forward" in said
    assert command(daemon, "position", "show").startswith(f"executed  {was}")
    holder_text, now, *by_how_much = command(
        daemon, "position", "set", wanted, "--forward"
    ).splitlines()
    assert holder_text.startswith(f"was  {was}")
    assert by_how_much == [f"forward by {inserted}, which mtsd does not apply"]
    # Another source could take over at once.
    assert pair.target.sql("SELECT Executed_gtid_set FROM mtsd.slave_relay_log_info") == [(gtids,)]
    assert now.startswith("now  by GTID set" if by == "gtid" else f"now  {place}")
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


LOOKING = (
    "SELECT", "SHOW", "SET", "START TRANSACTION", "COMMIT", "ROLLBACK", "UNLOCK", "XA RECOVER",
    "DO 0",
)  # fmt: skip
ONLY_ASKED = "BINLOG ''"
"""Whether rows may be applied by BINLOG."""


@contextmanager
def nothing_written(server: Server) -> Iterator[None]:
    """Check that no statement changes a server, takes a lock or ends a session."""
    server.sql("TRUNCATE mysql.general_log; SET GLOBAL log_output='TABLE', general_log=ON")
    yield
    server.sql("SET GLOBAL general_log=OFF")
    said = [
        str(text).strip().upper()
        for (text,) in server.sql(
            "SELECT CONVERT(argument USING utf8mb4) FROM mysql.general_log"
            " WHERE command_type IN ('Query', 'Execute')"
        )
    ]
    assert len(said) > 1
    assert not [
        text
        for text in said
        if not (text.startswith(LOOKING) or text == ONLY_ASKED)
        or "GET_LOCK(" in text
        or (text.startswith(("SET GLOBAL", "SET PERSIST")) and "GENERAL_LOG" not in text)
    ]


@pytest.mark.parametrize("begun", [True, False])
def test_who_only_looks_writes_nothing(
    pair: Pair, daemon: DaemonProcess, tmp_path: Path, begun: bool
) -> None:
    if not begun:
        pair.target.sql("DROP DATABASE mtsd")
    place, gtids = end(pair)
    (dump := tmp_path / "dump.sql").write_text(f"SET @@GLOBAL.GTID_PURGED='{gtids}';\n")
    exchanged: dict[str, Value] = {
        "source.port": pair.target.port, "target.port": pair.source.port, "source.server_id": 4202,
    }  # fmt: skip
    (reverse := tmp_path / "reverse.toml").write_text(toml({**daemon.settings, **exchanged}))
    reverse.chmod(0o600)
    looking = (
        ("check",), ("check", "--grants"), ("status",), ("skip",), ("resolve",),
        ("position", "show"), ("position", "set", place, "--dry-run"),
        ("position", "set", "--from", str(dump), "--dry-run", "--although-missing"),
        ("position", "set", "--from", "replica", "--dry-run"), ("takeover",), ("handover",),
        ("switchover", "--reverse-config", str(reverse)),
        ("support-bundle", "--output", str(tmp_path / "bundle.tar.gz")),
    )  # fmt: skip
    # Where nothing has begun there is nothing to change either.
    changing = (
        ("skip", "--group", "1", "--reason", "a test"), ("resolve", "--group", "1", "--applied"),
        ("position", "adopt"), ("position", "reset"),
        ("position", "set", "binlog.000077:4"),
    )  # fmt: skip
    with nothing_written(pair.source), nothing_written(pair.target):
        for words in looking if begun else looking + changing:
            command(daemon, *words, status=None)
        assert "then " in command(daemon, "position", "set", place, "--dry-run")
    if not begun:
        assert pair.target.sql("SHOW DATABASES LIKE 'mtsd'") == []


def test_after_the_own_replica_went_on(pair: Pair, daemon: DaemonProcess) -> None:
    """With gtid = "off" the target's own GTIDs lack what mtsd has applied."""
    _, before = end(pair)
    pair.source.sql("INSERT INTO a.t VALUES (1)")
    pair.target.sql(
        f"CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={pair.source.port},"
        " SOURCE_USER='root', GET_SOURCE_PUBLIC_KEY=1, SOURCE_LOG_FILE='binlog.000001',"
        f" SOURCE_LOG_POS={command(daemon, 'position', 'show').split(':')[1].split()[0]};"
        " START REPLICA"
    )
    _, gtids = end(pair)
    pair.target.sql(f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{gtids.partition(':')[0]}:3', 30)")
    pair.target.sql("STOP REPLICA")
    pair.target.sql("CREATE USER blind; GRANT ALL ON mtsd.* TO blind")
    from_replica = "position", "set", "--from", "replica"
    said = command(daemon, *from_replica, "--set", "target.user=blind", status=3)
    assert "GRANT REPLICATION CLIENT ON *.* on the target" in said
    pair.target.sql("DROP USER blind")
    said = command(daemon, *from_replica, "--dry-run")
    assert f"with what mtsd has applied before: {before}" in said
    assert said == command(daemon, *from_replica).replace("now ", "then")
    pair.target.sql("RESET REPLICA ALL")
    assert pair.target.sql("SELECT Executed_gtid_set FROM mtsd.slave_relay_log_info") == [(gtids,)]
    pair.source.sql("INSERT INTO a.t VALUES (2)")
    daemon.start()
    daemon.wait_until_caught_up()
    assert daemon.stop() == 0
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
    assert 'PLACE: not one of the four forms: "FILE:POS", "gtid:SET", "earliest" or' in said
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
    assert "mtsd skip" not in said
    assert pair.target.sql("SELECT * FROM a.t") == []
    # What it has applied beyond the channel's row would be applied again.
    daemon.start()
    assert daemon.wait() == 3
    assert "slave_worker_info are gone, of workers 1, " in str(daemon.records()[-1]["error"])
    command(daemon, "position", "set", end(pair)[0], "--forward")
    assert NOT_BEGUN in command(daemon, "status", status=4)
    daemon.start()
    daemon.wait_until_running()


@pytest.mark.parametrize(
    ("lost", "says"),
    [
        ("TABLE mtsd.slave_worker_info", "slave_worker_info missing in the position schema mtsd"),
        ("DATABASE mtsd", "the position schema mtsd is gone"),
    ],
)
def test_lost_while_it_runs(pair: Pair, daemon: DaemonProcess, lost: str, says: str) -> None:
    """That no group is to blame, and none to be skipped."""
    daemon.start()
    daemon.wait_until_running()
    pair.target.sql(f"DROP {lost}")
    pair.source.sql("INSERT INTO a.t VALUES (7)")
    assert daemon.wait() == 3
    said = str(daemon.records()[-1]["error"])
    assert says in said
    assert "mtsd skip" not in said
    assert says in command(daemon, "status", status=3)
    if lost == "DATABASE mtsd":
        # Its error was kept on this machine.
        command(daemon, "position", "set", end(pair)[0])
        assert NOT_BEGUN in command(daemon, "status", status=4)


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


def test_what_the_target_has_executed_itself(
    pair: Pair, daemon: DaemonProcess, tmp_path: Path
) -> None:
    """Its own replica has gone on after mtsd: both would apply it."""
    was, before = end(pair)
    pair.source.sql("INSERT INTO a.t VALUES (1); INSERT INTO a.t VALUES (2)")
    gtids = end(pair)[1]
    uuid = gtids.partition(":")[0]
    pair.target.sql(f"SET GLOBAL gtid_purged = '+{before}'")
    for number in (1, 2):
        pair.target.sql(f"SET gtid_next = '{uuid}:{number + 2}'; INSERT INTO a.t VALUES ({number})")
    beyond = f"executed 2 of the source's transactions after the position {was}, which would be"
    daemon.start()
    assert daemon.wait() == 3
    assert beyond in str(daemon.records()[-1]["error"])
    assert beyond in told(tmp_path, daemon.settings).bad["target-executed-beyond"]
    said = command(daemon, "position", "set", was, status=3)
    assert beyond in said
    here = f"gtid:{before}", "--despite-executed-gtids"
    after = f"gtid:{gtids}", "--forward"
    for words in (here, after):
        assert f"mtsd position set {' '.join(words)}" in said
    # Nor does a first start apply it.
    command(daemon, "position", "reset")
    daemon.settings["source.start"] = was
    assert beyond in told(tmp_path, daemon.settings).bad["target-executed-beyond"]
    daemon.start()
    assert daemon.wait() == 3
    assert beyond in str(daemon.records()[-1]["error"])
    # What a person has said counts at the next starts too.
    command(daemon, "position", "set", *here)
    assert "target-executed-beyond" not in told(tmp_path, daemon.settings).bad
    for _ in range(2):
        daemon.start()
        assert daemon.wait() == 3
        error = str(daemon.records()[-1]["error"])
        assert "1062" in error
        look, found, rest = error.partition("the target has that row already: it may already hold")
        assert found
        assert "mtsd skip" not in look
        assert "mtsd position set" in rest.partition("mtsd skip")[0]
    command(daemon, "position", "set", *after)
    pair.source.sql("INSERT INTO a.t VALUES (3)")
    daemon.start()
    daemon.wait_until_caught_up()
    assert daemon.stop() == 0
    assert differences(pair.source, pair.target) == []
    back = command(daemon, "position", "set", f"gtid:{uuid}:1-2", status=3)
    assert f"goes back by 3 transactions ({uuid}:3-5), to be applied again" in back
    own = str(pair.target.sql("SELECT @@server_uuid")[0][0])
    said = command(daemon, "position", "set", f"gtid:{gtids},{own}:1-9", status=3)
    assert f"without them: mtsd position set gtid:{gtids}" in said.lower()


def test_a_start_at_a_place_in_a_file_learns_its_gtids(pair: Pair, daemon: DaemonProcess) -> None:
    command(daemon, "position", "reset")
    pair.source.sql("FLUSH BINARY LOGS; INSERT INTO a.t VALUES (1)")
    # As on a source that was loaded from another one's dump: its file does not tell.
    loaded = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-50"
    pair.source.sql(f"SET GLOBAL gtid_purged = '+{loaded}'; INSERT INTO a.t VALUES (2)")
    daemon.settings["source.start"], gtids = end(pair)
    assert loaded in gtids
    daemon.start()
    daemon.wait_until_running()
    assert daemon.stop() == 0
    ((known,),) = pair.target.sql("SELECT Executed_gtid_set FROM mtsd.slave_relay_log_info")
    assert GtidSet.parse(known) == GtidSet.parse(gtids)


def test_the_binary_log_has_another_name(pair: Pair, daemon: DaemonProcess, tmp_path: Path) -> None:
    """With GTIDs it goes on: while it runs, and where it starts after that."""
    pair.source.sql("FLUSH BINARY LOGS; FLUSH BINARY LOGS")
    daemon.start()
    daemon.wait_until_caught_up()
    try:
        for number, name in enumerate(("renamed", "yet"), 1):
            pair.source.stop()
            pair.source.options["log_bin"] = name
            pair.source.start()
            pair.source.sql(f"INSERT INTO a.t VALUES ({number})")
            if not daemon.running:
                daemon.start()
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
            assert command(daemon, "position", "show").startswith(f"executed  {name}.000001:")
            assert not told(tmp_path, daemon.settings).bad.keys() & {"position-renamed"}
    finally:
        pair.source.stop()
        pair.source.options["log_bin"] = "binlog"
        pair.source.start()
    assert differences(pair.source, pair.target) == []

"""What a person has to correct ends the daemon with exit status 3 and one clear line, at once.

What passes by itself is waited for.
"""

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pymysql
import pytest

from mtsd.cli.main import main
from tests.fix_daemon import AT_ONCE_S, NEEDS_PERSON, stopped_with
from tests.load.compare import differences
from tests.operations.checked import told
from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.certificates import Authority
from tests.servers.mysqld import Server
from tests.servers.pair import Pair

pytestmark = pytest.mark.servers


ACCOUNTS = (
    "SET sql_log_bin = 0;"
    "CREATE USER repl@'%' IDENTIFIED BY 'right';"
    "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO repl@'%';"
    "CREATE USER poor@'%' IDENTIFIED BY 'right';"
)
OF_TARGET = (
    "CREATE USER nobinlog@'%' IDENTIFIED BY 'right'; GRANT ALL ON *.* TO nobinlog@'%';"
    "REVOKE SUPER, BINLOG_ADMIN, REPLICATION_APPLIER, CONNECTION_ADMIN, GROUP_REPLICATION_ADMIN,"
    " SYSTEM_VARIABLES_ADMIN ON *.* FROM nobinlog@'%'"
)


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with Pair(None, {"skip_log_bin": None}) as pair:
        pair.source.sql(ACCOUNTS)
        pair.target.sql(ACCOUNTS + OF_TARGET)
        pair.source.sql("CREATE DATABASE a; CREATE TABLE a.t (i INT); INSERT INTO a.t VALUES (1)")
        yield pair


@pytest.mark.parametrize(
    ("settings", "parts"),
    [
        (
            {"source.user": "repl", "source.password": "wrong"},
            ("the source 127.0.0.1:", "refuses user 'repl'", "error 1045", "[source] user and pas"),
        ),
        (
            {"target.user": "repl", "target.password": "wrong"},
            ("the target 127.0.0.1:", "refuses user 'repl'", "error 1045", "[target] user and pas"),
        ),
        (
            {"source.user": "poor", "source.password": "right"},
            ("the user may not see", "error 1227", "Grant REPLICATION CLIENT"),
        ),
        (
            {"target.user": "poor", "target.password": "right"},
            ("the target 127.0.0.1:", "denied", "Grant it to the user of [target] user"),
        ),
        (
            {
                "target.user": "nobinlog",
                "target.password": "right",
                "target.apply_mode": "binlog",
            },
            ("error 1227", "BINLOG_ADMIN", "Grant it to the user of [target] user"),
        ),
        (
            {"source.tls": "verify_ca"},
            ("TLS with the source 127.0.0.1:", "not signed by a CA in [source] tls_ca"),
        ),
        (
            {"target.tls": "verify_identity"},
            ("TLS with the target 127.0.0.1:", "not signed by a CA in [target] tls_ca"),
        ),
    ],
    ids=[
        "password of the source", "password of the target", "privileges at the source",
        "privileges at the target", "privilege to apply", "tls of the source", "tls of the target",
    ],
)  # fmt: skip
def test_refused(
    pair: Pair, settings: dict[str, Value], parts: tuple[str, ...], tmp_path: Path
) -> None:
    # With the position of another test, a start asks the source for less.
    pair.target.sql("DROP DATABASE IF EXISTS mtsd")
    said = stopped_with(DaemonProcess(pair.source, pair.target, tmp_path, settings))
    for part in parts:
        assert part in said, said


def test_server_id_of_the_source(pair: Pair, tmp_path: Path) -> None:
    settings: dict[str, Value] = {"source.server_id": pair.source.port}
    said = stopped_with(DaemonProcess(pair.source, pair.target, tmp_path, settings))
    assert f"also has server_id {pair.source.port}. Give this replica another one" in said


def test_source_without_a_binlog(pair: Pair, tmp_path: Path) -> None:
    daemon = DaemonProcess(pair.target, pair.source, tmp_path)
    assert "writes no binary log. Start it with log_bin" in stopped_with(daemon)


def test_a_target_that_is_read_only_is_waited_for(pair: Pair, tmp_path: Path) -> None:
    """At the start and later, by whatever is applied; once it is over, all is there once."""
    settings: dict[str, Value] = {
        "target.user": "plain",
        "replica.transaction_retries": 0,
        "replica.pending_jobs_size_max": 1 << 20,
        "replica.batch_bytes": 1 << 20,
    }
    pair.target.sql("CREATE USER IF NOT EXISTS plain@'%'; GRANT ALL ON *.* TO plain@'%'")
    pair.target.sql("REVOKE CONNECTION_ADMIN, SUPER ON *.* FROM plain@'%'")
    pair.source.sql("CREATE TABLE a.myisam (i INT) ENGINE = MyISAM; CREATE DATABASE b")
    pair.source.sql("CREATE TABLE b.large (v LONGBLOB); CREATE TABLE b.t (i INT)")
    work = [
        "INSERT INTO a.t VALUES (2); INSERT INTO a.myisam VALUES (1)",
        "INSERT INTO b.large VALUES (REPEAT('x', 700000)), (REPEAT('y', 700000))",
    ]
    work[1] += "; ALTER TABLE a.t ADD INDEX (i); INSERT INTO b.t VALUES (1)"
    daemon = DaemonProcess(pair.source, pair.target, tmp_path, settings)
    with daemon:
        for variable, statements in zip(("read_only", "super_read_only"), work, strict=True):
            pair.target.sql(f"SET GLOBAL {variable} = ON")
            try:
                if not daemon.running:
                    daemon.start()
                pair.source.sql(statements)
                waiting = daemon.wait_for_status(lambda now: now.state == "waiting", "not waiting")
                assert waiting.doing.startswith("the target is read-only: error 1290: ")
                assert ". Set read_only and super_read_only OFF on the target; " in waiting.doing
                error = waiting.connections.target.last_error
                assert error is not None
                assert error.number == 1290
                time.sleep(1.0)
                assert daemon.running
            finally:
                pair.target.sql("SET GLOBAL super_read_only = OFF; SET GLOBAL read_only = OFF")
            daemon.wait_until_caught_up()
            over = daemon.wait_for_status(lambda now: not now.doing, "it is not over")
            assert (over.state, over.last_error) == ("running", None)
        warnings = [each for each in daemon.records() if each["level"] == "warning"]
        events = [each["event"] for each in warnings]
        assert events == ["waiting: the target is read-only", "the target takes changes again"] * 2
        assert "Set read_only and super_read_only OFF" in str(warnings[0]["remedy"])
        assert daemon.stop() == 0
    assert differences(pair.source, pair.target) == []


@pytest.mark.parametrize("hold", [1 << 20, 32 << 20], ids=["streamed", "held"])
def test_row_larger_than_the_target_takes(pair: Pair, hold: int, tmp_path: Path) -> None:
    settings: dict[str, Value] = {
        "replica.pending_jobs_size_max": hold,
        "replica.batch_bytes": min(hold, 1 << 20),
    }
    ((before,),) = pair.target.sql("SELECT @@global.max_allowed_packet")
    pair.target.sql("SET GLOBAL max_allowed_packet = 1048576")
    try:
        pair.source.sql(f"CREATE TABLE a.large{hold} (v LONGBLOB)")
        pair.source.sql(f"INSERT INTO a.large{hold} VALUES (REPEAT('x', 1200000))")
        daemon = DaemonProcess(pair.source, pair.target, tmp_path, settings)
        said = stopped_with(daemon)
        for part in ("raise max_allowed_packet on the target", f"a.large{hold}", "group"):
            assert part in said, said
    finally:
        pair.target.sql(f"SET GLOBAL max_allowed_packet = {before}")
    daemon.start()
    daemon.wait_until_caught_up()
    assert daemon.stop() == 0
    assert pair.target.sql(f"SELECT LENGTH(v) FROM a.large{hold}") == [(1_200_000,)]


def test_tls_at_both_ends(tmp_path: Path) -> None:
    authority = Authority.new(tmp_path, "our")
    shown = authority.sign("server", "127.0.0.1")
    client = authority.sign("client")
    options = {
        "ssl_ca": str(authority.ca), "ssl_cert": str(shown.cert), "ssl_key": str(shown.key),
    }  # fmt: skip
    settings: dict[str, Value] = {}
    for role in ("source", "target"):
        settings |= {
            f"{role}.user": "careful",
            f"{role}.tls": "verify_identity",
            f"{role}.tls_ca": str(authority.ca),
            f"{role}.tls_cert": str(client.cert),
            f"{role}.tls_key": str(client.key),
        }
    with Pair(options, options) as pair:
        for server in (pair.source, pair.target):
            server.sql(
                "SET sql_log_bin = 0; CREATE USER careful@'%' REQUIRE SUBJECT '/CN=client';"
                " GRANT ALL ON *.* TO careful@'%'"
            )
        with DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
            pair.source.sql("CREATE DATABASE a; CREATE TABLE a.t (v LONGBLOB)")
            pair.source.sql("INSERT INTO a.t VALUES (REPEAT('x', 20000000))")
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
        assert pair.target.sql("SELECT LENGTH(v) FROM a.t") == [(20_000_000,)]


def warned(daemon: DaemonProcess, text: str) -> None:
    """Wait until the daemon has said why it waits."""
    deadline = time.monotonic() + AT_ONCE_S
    while not any(text in str(record) for record in daemon.records()):
        assert daemon.running, daemon.last_words()
        assert time.monotonic() < deadline, daemon.last_words()
        time.sleep(0.05)


def test_servers_that_are_down_at_the_start(pair: Pair, tmp_path: Path) -> None:
    folders = tmp_path / "to", tmp_path / "from"
    for folder in folders:
        folder.mkdir()
    channel: dict[str, Value] = {"replica.channel": "from_late"}
    with ExitStack() as stack:
        late = Server(new=True)
        stack.callback(late.close)
        # What is mirrored could be there before the other one reads: it is not in the binlog.
        unlogged: dict[str, Value] = {"target.binary_log": False, "target.gtid": "off"}
        to = stack.enter_context(DaemonProcess(pair.source, late, folders[0], unlogged))
        from_ = stack.enter_context(DaemonProcess(late, pair.target, folders[1], channel))
        warned(to, f"nothing is listening at 127.0.0.1:{late.port}: start the target")
        warned(from_, f"nothing is listening at 127.0.0.1:{late.port}: start the source")
        late.start()
        to.wait_until_caught_up()
        assert to.stop() == 0
        from_.wait_until_running()
        # In good order, too: that is no error of its binlog.
        late.stop()
        warned(from_, "source not connected")
        assert from_.stop() == 0


def test_hosts_that_are_not_known_are_waited_for(pair: Pair, tmp_path: Path) -> None:
    settings: dict[str, Value] = {"target.host": "no-such-host.invalid"}
    with DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
        warned(daemon, "host 'no-such-host.invalid' cannot be resolved")
        warned(daemon, "check [target] host")
        assert daemon.stop() == 0


def test_too_many_connections_are_waited_for(pair: Pair, tmp_path: Path) -> None:
    pair.source.sql("SET sql_log_bin = 0; ALTER USER repl@'%' WITH MAX_USER_CONNECTIONS 1")
    settings: dict[str, Value] = {"source.user": "repl", "source.password": "right"}
    port = pair.source.port
    with closing(DaemonProcess(pair.source, pair.target, tmp_path, settings)) as daemon:
        with pymysql.connect(host="127.0.0.1", port=port, user="repl", password="right"):
            daemon.start()
            warned(daemon, "error 1226")
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
    pair.source.sql("SET sql_log_bin = 0; ALTER USER repl@'%' WITH MAX_USER_CONNECTIONS 0")


def test_a_server_that_accepts_and_is_silent(pair: Pair, tmp_path: Path) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        port = silent.getsockname()[1]
        settings: dict[str, Value] = {"target.port": port, "target.connect_timeout": 0.5}
        with DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
            warned(daemon, f"no answer from 127.0.0.1:{port} within 0.5 s")
            assert daemon.stop() == 0


def test_another_replica_has_the_server_id(pair: Pair, tmp_path: Path) -> None:
    with Server({"server_id": 4201}) as native:
        native.sql(
            f"CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={pair.source.port},"
            " SOURCE_USER='repl', SOURCE_PASSWORD='right', GET_SOURCE_PUBLIC_KEY=1,"
            " SOURCE_AUTO_POSITION=1; START REPLICA IO_THREAD"
        )
        deadline = time.monotonic() + AT_ONCE_S
        while not pair.source.sql("SHOW REPLICAS"):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        ((uuid,),) = native.sql("SELECT @@server_uuid")
        settings: dict[str, Value] = {"source.heartbeat_period": 0.5}
        said = stopped_with(DaemonProcess(pair.source, pair.target, tmp_path, settings))
    assert "another replica of the source" in said
    assert f"also has server_id 4201; its server_uuid is {uuid}" in said


def test_a_copied_target_becomes_a_replica_of_its_own(pair: Pair, tmp_path: Path) -> None:
    """Whatever is copied, the daemon of the original goes on."""
    folders = tmp_path / "first", tmp_path / "second"
    for folder in folders:
        folder.mkdir()
    # The source still has the other test's replica, whose end it has not noticed.
    settings: dict[str, Value] = {"source.heartbeat_period": 0.3, "source.server_id": 4203}
    with (
        Server({"performance_schema": "ON"}) as copy,
        DaemonProcess(pair.source, pair.target, folders[0], settings) as first,
    ):
        first.wait_until_caught_up()
        copied = ("--single-transaction", "--set-gtid-purged=OFF", "--databases", "a", "mtsd")
        copy.tool("mysql", stdin=pair.target.tool("mysqldump", *copied))
        second = DaemonProcess(pair.source, copy, folders[1], settings)
        config = ["--config", str(second.config)]
        said = stopped_with(second)
        ((here, there),) = copy.sql(
            "SELECT @@server_uuid, Target_uuid FROM mtsd.slave_target_identity"
            " WHERE Channel_name = ''"
        )
        assert f"were copied from another server, {there} (" in said
        assert said.split(". ")[0] in told(folders[1], second.settings).bad["position-copied"]
        # As those of an older mtsd, or as if the files had been copied, auto.cnf included.
        copy.sql("DROP TABLE mtsd.slave_target_identity")
        ((uuid,),) = copy.sql(
            "SELECT Daemon_uuid FROM mtsd.slave_relay_log_info WHERE Channel_name = ''"
        )
        assert uuid in told(folders[1], second.settings).bad["read-by-another"]
        second.log.unlink()
        said = stopped_with(second)
        assert f"as this replica, with server_id 4203 and the UUID {uuid}" in said
        assert copy.sql("SELECT Target_uuid FROM mtsd.slave_target_identity") == [(here,)]
        copy.sql(
            "INSERT INTO mtsd.slave_in_doubt VALUES"
            f" ('', 999, 1, 'f', 4, 'ddl', '{uuid}:999', '', 'a', 'DROP', '', 0, 0, '', NOW())"
        )
        assert main(["position", "adopt", *config]) == NEEDS_PERSON
        assert main(["resolve", "--group", "999", "--not-applied", *config]) == 0
        assert main(["position", "adopt", *config]) == 0
        second.settings["source.server_id"] = 4204
        with second:
            pair.source.sql("CREATE DATABASE IF NOT EXISTS peace")
            for daemon in (first, second):
                daemon.wait_until_caught_up()
            listed = {row[0]: (row[1], row[2], row[4]) for row in pair.source.sql("SHOW REPLICAS")}
            hosts = [server.sql("SELECT @@hostname, @@port")[0] for server in (pair.target, copy)]
            assert listed[4203] == (*hosts[0], uuid)
            assert listed[4204][:2] == hosts[1]
            assert listed[4204][2] != uuid
            roles = copy.sql(
                "SELECT attr_value FROM performance_schema.session_connect_attrs"
                " WHERE attr_name = 'role' ORDER BY 1"
            )
            assert roles == [("coordinator",), *((f"worker {id_}",) for id_ in range(1, 5))]
            assert first.stop() == second.stop() == 0

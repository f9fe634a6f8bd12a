"""`mtsd check` on real servers that are wrong in as many ways as they can be at once."""

import gc
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mtsd.cli.main import main
from mtsd.operations.check.lines.catalogue import Kind
from mtsd.operations.check.lines.line import Level
from tests.control.killed_daemon import leave_behind
from tests.operations.checked import configuration, told
from tests.replica.daemon_process import Value
from tests.servers.mysqld import Options
from tests.servers.pair import Pair

SOURCE: Options = {
    "binlog_format": "MIXED",
    "binlog_row_image": "MINIMAL",
    "binlog_checksum": "NONE",
    "binlog_row_value_options": "PARTIAL_JSON",
    "binlog_do_db": "a",
    "binlog_expire_logs_seconds": 3600,
    "default_storage_engine": "MyISAM",
    "enforce_gtid_consistency": "OFF",
    "gtid_mode": "OFF",
    "innodb_strict_mode": "OFF",
    "server_id": 4201,
}
TARGET: Options = {
    "event_scheduler": "ON",
    "lower_case_table_names": 0,
    "max_allowed_packet": 1 << 20,
    "max_connections": 10,
    "enforce_gtid_consistency": "OFF",
    "gtid_mode": "OFF",
    "skip_log_bin": None,
    "tls_version": "",
}


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    """Start two servers that hardly fit together."""
    with Pair(SOURCE, TARGET) as pair:
        tables = (
            "CREATE DATABASE a; CREATE DATABASE b; USE a;"
            "CREATE TABLE plain (id INT) ENGINE = MyISAM;"
            "CREATE TABLE moved (id INT NOT NULL, UNIQUE (id)) ENGINE = {};"
            "CREATE TABLE parent (id INT PRIMARY KEY) ENGINE = InnoDB;"
            "CREATE TABLE b.child (id INT PRIMARY KEY, FOREIGN KEY (id) REFERENCES a.parent (id))"
            " ENGINE = InnoDB;"
        )
        pair.source.sql(tables.format("InnoDB"))
        pair.target.sql(tables.format("MyISAM"))
        pair.target.sql("CREATE TRIGGER a.loud BEFORE INSERT ON a.plain FOR EACH ROW SET @a = 1")
        for server in (pair.source, pair.target):
            server.sql(
                # Cuts off whatever is asked without care.
                "SET GLOBAL sql_select_limit = 1;"
                "CREATE EVENT a.often ON SCHEDULE EVERY 1 YEAR STARTS '2037-01-01' DO DELETE FROM"
                " plain; CREATE USER poor IDENTIFIED BY 'right'; GRANT SELECT ON a.* TO poor"
            )
        leave_behind(pair.target, "left")
        yield pair


def _settings(pair: Pair, **changed: Value) -> dict[str, Value]:
    return {
        "source.unix_socket": str(pair.source.socket),
        "source.user": "root",
        "target.unix_socket": str(pair.target.socket),
        "target.user": "root",
        **{name.replace("__", "."): value for name, value in changed.items()},
    }


@pytest.mark.servers
def test_what_is_wrong_is_found(pair: Pair, tmp_path: Path) -> None:
    said = told(tmp_path, _settings(pair))
    assert said.status == 3
    assert set(said.bad) == {
        "batch-cut",
        "binlog-filtered",
        "events-twice",
        "foreign-keys",
        "no-checksum",
        "no-key",
        "no-local-files",
        "non-transactional",
        "own-triggers",
        "packet-small",
        "retention-short",
        "row-image-partial",
        "server-id-same",
        "start-missing",
        "statement-format",
        "sync-binlog",
        "target-engine",
        "target-without-gtids",
        "variable-differs",
    }
    for kind, name in (
        ("no-key", "a.plain"), ("non-transactional", "a.plain"), ("target-engine", "a.moved"),
        ("foreign-keys", "b.child -> a.parent"), ("own-triggers", "a.loud"),
        ("events-twice", "a.often"), ("binlog-filtered", "binlog_do_db = a"),
    ):  # fmt: skip
        assert name in said.bad[kind]
    assert "a.moved" not in said.bad["no-key"]
    assert "PARTIAL_JSON" in said.lines["event-options"]
    # Looked at, and not touched.
    assert pair.source.sql("SHOW REPLICAS") == []


@pytest.mark.servers
def test_a_target_that_takes_nothing_is_found(pair: Pair, tmp_path: Path) -> None:
    poor: dict[str, Value] = {
        "source__user": "poor", "source__password": "right",
        "target__user": "poor", "target__password": "right",
    }  # fmt: skip
    # Names of accounts have collations that go by the last one of these.
    pair.target.sql(
        "SET GLOBAL read_only = ON, GLOBAL max_user_connections = 3,"
        " GLOBAL default_collation_for_utf8mb4 = utf8mb4_general_ci"
    )
    try:
        said = told(tmp_path, _settings(pair, **poor, source__start="latest"))
        pair.target.sql("SET GLOBAL super_read_only = ON")
        frozen = told(tmp_path, _settings(pair, **poor))
    finally:
        pair.target.sql(
            "SET GLOBAL read_only = OFF, GLOBAL max_user_connections = 0,"
            " GLOBAL default_collation_for_utf8mb4 = DEFAULT"
        )
    assert said.status == frozen.status == 3
    assert {"read-only", "too-few-sessions", "accounts", "logs-unseen"} <= said.bad.keys()
    # The line of the source comes first, and has gone under that of the target.
    assert "SESSION_VARIABLES_ADMIN" in said.bad["statements-refused"]
    assert "rows are applied as SQL" in said.bad["binlog-not-allowed"]
    assert "ON `mtsd`.* TO 'poor'@'%'" in said.bad["privileges-missing"]
    assert "super-read-only" in frozen.bad


@pytest.mark.servers
def test_a_position_that_another_source_left_is_found(pair: Pair, tmp_path: Path) -> None:
    said = told(tmp_path, _settings(pair, replica__channel="left"))
    assert "binlog.000002:700" in said.lines["position"]
    assert "11 (ddl)" in said.bad["in-doubt"]
    assert "3e11fa47" in said.bad["other-source"]


@pytest.mark.servers
def test_a_target_that_replicates_by_itself_is_found(pair: Pair, tmp_path: Path) -> None:
    ((file, offset, *_),) = pair.source.sql("SHOW BINARY LOG STATUS")
    pair.target.sql(
        "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_USER = 'root',"
        f" SOURCE_PORT = {pair.source.port}, SOURCE_LOG_FILE = '{file}',"
        f" SOURCE_LOG_POS = {offset}, GET_SOURCE_PUBLIC_KEY = 1; START REPLICA"
    )
    try:
        deadline = time.monotonic() + 120
        while "native-replica" not in (said := told(tmp_path, _settings(pair))).bad:
            assert time.monotonic() < deadline, said.bad
            time.sleep(0.1)
        own = {"source__server_id": pair.target.port}
        taken = told(tmp_path, _settings(pair, **own)).bad
        assert {"server-id-maybe-taken", "server-id-of-target"} <= taken.keys()
    finally:
        pair.target.sql("STOP REPLICA; RESET REPLICA ALL")


@pytest.mark.servers
def test_one_server_for_both_is_found(pair: Pair, tmp_path: Path) -> None:
    # Over its socket on both sides it would be refused as a configuration.
    by_tcp: dict[str, Value] = {"source.unix_socket": "", "source.port": pair.target.port}
    twice = {**_settings(pair), **by_tcp}
    said = told(tmp_path, twice)
    assert {"same-server", "no-binary-log"} <= said.bad.keys()


# A refused connection over TLS is closed in order by aiomysql, and the event loop of the command
# may end before the server has answered that: its socket is then left to the garbage collector.
@pytest.mark.filterwarnings("ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.servers
def test_what_keeps_from_connecting_is_told_apart(pair: Pair, tmp_path: Path) -> None:
    def over_tcp(**changed: Value) -> dict[str, str]:
        ports = {"source.port": pair.source.port, "target.port": pair.target.port}
        settings = {
            name: value for name, value in _settings(pair, **changed).items() if "unix" not in name
        }
        return told(tmp_path, {**ports, **settings}).bad

    assert "using password: YES" in over_tcp(source__password="wrong")["access-denied"]
    nobody = over_tcp(target__user="nobody", target__tls="disabled", target__get_public_key=True)
    assert "access-denied" in nobody
    assert "nothing is listening on 127.0.0.1:1" in over_tcp(source__port=1)["refused"]
    assert "refused" in told(tmp_path, _settings(pair, source__unix_socket="no.sock")).bad
    assert "self" in over_tcp(source__tls="verify_ca")["tls-wrong-certificate"]
    assert "tls-not-offered" in over_tcp(target__tls="required")
    assert "not-compared" in over_tcp(target__tls="required")
    pair.source.sql("SET GLOBAL require_secure_transport = ON")
    try:
        assert "tls-required" in over_tcp(source__tls="disabled")
    finally:
        pair.source.sql("SET GLOBAL require_secure_transport = OFF")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        said = over_tcp(source__port=port, source__connect_timeout=0.3, target__get_public_key=True)
        assert "in 0.3 s" in said["no-answer"]
    # What the other one says still comes.
    assert "own-triggers" in said
    gc.collect()


def test_lines_are_for_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = configuration(tmp_path, {"source.port": 1, "target.port": 2})
    assert main(["check", "--config", str(config)]) == 3
    shown = capsys.readouterr().out.splitlines()
    refused = Kind.REFUSED.line(server="source", address="127.0.0.1:1")
    assert shown[0] == f"error    source connection  {refused.found}; {refused.remedy}"
    assert [line.split()[0] for line in shown] == [Level.ERROR, Level.ERROR, Level.WARNING]


def test_a_bad_configuration_is_said_before_anything_else(tmp_path: Path) -> None:
    config = configuration(tmp_path, {"source.port": 0})
    with pytest.raises(SystemExit) as raised:
        main(["check", "--config", str(config)])
    assert raised.value.code == 2

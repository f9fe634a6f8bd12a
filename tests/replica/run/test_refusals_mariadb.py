"""A MariaDB's user who lacks a privilege: the daemon and `mtsd check` name the same one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fix_daemon import stopped_with
from tests.fix_families import mariadbs
from tests.operations.checked import told
from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.mariadb import provide_mariadb
from tests.servers.mysqld import Server
from tests.servers.pair import Pair

pytestmark = pytest.mark.servers

NEEDED = {
    "source": ("REPLICATION SLAVE", "BINLOG MONITOR", "REFERENCES"),
    "target": (
        "SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "REFERENCES", "INDEX", "ALTER",
        "EXECUTE", "CREATE VIEW", "CREATE ROUTINE", "ALTER ROUTINE", "EVENT", "TRIGGER", "RELOAD",
        "BINLOG MONITOR", "BINLOG REPLAY", "SET USER", "REPLICATION SLAVE", "PROCESS",
        "SLAVE MONITOR", "CREATE TEMPORARY TABLES", "DELETE HISTORY",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with mariadbs("11.8") as pair:
        pair.source.sql(
            "CREATE DATABASE a; CREATE TABLE a.t (i INT); INSERT INTO a.t VALUES (1);"
            "CREATE DEFINER = gone@localhost VIEW a.v AS SELECT i FROM a.t"
        )
        yield pair


def without(pair: Pair, role: str, lacking: str) -> dict[str, Value]:
    """Make a user who has everything else; return the settings that name it."""
    names = ", ".join(name for name in NEEDED[role] if name != lacking)
    server = pair.source if role == "source" else pair.target
    server.sql(
        f"SET sql_log_bin = 0; CREATE OR REPLACE USER poor@'%'; GRANT {names} ON *.* TO poor@'%'"
    )
    pair.target.sql("DROP DATABASE IF EXISTS mtsd; DROP DATABASE IF EXISTS a")
    return {f"{role}.user": "poor"}


@pytest.mark.parametrize(
    ("role", "lacking"),
    [
        ("source", "REPLICATION SLAVE"),
        ("source", "BINLOG MONITOR"),
    ],
)
def test_the_same_privilege_is_named(pair: Pair, role: str, lacking: str, tmp_path: Path) -> None:
    daemon = DaemonProcess(pair.source, pair.target, tmp_path, without(pair, role, lacking))
    foretold = told(tmp_path, daemon.settings)
    assert foretold.status != 0
    said = f"error {role} privileges: 'poor'@'%' lacks {lacking}; GRANT {lacking} ON *.* TO"
    assert said in foretold.bad["privileges-missing"]
    assert not [line for line in foretold.bad.values() if "REPLICATION CLIENT" in line]
    stopped = stopped_with(daemon)
    assert lacking in stopped
    assert f"the user of [{role}] user" in stopped


def test_a_definer_of_a_view_needs_a_privilege_of_its_own(pair: Pair, tmp_path: Path) -> None:
    daemon = DaemonProcess(pair.source, pair.target, tmp_path, without(pair, "target", "SET USER"))
    foretold = told(tmp_path, daemon.settings)
    assert foretold.status == 0
    assert "GRANT SET USER ON *.* TO" in foretold.bad["definers"]
    stopped = stopped_with(daemon)
    assert "SET USER" in stopped
    assert "the user of [target] user" in stopped


def test_without_binlog_replay_rows_are_applied_as_sql(pair: Pair, tmp_path: Path) -> None:
    settings = without(pair, "target", "BINLOG REPLAY")
    with DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
        foretold = told(tmp_path, daemon.settings)
        assert foretold.status == 0
        assert "GRANT BINLOG REPLAY ON *.* TO" in foretold.bad["session-kept"]
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
    assert pair.target.sql("SELECT i FROM a.t") == [(1,)]


@pytest.mark.parametrize("role", NEEDED)
def test_nothing_is_lacking(pair: Pair, role: str, tmp_path: Path) -> None:
    daemon = DaemonProcess(pair.source, pair.target, tmp_path, without(pair, role, ""))
    bad = told(tmp_path, daemon.settings).bad
    assert not bad.keys() & {"privileges-missing", "native-replica-unseen", "circle-unseen"}
    with daemon:
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0


def test_without_seeing_the_targets_own_replica_it_runs_and_says_so(
    pair: Pair, tmp_path: Path
) -> None:
    settings = without(pair, "target", "SLAVE MONITOR")
    daemon = DaemonProcess(pair.source, pair.target, tmp_path, settings)
    assert "GRANT SLAVE MONITOR" in told(tmp_path, daemon.settings).bad["native-replica-unseen"]
    with daemon:
        status = daemon.wait_for_status(lambda it: bool(it.warnings), "no warning")
        assert "replicates from the same source cannot be seen" in status.warnings[0]
        assert daemon.stop() == 0


def test_a_target_that_lets_nobody_set_the_time(pair: Pair, tmp_path: Path) -> None:
    with Server({"secure_timestamp": "YES"}, installation=provide_mariadb("11.8")) as target:
        daemon = DaemonProcess(pair.source, target, tmp_path)
        foretold = told(tmp_path, daemon.settings)
        assert "secure_timestamp = REPLICATION" in foretold.bad["secure-timestamp"]
        said = stopped_with(daemon)
    assert "--secure-timestamp=YES" in said
    assert "read_only" not in said

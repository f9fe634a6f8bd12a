"""SIGHUP: what can change while running does, the rest is named, and a bad file changes nothing."""

import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from http import HTTPStatus
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from mtsd.config import (
    Latest,
    Loaded,
    ReplicaSettings,
    Settings,
    SourceSettings,
    TargetSettings,
    reloaded,
)
from mtsd.config.reloading import APPLIED
from mtsd.control.client import DaemonRefusedError, post
from mtsd.control.reload_route import NotNowError
from mtsd.daemon.life import Daemon
from mtsd.replica.run.replica import Replica
from mtsd.replica.run.start import start
from mtsd.schedule.policies.database_policy import DatabasePolicy
from tests.config.generated import two_values
from tests.daemon.notify_socket import NotifySocket
from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.locks import lock_of
from tests.servers.mysqld import Server
from tests.servers.pair import Pair

pytestmark = pytest.mark.servers

RELOADS = ["RELOADING=1", "READY=1"]


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with Pair() as pair:
        pair.source.sql(
            "CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY, v INT);"
            "INSERT INTO a.t VALUES (1, 0), (2, 0), (3, 0);"
            "SET sql_log_bin = 0; CREATE USER repl IDENTIFIED BY 'geheim-1';"
            "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO repl"
        )
        yield pair


@pytest.fixture(autouse=True)
def _no_channel(pair: Pair) -> None:
    """Forget the channels of other tests, as one source is on one channel only."""
    pair.target.sql("DROP DATABASE IF EXISTS mtsd")


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[NotifySocket]:
    with NotifySocket(tmp_path) as manager:
        yield manager


def reload(daemon: DaemonProcess, manager: NotifySocket) -> list[dict[str, object]]:
    """Have the daemon read its configuration again; returns what it logs about it."""
    states, records = len(manager.states()), len(daemon.records())
    daemon.reload()
    manager.wait_for(lambda it: len(it.states()) == states + 2)
    assert manager.states()[states:] == RELOADS
    return daemon.records()[records:]


def stored(target: Server) -> int:
    ((number,),) = target.sql("SELECT Group_number FROM mtsd.slave_relay_log_info")
    return int(number)


def test_a_running_daemon_takes_over_what_can_change(
    pair: Pair, manager: NotifySocket, tmp_path: Path
) -> None:
    settings: dict[str, Value] = {
        "source.user": "repl", "source.password": "geheim-1", "replica.parallel_workers": 1,
        "replica.checkpoint_period": 3600.0,
    }  # fmt: skip
    daemon = DaemonProcess(pair.source, pair.target, tmp_path, settings, environ=manager.environ)
    with daemon:
        daemon.wait_until_caught_up()
        before = stored(pair.target)

        # Each with an effect of its own, below; and one that is for the next start.
        daemon.settings |= {
            "replica.checkpoint_period": 0.1,
            "replica.batch_groups": 1,
            "replica.skip_errors": json.loads("[1032]"),
            "replica.parallel_workers": 2,
        }
        daemon.configure()
        restart, done = reload(daemon, manager)
        assert restart["level"] == "warning"
        assert restart["keys"] == ["replica.parallel_workers"]
        assert done["level"] == "info"
        assert done["applied"] == [
            "replica.batch_groups", "replica.checkpoint_period", "replica.skip_errors",
        ]  # fmt: skip
        assert done["for_next_connection"] == []
        deadline = time.monotonic() + 120
        while stored(pair.target) == before:
            assert time.monotonic() < deadline, "checkpoint_period has not changed"
            time.sleep(0.05)
        pair.target.sql("DELETE FROM a.t WHERE id = 2")
        pair.source.sql("UPDATE a.t SET v = 1 WHERE id = 2; UPDATE a.t SET v = 1 WHERE id = 3")
        daemon.wait_until_caught_up()
        assert pair.target.sql("SELECT * FROM a.t") == [(1, 0), (3, 1)]
        status = daemon.status()
        assert status is not None
        assert len(status.workers) == 1

        # The password, for the connection that comes after this one.
        pair.source.sql("SET sql_log_bin = 0; ALTER USER repl IDENTIFIED BY 'geheim-2'")
        daemon.settings["source.password"] = "geheim-2"
        daemon.configure()
        _, done = reload(daemon, manager)
        assert done["for_next_connection"] == ["source.password"]
        ((session,),) = pair.source.sql(
            "SELECT ID FROM information_schema.PROCESSLIST WHERE USER = 'repl'"
        )
        pair.source.sql(f"KILL {session}")
        pair.source.sql("INSERT INTO a.t VALUES (4, 0)")
        daemon.wait_until_caught_up()

        # How long a stop may take.
        daemon.settings["replica.stop_timeout"] = 0.5
        daemon.configure()
        reload(daemon, manager)
        with pair.target.client() as client, client.cursor() as cursor:
            cursor.execute("LOCK TABLES a.t WRITE")
            pair.source.sql("INSERT INTO a.t VALUES (5, 0)")
            deadline = time.monotonic() + 120
            while not ((status := daemon.status()) and status.workers[0].state != "idle"):
                assert time.monotonic() < deadline
                time.sleep(0.05)
            assert daemon.stop() == 1
        assert "stop_timeout passed" in str(daemon.records()[-1]["error"])
    assert "geheim" not in daemon.log.read_text()


def test_what_is_opened_later_uses_the_new_account_and_sizes(
    pair: Pair, manager: NotifySocket, tmp_path: Path
) -> None:
    """A transaction that is split reads the target's keys on a session of its own."""
    pair.target.sql("CREATE USER late IDENTIFIED BY 'geheim-3'; GRANT ALL ON *.* TO late")
    settings: dict[str, Value] = {
        "target.user": "late", "target.password": "geheim-3", "replica.consistency": "eventual",
        "replica.split_transactions": "row", "source.start": "latest",
    }  # fmt: skip
    daemon = DaemonProcess(pair.source, pair.target, tmp_path, settings, environ=manager.environ)
    rows = (
        "INSERT INTO a.large WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n"
        " WHERE i < 300) SELECT {} + i, REPEAT('x', 1000) FROM n"
    )
    with daemon:
        daemon.wait_until_running()
        pair.source.sql("CREATE TABLE a.large (id INT PRIMARY KEY, v VARCHAR(1000))")
        pair.source.sql(rows.format(0))
        daemon.wait_until_caught_up()
        pair.target.sql("ALTER USER late IDENTIFIED BY 'geheim-4'")
        daemon.settings |= {"target.password": "geheim-4", "replica.batch_bytes": 65536}
        daemon.configure()
        (done,) = reload(daemon, manager)
        assert done["applied"] == ["replica.batch_bytes"]
        assert done["for_next_connection"] == ["target.password"]
        assert not [each for each in daemon.records() if "splitting" in str(each["event"])]
        pair.source.sql(rows.format(300))
        daemon.wait_for_record("splitting a large group")
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
    assert pair.target.sql("SELECT COUNT(*) FROM a.large") == [(600,)]


def policy_of(replica: Replica) -> DatabasePolicy:
    policy = replica._coordinator.scheduler._policy
    assert isinstance(policy, DatabasePolicy)
    return policy


REACHES: dict[str, Callable[[Replica], object]] = {
    "replica.batch_groups": lambda it: it._coordinator.scheduler.limits.batch_groups,
    "replica.batch_bytes": lambda it: (
        it._coordinator.scheduler.limits.batch_bytes, it._stream.settings.chunk_bytes,
    ),
    "replica.pending_jobs_size_max": lambda it: (
        it._coordinator.scheduler.limits.pending_jobs_size_max, it._stream.settings.hold_bytes,
    ),
    "replica.checkpoint_group": lambda it: it._coordinator.scheduler.limits.checkpoint_group,
    "replica.checkpoint_period": lambda it: it._checkpointer.period,
    "replica.transaction_retries": lambda it: {
        worker.settings.transaction_retries for worker in it._workers
    },
    "replica.skip_errors": lambda it: {worker.settings.skip_errors for worker in it._workers},
    "replica.stop_timeout": lambda it: it._settings.replica.stop_timeout,
    "replica.delay": lambda it: it._delayed.delay,
    "replica.bind": lambda it: policy_of(it)._partition_of,
    "replica.pin": lambda it: policy_of(it).placement._pinned,
    "replica.weigh": lambda it: policy_of(it).aph._weight_of("a"),
    "target.user": lambda it: it._current.endpoint.user,
    "target.password": lambda it: it._current.endpoint.password,
    "target.connect_timeout": lambda it: it._current.endpoint.connect_timeout,
    "source.user": lambda it: it._stream.endpoint.user,
    "source.password": lambda it: it._stream.endpoint.password,
    "source.connect_timeout": lambda it: it._stream.endpoint.connect_timeout,
}  # fmt: skip
"""Where a key is in a replica that runs."""


async def test_every_key_reaches_what_it_is_for(pair: Pair) -> None:
    settings = Settings(
        source=SourceSettings(port=pair.source.port, user="root", start=Latest()),
        target=TargetSettings(port=pair.target.port, user="root"),
        replica=ReplicaSettings(channel="reaches", parallel_workers=2),
    )
    replica = await start(settings)
    try:
        for key, where in REACHES.items():
            section, _, name = key.partition(".")
            now = getattr(settings, section)
            first, second = two_values(key)
            value = second if getattr(now, name) == first else first
            read = replace(settings, **{section: type(now)(**{**vars_of(now), name: value})})
            before = where(replica)
            change = reloaded(settings, read)
            assert change.applied + change.for_next_connection == (key,)
            replica.reload(change.settings)
            assert where(replica) != before, key
            replica.reload(settings)
            assert where(replica) == before, key
        assert {key for key in REACHES if key.startswith("replica.")} == {
            key for key in APPLIED if key.startswith("replica.")
        }
    finally:
        await replica._close()


async def test_what_is_not_combined_stays_so(pair: Pair) -> None:
    settings = Settings(
        source=SourceSettings(port=pair.source.port, user="root", start=Latest()),
        target=TargetSettings(port=pair.target.port, user="root", gtid="preserve"),
        replica=ReplicaSettings(channel="preserves", parallel_workers=1),
    )
    replica = await start(settings)
    try:
        replica.reload(replace(settings, replica=ReplicaSettings(batch_groups=5)))
        assert replica._coordinator.scheduler.limits.batch_groups == 1
    finally:
        await replica._close()


def vars_of(section: object) -> dict[str, object]:
    assert is_dataclass(section)
    return {item.name: getattr(section, item.name) for item in fields(section)}


def test_a_bad_file_is_one_record_and_changes_nothing(
    pair: Pair, manager: NotifySocket, tmp_path: Path
) -> None:
    settings = {"replica.channel": "bad", "source.start": "latest"}
    daemon = DaemonProcess(pair.source, pair.target, tmp_path, settings, environ=manager.environ)
    with daemon:
        daemon.wait_until_running()
        good = daemon.config.read_text()
        wrong = good.replace("[log]", "[log]\nlevel = 7").replace("[target]", "[target]\nno = 1")
        daemon.config.write_text(wrong + "[replicas]\npassword = 'geheim-1'\n")
        (record,) = reload(daemon, manager)
        assert record["level"] == "error"
        assert record["event"] == "configuration refused, nothing has changed"
        problems = record["problems"]
        assert isinstance(problems, list)
        assert [problem.split(":")[0] for problem in problems] == [
            "target.no", "replicas", "log.level",
        ]  # fmt: skip
        assert "allowed is one of" in problems[2]
        assert "found 7" in problems[2]

        daemon.config.write_text("= no TOML\n")
        (record,) = reload(daemon, manager)
        assert "line 1" in str(record["problems"])
        daemon.config.unlink()
        (record,) = reload(daemon, manager)
        assert "No such file" in str(record["problems"])
        # What a shell's <(…) is.
        os.mkfifo(daemon.config)
        (record,) = reload(daemon, manager)
        assert "is a pipe" in str(record["problems"])
        daemon.config.unlink()
        # A full disk, or an editor in the middle of its work.
        daemon.config.write_text("\n")
        (record,) = reload(daemon, manager)
        assert "has no settings any more" in str(record["problems"])

        # A certificate that cannot be used, which the key's own check does not see.
        (tmp_path / "ca.pem").write_text("no certificate")
        daemon.settings |= {"target.tls": "verify_ca", "target.tls_ca": "ca.pem"}
        daemon.configure()
        (record,) = reload(daemon, manager)
        assert "target.tls_ca" in str(record["problems"])

        daemon.config.write_text(good)
        (record,) = reload(daemon, manager)
        assert record["event"] == "configuration reloaded"
        assert record["applied"] == record["for_next_connection"] == []
        assert daemon.stop() == 0


def test_over_the_control_socket_the_one_who_asks_is_told(
    pair: Pair, manager: NotifySocket, tmp_path: Path
) -> None:
    settings = {"replica.channel": "socket", "source.start": "latest"}
    daemon = DaemonProcess(pair.source, pair.target, tmp_path, settings, environ=manager.environ)
    socket = tmp_path / "mtsd.sock"
    with daemon:
        daemon.wait_until_running()
        daemon.settings |= {"replica.batch_groups": 1, "replica.parallel_workers": 2}
        daemon.configure()
        records = len(daemon.records())
        assert post(socket, "/reload") == {
            "applied": ["replica.batch_groups"],
            "for_next_connection": [],
            "need_restart": ["replica.parallel_workers"],
        }
        assert daemon.records()[-1]["event"] == "configuration reloaded"
        assert len(daemon.records()) == records + 2
        manager.wait_for(lambda it: it.states()[-2:] == RELOADS)
        good = daemon.config.read_text()
        daemon.config.write_text(good.replace("[log]", "[log]\nlevel = 7"))
        with pytest.raises(
            DaemonRefusedError, match=r"nothing has changed: log\.level: "
        ) as raised:
            post(socket, "/reload")
        assert raised.value.status == HTTPStatus.UNPROCESSABLE_ENTITY
        assert daemon.stop() == 0
    assert post(socket, "/reload") is None


def test_the_log_changes_its_level_and_form(
    pair: Pair, manager: NotifySocket, tmp_path: Path
) -> None:
    settings = {"replica.channel": "log", "source.start": "latest"}
    daemon = DaemonProcess(pair.source, pair.target, tmp_path, settings, environ=manager.environ)
    with daemon:
        daemon.wait_until_running()
        daemon.settings["log.level"] = "error"
        daemon.configure()
        assert reload(daemon, manager) == []
        daemon.settings |= {"log.level": "info", "log.format": "console"}
        daemon.configure()
        assert reload(daemon, manager) == [], "no JSON any more"
        assert "configuration reloaded" in daemon.log.read_text().splitlines()[-1]
        assert daemon.stop() == 0


def test_a_reload_while_starting_is_not_the_end_of_the_start(
    pair: Pair, manager: NotifySocket, tmp_path: Path
) -> None:
    settings = {"replica.channel": "early", "source.start": "latest"}
    daemon = DaemonProcess(pair.source, pair.target, tmp_path, settings, environ=manager.environ)
    with pair.target.client() as client, client.cursor() as cursor:
        cursor.execute("SELECT GET_LOCK(%s, 0)", (lock_of(pair.target, "early"),))
        daemon.start()
        try:
            deadline = time.monotonic() + 120
            while daemon.status() is None:
                assert time.monotonic() < deadline
                time.sleep(0.05)
            daemon.settings["replica.stop_timeout"] = 7.0
            daemon.configure()
            daemon.reload()
            while not (
                said := [r for r in daemon.records() if r["event"] == "configuration reloaded"]
            ):
                assert time.monotonic() < deadline
                time.sleep(0.05)
            assert said[0]["applied"] == ["replica.stop_timeout"]
            assert manager.states() == []
            cursor.execute("SELECT RELEASE_ALL_LOCKS()")
            daemon.wait_until_running()
            assert manager.states() == ["READY=1"]
            assert daemon.stop() == 0
        finally:
            daemon.close()


def test_a_daemon_that_stops_reads_nothing_again() -> None:
    def read() -> Loaded:
        pytest.fail("the configuration is read")

    daemon = Daemon(Settings(), {}, read)
    with capture_logs() as logs:
        daemon.stop()
        with pytest.raises(NotNowError, match="the daemon is stopping"):
            daemon.reload()
    assert "the daemon is stopping" in str(logs[-1]["event"])

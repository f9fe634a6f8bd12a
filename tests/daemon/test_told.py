"""What `mtsd status` says of a replica whose servers go and return, and of one that has ended."""

import http.client
import os
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from mtsd.cli.main import main
from mtsd.control.place import Place
from mtsd.control.server_status import ConnectionsStatus, ConnectionStatus, ErrorStatus
from mtsd.control.status import Status, WorkerStatus
from mtsd.control.stop_file import StopFile
from mtsd.control.stop_status import HELD, NOT_SAID, LastStopStatus
from mtsd.model.outcome.exit_status import ExitStatus
from tests.daemon.shown import all_shown, read_tables
from tests.replica.daemon_process import DaemonProcess
from tests.servers.mysqld import GTIDS, Server, _lock_of_a_free_port
from tests.servers.pair import Pair

pytestmark = pytest.mark.servers

ON_TARGET = (
    "SELECT worker_id, service_state, state, last_error_number FROM"
    " mtsd.replication_applier_status_by_worker WHERE channel_name = '' ORDER BY worker_id"
)


class Asked:
    """`mtsd status --json` of a daemon's configuration: its exit status, and what it says."""

    def __init__(self, daemon: DaemonProcess, capsys: pytest.CaptureFixture[str]) -> None:
        capsys.readouterr()
        before = Path.cwd()
        os.chdir(daemon.folder)
        try:
            self.exit = main(["status", "--config", str(daemon.config), "--json"])
        finally:
            os.chdir(before)
        self.status = Status.from_json(capsys.readouterr().out)

    @property
    def last_stop(self) -> LastStopStatus:
        assert self.status.last_stop is not None
        return self.status.last_stop


class Scrape:
    """What a daemon answers over TCP, at an address that is this test's alone."""

    def __init__(self) -> None:
        self._port_lock = _lock_of_a_free_port()
        host, port = self._port_lock.getsockname()
        self.address = f"{host}:{port}"

    def close(self) -> None:
        """Give the address back."""
        self._port_lock.close()

    def get(self, path: str, body: bytes | None = None) -> tuple[int, str]:
        """Return the status and the text of the answer to a GET, or to a POST of `body`."""
        connection = http.client.HTTPConnection(self.address, timeout=10)
        try:
            connection.request("GET" if body is None else "POST", path, body)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def metrics(self) -> dict[str, float]:
        """Return the samples of /metrics by name, the last one of each."""
        code, text = self.get("/metrics")
        assert code == http.client.OK
        return {
            sample.name: sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }


def _connection(status: Status, name: str) -> ConnectionStatus:
    return {"source": status.connections.source, "target": status.connections.target}[name]


def _rows_when(server: Server, query: str, first: tuple[object, ...]) -> list[tuple[object, ...]]:
    """Return the rows of a query as soon as the first is that one."""
    deadline = time.monotonic() + 60
    while (rows := server.sql(query))[:1] != [first]:
        assert time.monotonic() < deadline, rows
        time.sleep(0.1)
    return rows


def _is_tried(name: str) -> Callable[[Status], bool]:
    return lambda status: _connection(status, name).attempts >= 3


def assert_all_agree(status: Status, server: Server) -> None:
    """Check that each way to look at a replica shows the same of it."""
    shown = all_shown(status, server)
    expected = shown["json"]
    for name, each in shown.items():
        connected = expected.connected if each.connected is None else each.connected
        assert replace(each, connected=connected) == expected, name


SINCE = "2026-07-01T10:00:00+00:00"
UP = ConnectionStatus(connected=True, since=SINCE)
AWAY = ConnectionStatus(
    since=SINCE, attempts=3, last_error=ErrorStatus(0, "nothing is listening", SINCE)
)
RUNNING = Status(
    "running", "h:1", "h:2", channel="c", lag_seconds=90.5, lag_beyond_delay=90.5,
    pending_groups=1200, pending_bytes=1 << 20, connections=ConnectionsStatus(UP, UP),
    workers=(
        WorkerStatus(1, "applying", 7), WorkerStatus(2, "waiting", 3, waits_for="partition"),
        WorkerStatus(3, "idle"), WorkerStatus(4, "frozen"),
    ),
)  # fmt: skip
NOT_RUN = replace(
    RUNNING, lag_seconds=None, lag_beyond_delay=None, pending_groups=0, pending_bytes=0, workers=()
)
STATUSES = {
    "running": RUNNING,
    "delayed": replace(RUNNING, state="delayed", delay=60, remaining_delay=9.0),
    "read-only": replace(RUNNING, state="waiting", doing="the target is read-only: error 1290: r"),
    "source away": replace(
        RUNNING, state="connecting", lag_seconds=None, connections=ConnectionsStatus(AWAY, UP)
    ),
    "target away": replace(
        NOT_RUN, state="connecting", connections=ConnectionsStatus(ConnectionStatus(), AWAY)
    ),
    "target just back": replace(
        NOT_RUN, state="recovering", doing="opens the sessions",
        connections=ConnectionsStatus(AWAY, replace(UP, last_error=AWAY.last_error)),
    ),
    "failed": replace(
        NOT_RUN, state="failed", connections=ConnectionsStatus(AWAY, AWAY),
        last_stop=LastStopStatus(SINCE, False, "Duplicate entry", 1062, 8),
    ),
}  # fmt: skip


def test_a_replica_is_told_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with closing(Scrape()) as scrape, Pair(GTIDS, GTIDS) as pair:
        daemon = DaemonProcess(
            pair.source,
            pair.target,
            tmp_path,
            {"status.listen": scrape.address, "log.summary_period": 1, "status.tables": True},
        )
        pair.source.sql("CREATE DATABASE a; CREATE TABLE a.t (i INT PRIMARY KEY)")
        with daemon:
            daemon.wait_until_caught_up()
            told = Asked(daemon, capsys)
            assert scrape.get("/healthz") == scrape.get("/readyz") == (200, "ok\n")
            # Of the commands of a daemon there is nothing.
            code, said = scrape.get("/distribute", b"{}")
            assert (code, "only: /healthz, /metrics, /readyz" in said) == (404, True)
            scraped = scrape.metrics()
            assert scraped["mtsd_applied_groups_total"] == told.status.totals.groups == 2
            assert scraped["mtsd_commit_to_apply_seconds_count"] == 2
            assert scraped["mtsd_source_connected"] == scraped["mtsd_target_connected"] == 1
            assert not told.status.pending_groups
            assert [(each.name, each.groups) for each in told.status.databases] == [("a", 2)]
            assert (told.exit, told.status.state) == (ExitStatus.DONE, "running")
            for each in (told.status.connections.source, told.status.connections.target):
                assert (each.connected, each.attempts, each.last_error) == (True, 0, None)
            assert_all_agree(told.status, pair.target)
            for status in STATUSES.values():
                assert_all_agree(status, pair.target)
            executed = told.status.executed.gtid
            for name, server in (("source", pair.source), ("target", pair.target)):
                server.kill()
                away = daemon.wait_for_status(_is_tried(name), "it does not try again")
                assert Asked(daemon, capsys).exit == ExitStatus.NOT_CONNECTED
                assert away.state == "connecting"
                assert scrape.get("/readyz") == (503, "connecting\n")
                scraped = scrape.metrics()
                assert scraped[f"mtsd_{name}_connected"] == 0
                assert "mtsd_lag_seconds" not in scraped
                assert "mtsd_source_bytes_behind" not in scraped
                # What was counted stays, also where the run has ended with the target.
                assert scraped["mtsd_applied_groups_total"] == 2
                lost = _connection(away, name)
                assert not lost.connected
                assert lost.last_error is not None
                assert lost.last_error.text.startswith(
                    f"cannot connect to the {name}: nothing is listening"
                )
                assert away.lag_seconds is None
                assert away.last_error == lost.last_error.text
                assert away.executed.gtid == executed
                assert Place() not in {away.executed, away.received}
                server.start()
                daemon.wait_for_record(f"the {name} is back")
                back = daemon.wait_for_status(
                    lambda now: now.state == "running" and now.lag_seconds is not None, "not back"
                )
                assert back.last_error is None
            asked = daemon.wait_for_status(
                lambda now: now.source_log.bytes_behind == 0, "the source's log is not asked about"
            ).source_log
            month = 2_592_000
            assert month - 60 < (asked.retention_left_seconds or 0) <= month
            assert asked.heard > told.status.daemon.started
            rows = _rows_when(pair.target, ON_TARGET, (0, "ON", "running", 0))
            assert [number for number, *_ in rows] == [0, 1, 2, 3, 4]
            # What the daemon writes is what it says at once.
            now = Asked(daemon, capsys).status
            assert read_tables(pair.target, "") == replace(
                all_shown(now, pair.target)["json"], connected=None
            )
            summary = daemon.wait_for_record("summary")
            assert (summary["level"], summary["applied"]) == ("info", 2)
            # It comes once the source has told its server_id.
            _rows_when(pair.target, "SELECT COUNT(*) FROM mtsd.heartbeat", (1,))
            ((server_id, behind, file),) = pair.target.sql(
                "SELECT server_id, TIMESTAMPDIFF(SECOND, ts, UTC_TIMESTAMP(6)),"
                " relay_master_log_file FROM mtsd.heartbeat"
            )
            assert pair.source.sql("SELECT @@server_id") == [(server_id,)]
            assert (0 <= behind < 60, file) == (True, pair.source.binlog_end()[0])
            logged = pair.target.sql("SHOW BINLOG EVENTS")
            assert not [row for row in logged if "status_by_worker" in str(row[5])]
            events = [record["event"] for record in daemon.records()]
            # One for each reason, however many attempts there were.
            assert 1 <= events.count("source not connected") <= 3
            assert 1 <= events.count("replication interrupted") <= 3
            assert daemon.stop() == 0
            assert pair.target.sql(ON_TARGET)[0] == (0, "OFF", "stopped", 0)
        told = Asked(daemon, capsys)
        assert (told.exit, told.status.state) == (ExitStatus.NOT_RUNNING, "stopped")
        assert told.last_stop.graceful
        file = StopFile(tmp_path / "mtsd.sock").path
        assert not file.exists()

        daemon.start()
        daemon.wait_until_caught_up()
        (tmp_path / "mtsd.sock").unlink()
        told = Asked(daemon, capsys)
        assert (told.exit, told.status.doing.split()[:3]) == (ExitStatus.FAILED, HELD.split()[:3])
        daemon.kill()
        told = Asked(daemon, capsys)
        assert (told.exit, told.status.doing) == (ExitStatus.FAILED, NOT_SAID)

        daemon.settings["replica.stop_timeout"] = 0.1
        daemon.start()
        daemon.wait_until_running()
        with closing(pair.target.client()) as other:
            other.cursor().execute("LOCK TABLES a.t WRITE")
            pair.source.sql("INSERT INTO a.t VALUES (2)")
            daemon.wait_for_status(
                lambda now: any(worker.target_wait is not None for worker in now.workers),
                "nothing waits for the lock",
            )
            assert daemon.stop() == ExitStatus.FAILED
        assert pair.target.sql(ON_TARGET)[0] == (0, "OFF", "failed", 0)
        del daemon.settings["replica.stop_timeout"]

        daemon.settings["target.password"] = "wrong"
        daemon.start()
        assert daemon.wait() == ExitStatus.NEEDS_PERSON
        del daemon.settings["target.password"]
        daemon.configure()
        told = Asked(daemon, capsys)
        assert (told.exit, told.status.state) == (ExitStatus.NEEDS_PERSON, "failed")
        assert "refuses user 'root'" in told.last_stop.text
        assert told.last_stop.number == 1045
        assert file.stat().st_mode & 0o777 == 0o600

        pair.target.sql("SET sql_log_bin = 0; INSERT INTO a.t VALUES (1)")
        daemon.settings["replica.on_error"] = "stay"
        daemon.start()
        pair.source.sql("INSERT INTO a.t VALUES (1)")
        daemon.wait_for_record("the daemon stays")
        assert scrape.get("/healthz")[0] == 200
        assert scrape.get("/readyz") == (503, "failed\n")
        scraped = scrape.metrics()
        assert (scraped["mtsd_stop_error_number"], scraped["mtsd_stop_group"]) == (1062, 4)
        stays = Asked(daemon, capsys)
        assert stays.exit == ExitStatus.NEEDS_PERSON
        assert stays.status.stopped_at is not None
        _rows_when(pair.target, ON_TARGET, (0, "OFF", "failed", 1062))
        assert_all_agree(stays.status, pair.target)
        # Rules that look at a replica know which one has failed.
        assert stays.status.source_log.server_id == pair.source.sql("SELECT @@server_id")[0][0]
        # It is in nobody's way.
        assert main(["skip", "--config", str(daemon.config)]) == 0
        assert daemon.stop() == ExitStatus.NEEDS_PERSON
        assert pair.target.sql(ON_TARGET) == [(0, "OFF", "failed", 1062)]
        del daemon.settings["replica.on_error"]
        told = Asked(daemon, capsys)
        assert told.exit == ExitStatus.NEEDS_PERSON
        assert (told.last_stop.number, told.last_stop.group) == (1062, 4)
        assert "Duplicate entry" in told.last_stop.text
        assert told.status.stopped_at == stays.status.stopped_at
        assert not file.exists()
        # A second daemon that is refused does not speak for the one that runs.
        pair.target.sql("SET sql_log_bin = 0; DELETE FROM a.t")
        daemon.start()
        daemon.wait_until_caught_up()
        (other_folder := tmp_path / "other").mkdir()
        other = DaemonProcess(pair.source, pair.target, other_folder, {"source.server_id": 4202})
        other.start()
        assert other.wait() == ExitStatus.NEEDS_PERSON
        daemon.kill()
        assert Asked(daemon, capsys).status.doing == NOT_SAID
        assert "another mtsd is running" in Asked(other, capsys).last_stop.text
        # Who may not read the tables sees none of them: that is no channel that has never run.
        pair.target.sql("CREATE USER blind@'%'")
        daemon.settings["target.user"] = "blind"
        daemon.configure()
        for words, ends in (
            (["status"], ExitStatus.FAILED),
            (["position", "show"], ExitStatus.NEEDS_PERSON),
            (["skip"], ExitStatus.NEEDS_PERSON),
            (["resolve"], ExitStatus.NEEDS_PERSON),
        ):
            capsys.readouterr()
            assert main([*words, "--config", str(daemon.config)]) == ends
            printed = capsys.readouterr()
            assert not printed.out or words == ["status"]
            assert "SELECT command denied to user 'blind'@" in printed.err
            assert "Grant it to the user of [target] user" in printed.err

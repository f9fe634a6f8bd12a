import asyncio
import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from mtsd.apply.position.position_tables import PositionTables
from mtsd.cli.main import main
from mtsd.cli.status import exit_status, lines
from mtsd.control.place import Place
from mtsd.control.server import ControlServer
from mtsd.control.server_status import ConnectionsStatus, ConnectionStatus, ErrorStatus
from mtsd.control.status import PartitionStatus, Status, TargetWaitStatus, WorkerStatus
from mtsd.control.status_route import status_route
from mtsd.control.stop_file import StopFile
from mtsd.control.stop_status import (
    NONE_YET,
    NOT_BEGUN,
    NOT_SAID,
    InDoubtStatus,
    LastStopStatus,
    SkippedStatus,
    StoppedStatus,
)
from mtsd.model.outcome.exit_status import ExitStatus
from mtsd.model.outcome.last_stop import LastStop
from tests.control.killed_daemon import UUID, leave_behind
from tests.fix_commands import imported_by
from tests.servers.mysqld import Server


@pytest.fixture(scope="module")
def target() -> Iterator[Server]:
    with Server() as server:
        yield server


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Configure a socket that nobody answers on and a target that is not there."""
    return _config(tmp_path, tmp_path / "no.sock")


def _config(folder: Path, unix_socket: Path, channel: str = "") -> Path:
    path = folder / "mtsd.toml"
    path.write_text(
        f'[target]\nunix_socket = "{unix_socket}"\nuser = "root"\nconnect_timeout = 3.0\n'
        f'[replica]\nchannel = "{channel}"\n',
        encoding="utf-8",
    )
    path.chmod(0o600)
    return path


@contextmanager
def _daemon(path: Path, status: Status) -> Iterator[None]:
    """Answer on `path` from another thread."""
    started, stopping = threading.Event(), asyncio.Event()
    with asyncio.Runner() as runner:

        async def live() -> None:
            server = ControlServer(path, [status_route(lambda: status)])
            await server.start()
            started.set()
            await stopping.wait()
            await server.stop()

        loop = runner.get_loop()
        thread = threading.Thread(target=loop.run_until_complete, args=(live(),))
        thread.start()
        assert started.wait(10)
        try:
            yield
        finally:
            loop.call_soon_threadsafe(stopping.set)
            thread.join()


WHEN = "2026-01-02T03:04:05+00:00"
CONNECTED = ConnectionStatus(connected=True, since=WHEN)
LOST = ConnectionStatus(
    since=WHEN, attempts=3, next_in=2.14, last_error=ErrorStatus(0, "connection\nlost", WHEN)
)
STATUS = Status(
    state="running",
    connections=ConnectionsStatus(CONNECTED, CONNECTED),
    source="10.0.0.1:3306",
    target="/run/mysqld.sock",
    channel="c1",
    received=Place("binlog.000002", 900, f"{UUID}:1-9"),
    executed=Place("binlog.000002", 700, f"{UUID}:1-7"),
    lag_seconds=0.25,
    pending_groups=2,
    pending_bytes=5 * 1024 * 1024,
    last_error="group 9 was rolled back",
    workers=(
        WorkerStatus(1, "applying", 12, 34567, 7, 1, 0, Place("binlog.000002", 700), 0.873),
        WorkerStatus(10, "waiting", waits_for="dependency"),
    ),
    partitions=(PartitionStatus("blog", None), PartitionStatus("shop", 1, 2, 0.25, 7)),
    waits={"dependency": 0.5, "pending_bytes": 12.25, "alone": 0.01},
    reading_waits_for="pending_bytes",
    run_seconds=25.0,
    in_doubt=(InDoubtStatus(8, 1, "ddl", Place("binlog.000002", 800, f"{UUID}:8"), "shop"),),
    prepared_transactions=2,
)


def test_a_running_daemon_is_asked(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with _daemon(tmp_path / "mtsd.sock", STATUS):
        ours = ["--config", str(config), "--set", "replica.channel=c1"]
        assert main(["status", *ours]) == ExitStatus.DONE
        told = capsys.readouterr()
        assert told.out.splitlines() == list(lines(STATUS))
        assert main(["status", *ours, "--json"]) == ExitStatus.DONE
        assert Status.from_json(capsys.readouterr().out) == STATUS
        assert main(["status", "--config", str(config)]) == ExitStatus.DONE
        assert "mtsd.sock has channel 'c1', and not ''" in capsys.readouterr().err
    assert told.err == ""


def test_a_daemon_is_asked_without_what_reads_the_target(config: Path, tmp_path: Path) -> None:
    with _daemon(tmp_path / "mtsd.sock", STATUS):
        modules = imported_by("status", "--config", str(config))
    assert not modules & {"pymysqlreplication", "aiomysql", "mtsd.operations.stored_status"}


def test_the_layout_for_people() -> None:
    assert (
        "\n".join(lines(STATUS))
        == f"""\
state           running
source          10.0.0.1:3306, connected since {WHEN}
target          /run/mysqld.sock, connected since {WHEN}
channel         c1
received        binlog.000002:900
received GTIDs  {UUID}:1-9
executed        binlog.000002:700
executed GTIDs  {UUID}:1-7
lag             0.250 s
pending         2 groups, 5.0 MiB
reading         waiting: pending_bytes
prepared        2 XA transactions
last error      group 9 was rolled back

in doubt: group  kind  databases  end                gtid
              8  ddl   shop       binlog.000002:800  {UUID}:8

worker  queued     bytes  groups  commits  retries  busy  state                last
     1      12  33.8 KiB       7        1        0   87%  applying             binlog.000002:700
    10       0       0 B       0        0        0    0%  waiting: dependency

partition  worker  pending      lag  groups
shop            1        2  0.250 s       7
blog            -        0  0.000 s       0

waited for       time  share
pending_bytes  12.2 s  49% of the time
dependency      0.5 s  1% of the time of all workers"""
    )


def test_who_is_away_and_why() -> None:
    refused = replace(CONNECTED, last_error=ErrorStatus(1114, "The table 't' is full", WHEN))
    status = Status(
        "connecting", "s", "t", connections=ConnectionsStatus(LOST, refused),
        last_error="connection\nlost",
    )  # fmt: skip
    told = list(lines(status))
    assert told[1] == (
        f"source    s, not connected since {WHEN} (3 attempts, next in 2.1 s): connection lost"
    )
    assert told[2] == f"target    t, connected since {WHEN}, before that: The table 't' is full"
    # It stands there already.
    assert not [line for line in told if line.startswith("last error")]
    delayed = Status(
        "delayed", "s", "t", lag_seconds=3601.5, lag_beyond_delay=1.5, remaining_delay=7.0
    )
    assert (
        "lag       3601.500 s, 1.500 s of it beyond the delay: the next group is due in 7 s"
        in lines(delayed)
    )


@pytest.mark.parametrize(
    ("status", "stored", "expected"),
    [
        (STATUS, False, ExitStatus.DONE),
        (replace(STATUS, state="waiting"), False, ExitStatus.DONE),
        (replace(STATUS, state="stopping"), False, ExitStatus.DONE),
        (
            replace(STATUS, connections=ConnectionsStatus(LOST, CONNECTED)),
            False,
            ExitStatus.NOT_CONNECTED,
        ),
        (
            replace(STATUS, connections=ConnectionsStatus(CONNECTED, LOST)),
            False,
            ExitStatus.NOT_CONNECTED,
        ),
        (replace(STATUS, state="failed"), False, ExitStatus.NEEDS_PERSON),
        (Status("failed", "s", "t"), True, ExitStatus.NEEDS_PERSON),
        (Status("stopped", "s", "t", doing=NONE_YET), True, ExitStatus.NOT_RUNNING),
        (Status("stopped", "s", "t"), True, ExitStatus.NOT_RUNNING),
        (Status("stopped", "s", "t", doing=NOT_SAID), True, ExitStatus.FAILED),
    ],
)
def test_what_a_script_is_told(status: Status, stored: bool, expected: ExitStatus) -> None:
    assert exit_status(status, stored=stored) == expected


def test_a_place_that_is_known_by_gtid_alone() -> None:
    stopped = Status("stopped", "s", "t", executed=Place("", 0, f"{UUID}:1-7"))
    assert list(lines(stopped))[3:] == [f"executed GTIDs  {UUID}:1-7"]


def test_one_that_stands_by_is_meant_to_be_connected_to_nothing() -> None:
    away = ConnectionStatus(since=WHEN)
    status = Status(
        "standby", "s", "t", doing="it waits", connections=ConnectionsStatus(away, away)
    )
    assert list(lines(status)) == ["state   standby: it waits", "source  s", "target  t"]


def test_who_waits_for_the_target_and_what_a_start_is_at() -> None:
    workers = (
        WorkerStatus(1, "applying", target_wait=TargetWaitStatus(0.9, "BINLOG", 10, 6, "rows")),
        WorkerStatus(
            2, "applying", target_wait=TargetWaitStatus(7.26, "COMMIT", 11, 8, "ddl", "s")
        ),
        WorkerStatus(3, "applying", target_wait=TargetWaitStatus(70.0, "BINLOG", 12)),
    )
    told = list(lines(Status("running", "s", "t", workers=workers)))
    assert told[-4:] == [
        "target awaited by worker     for  at      connection     group  kind  databases",
        "                       2   7.3 s  COMMIT          11         8  ddl   s",
        "                       3  70.0 s  BINLOG          12  streamed",
        "what for: SHOW FULL PROCESSLIST there, by the number of the connection",
    ]
    frozen = Status("running", "s", "t", workers=(WorkerStatus(1, "frozen", waits_for="frozen"),))
    assert list(lines(frozen))[-1].endswith("0%  frozen")
    told = list(lines(Status("recovering", "s", "t", doing="takes the channel")))
    assert told[0] == "state     recovering: takes the channel"
    told = list(lines(Status("waiting", "s", "t", doing="the target is read-only")))
    assert told[0] == "state     waiting: the target is read-only; once that is over, it goes on"


def test_a_stop_and_what_was_skipped_before() -> None:
    end = Place("binlog.000002", 800, f"{UUID}:8")
    when = "2026-01-02T03:04:05+00:00"
    stopped = StoppedStatus(8, end, "rows", "shop", "group 8 cannot\nbe applied", True, when)
    skipped = tuple(
        SkippedStatus(number, end, "shop", "error 1062", "ann@db1", f"reason {number}", when)
        for number in range(1, 8)
    )
    stop = LastStopStatus(when, False, "group 8 cannot\nbe applied", 1062, 8)
    status = Status("failed", "s", "t", stopped_at=stopped, skipped=skipped, last_stop=stop)
    told = list(lines(status))
    assert told.pop(4) == f"last stop  {when}, by error 1062 at group 8: see below"
    assert told[5] == (
        "stopped at: group  kind  databases  end                gtid"
        "                                    when                       after it"
    )
    assert told[6] == (
        "                8  rows  shop       binlog.000002:800  "
        f"{UUID}:8  {when}  later groups applied"
    )
    assert told[7] == "group 8 cannot be applied"
    assert [line.split()[-1] for line in told if "reason" in line] == ["3", "4", "5", "6", "7"]
    assert told[-1] == "and 2 earlier ones: --json shows all"


def test_many_partitions_are_cut_and_a_lost_source_is_said() -> None:
    many = tuple(PartitionStatus(f"db{number}", 1, number) for number in range(30))
    told = list(lines(Status("running", "s", "t", partitions=many)))
    assert "lag       unknown: not connected to the source" in told
    assert told[-1] == "and 10 more: --json shows all"
    away = ConnectionStatus(since="then", attempts=2)
    both = ConnectionsStatus(ConnectionStatus(since="then"), away)
    told = list(lines(Status("connecting", "s", "t", connections=both, partitions=many)))
    assert "source    s, not connected since then: not tried while the target is away" in told
    assert "lag       unknown: not connected to the target" in told
    assert told[-2].startswith("db10 ")


def test_what_answers_wrongly_is_an_error(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "mtsd.sock"))
        listener.listen()

        def hang_up() -> None:
            for _ in range(2):
                listener.accept()[0].close()

        hanging_up = threading.Thread(target=hang_up)
        hanging_up.start()
        assert main(["status", "--config", str(config)]) == ExitStatus.FAILED
        hanging_up.join()
    told = capsys.readouterr()
    assert told.out == ""
    assert "closed the connection before it answered" in told.err
    assert len(told.err.splitlines()) == 1


def test_where_nothing_answers_one_line_says_so(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["status", "--config", str(config)]) == ExitStatus.FAILED
    told = capsys.readouterr()
    assert told.out == ""
    _, error = told.err.splitlines()
    assert error.startswith("mtsd: error: cannot connect to the target: ")


@pytest.mark.servers
def test_a_target_without_position_tables_says_nothing_yet(
    target: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = _config(tmp_path, target.socket)
    assert main(["status", "--config", str(config), "--json"]) == ExitStatus.NOT_RUNNING
    told = json.loads(capsys.readouterr().out)
    assert told["state"] == "stopped"
    assert told["executed"] == {"file": "", "pos": 0, "gtid": ""}
    assert main(["status", "--config", str(config)]) == ExitStatus.NOT_RUNNING
    assert "executed  nothing yet" in capsys.readouterr().out
    assert ("mtsd",) not in target.sql("SHOW DATABASES")


@pytest.mark.servers
def test_a_stopped_replica_is_read_from_the_target(
    target: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    leave_behind(target, "c1")
    config = _config(tmp_path, target.socket, "c1")
    with target.client() as writer, writer.cursor() as cursor:
        # Another session's open transaction holds row locks that reading must not wait for.
        cursor.execute("BEGIN")
        cursor.execute("UPDATE mtsd.slave_worker_info SET Master_log_pos = 1")
        cursor.execute("UPDATE mtsd.slave_relay_log_info SET Master_log_pos = 1")
        assert main(["status", "--config", str(config), "--json"]) == ExitStatus.FAILED
    told = Status.from_json(capsys.readouterr().out)
    assert told == Status(
        state="stopped",
        source="127.0.0.1:3306",
        target=str(target.socket),
        channel="c1",
        doing=NOT_SAID,
        executed=Place("binlog.000002", 700, f"{UUID}:1-7"),
        workers=(
            WorkerStatus(1, "stopped", groups=2, last=Place("binlog.000002", 1000)),
            WorkerStatus(2, "stopped", groups=0),
        ),
        in_doubt=(InDoubtStatus(11, 2, "ddl", Place("binlog.000002", 1100, f"{UUID}:11"), "shop"),),
    )
    assert main(["status", "--config", str(config)]) == ExitStatus.FAILED
    shown = capsys.readouterr()
    assert "this is what the target holds" in shown.err
    assert (
        shown.out
        == f"""\
state           stopped: {NOT_SAID}
source          127.0.0.1:3306
target          {target.socket}
channel         c1
executed        binlog.000002:700
executed GTIDs  {UUID}:1-7

in doubt: group  kind  databases  end                 gtid
             11  ddl   shop       binlog.000002:1100  {UUID}:11

worker  groups past executed  last
     1                     2  binlog.000002:1000
     2                     0
"""
    )
    assert (
        main(["status", "--config", str(_config(tmp_path, target.socket))])
        == ExitStatus.NOT_RUNNING
    )
    assert "executed  nothing yet" in capsys.readouterr().out


@pytest.mark.servers
def test_how_the_last_daemon_ended(
    target: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    leave_behind(target, "c3")
    table = PositionTables("mtsd", "c3").last_stop
    config = _config(tmp_path, target.socket, "c3")
    file = StopFile(tmp_path / "mtsd.sock")

    def told() -> tuple[int, str, str]:
        status = main(["status", "--config", str(config)])
        lines = capsys.readouterr().out.splitlines()
        return status, lines[0].removeprefix("state").strip(), "".join(
            line.partition("  ")[2].strip() for line in lines if line.startswith("last stop")
        )  # fmt: skip

    def begun(when: float) -> None:
        file.begin()
        os.utime(file.path, (when, when))
        # A full disk has room for that.
        assert not file.path.read_bytes()

    workers = (
        "UPDATE mtsd.slave_relay_log_info SET Number_of_workers = %d WHERE Channel_name = 'c3'"
    )
    assert told() == (ExitStatus.FAILED, f"stopped: {NOT_SAID}", "")
    # `mtsd position set` leaves a channel without workers.
    target.sql(workers % 0)
    assert told() == (ExitStatus.NOT_RUNNING, f"stopped: {NOT_BEGUN}", "")
    target.sql(workers % 2)
    target.sql(table.replace_stop(LastStop(0, graceful=True)).decode())
    status, state, stop = told()
    assert (status, state) == (ExitStatus.NOT_RUNNING, "stopped")
    assert stop.endswith("+00:00, gracefully")
    refused = LastStop(0, False, "the target refuses\nmtsd's user: é", 1045, 7)
    target.sql(table.replace_stop(refused).decode())
    status, state, stop = told()
    assert (status, state) == (ExitStatus.NEEDS_PERSON, "failed")
    assert stop.endswith(", by error 1045 at group 7: the target refuses mtsd's user: é")
    # A first start that was refused: the channel has not begun.
    target.sql(PositionTables("mtsd", "c4").last_stop.replace_stop(refused).decode())
    config = _config(tmp_path, target.socket, "c4")
    assert told() == (status, state, stop)
    config = _config(tmp_path, target.socket, "c3")
    # A daemon that has begun since, and was killed before it had told the target.
    begun(time.time() + 60)
    assert told() == (ExitStatus.FAILED, f"stopped: {NOT_SAID}", "")
    file.end(LastStop(time.time() + 60, False, "no such user"))
    assert told()[2].endswith(", by error: no such user")
    # One that ran elsewhere.
    begun(time.time() - 60)
    assert told()[0] == ExitStatus.NEEDS_PERSON
    # What this machine knows is told without the target, too.
    config = _config(tmp_path, tmp_path / "no.sock", "c3")
    assert told()[0] == ExitStatus.FAILED
    file.end(LastStop(time.time(), graceful=True))
    assert main(["status", "--config", str(config)]) == ExitStatus.NOT_RUNNING
    assert "executed" not in capsys.readouterr().out


@pytest.mark.servers
def test_tables_of_another_version_are_not_guessed_at(
    target: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    leave_behind(target, "c2")
    target.sql("UPDATE mtsd.slave_relay_log_info SET Schema_version = 99")
    assert (
        main(["status", "--config", str(_config(tmp_path, target.socket, "c2"))])
        == ExitStatus.FAILED
    )
    assert "schema version 99" in capsys.readouterr().err

import asyncio
import os
import pty
import select
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from mtsd.cli.live.screen import screen
from mtsd.cli.live.view import NO_RATES, Pressed, Rates, View, keys_of, pressed, rates
from mtsd.cli.main import main
from mtsd.cli.status import lines as status_lines
from mtsd.control.distribute_route import Change, distribute_route
from mtsd.control.place import Place
from mtsd.control.server import ControlServer
from mtsd.control.server_status import ConnectionsStatus, ConnectionStatus, SourceLogStatus
from mtsd.control.status import (
    DatabaseStatus,
    DistributionStatus,
    Status,
    TargetWaitStatus,
    TotalsStatus,
    WorkerStatus,
)
from mtsd.control.status_route import status_route
from mtsd.control.stop_status import LastStopStatus
from mtsd.model.outcome.exit_status import ExitStatus

CONNECTED = ConnectionStatus(connected=True, since="2026-07-01T10:00:00+00:00")
STATUS = Status(
    state="running",
    source="10.0.0.1:3306",
    target="10.0.0.2:3306",
    channel="c1",
    lag_seconds=2.5,
    pending_groups=1200,
    pending_bytes=5 * 1024 * 1024,
    executed=Place("binlog.000002", 700),
    connections=ConnectionsStatus(CONNECTED, CONNECTED),
    workers=(
        WorkerStatus(
            1, "waiting", 12, 34567, 700, 10, 1, Place("binlog.000002", 700), 0.873,
            TargetWaitStatus(3.5, "ALTER TABLE", 11, 8, "ddl", "shop"), waits_for="target",
        ),
        WorkerStatus(2, "idle"),
    ),
    totals=TotalsStatus(groups=1000, transactions=20, waits={"partition": 1.0}),
    databases=(
        DatabaseStatus("blog", groups=100),
        DatabaseStatus("[bold]shop\x1b[2J", 1200, 2.5, 900),
        DatabaseStatus("quiet", groups=5),
    ),
    source_log=SourceLogStatus(bytes_behind=2048),
)  # fmt: skip
LATER = replace(
    STATUS,
    totals=TotalsStatus(groups=3000, transactions=30, waits={"partition": 2.0}),
    workers=(replace(STATUS.workers[0], groups=1700), STATUS.workers[1]),
    databases=(DatabaseStatus("blog", groups=1100), *STATUS.databases[1:]),
)
RATES = rates(STATUS, LATER, 2.0)


def drawn(
    status: Status, found: Rates, view: View, height: int = 40, width: int = 120
) -> list[str]:
    console = Console(file=StringIO(), width=width, height=height)
    console.print(screen(status, found, view, height))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue().splitlines()


def test_rates_are_between_two_statuses_of_one_daemon() -> None:
    assert (RATES.groups, RATES.transactions) == (1000, 5)
    assert RATES.workers == {1: 500, 2: 0}
    assert RATES.databases["blog"] == 500
    assert RATES.waits == {"partition": 0.5}
    other = replace(LATER, daemon=replace(LATER.daemon, pid=9))
    assert rates(None, STATUS, 1.0) == rates(STATUS, other, 1.0) == NO_RATES
    # A run that begins again counts its workers from 0.
    assert rates(LATER, STATUS, 1.0).workers == {1: 0, 2: 0}


def test_all_of_it_is_on_the_screen() -> None:
    lines = drawn(LATER, RATES, View())
    text = "\n".join(lines)
    assert "lag       2.500 s, 2.0 KiB behind the source's end" in text
    assert "applies   1,000/s in 5 transactions of the target/s" in text
    assert "pending   1,200 groups, 5.0 MiB" in text
    (row,) = [line.split() for line in lines if line.split()[:2] == ["1", "waiting:"]]
    assert row[:5] == ["1", "waiting:", "target", "12", "33.8"]
    # A name is a name, whatever it contains; the most delayed one comes first.
    first = 1 + next(at for at, line in enumerate(lines) if line.startswith("database"))
    names = [line.split()[0] for line in lines[first : first + 3]]
    assert names == ["[bold]shop\\x1b[2J", "blog", "quiet"]
    assert "partition 50%" in text
    assert "q quit" in lines[-1]


def test_no_number_is_cut_in_a_terminal_of_80_columns() -> None:
    lines = drawn(LATER, RATES, View(), width=80)
    (head,) = [line.split() for line in lines if line.startswith("worker")]
    assert head[:3] + head[5:] == [
        "worker",
        "state",
        "queued",
        "commits",
        "retries",
        "busy",
        "last",
    ]
    (row,) = [line.split() for line in lines if line.split()[:2] == ["1", "waiting:"]]
    assert row[2:10] == ["target", "12", "33.8", "KiB", "500", "10", "1", "87%"]
    assert row[10].startswith("binlog.0")


def test_a_worker_is_looked_into() -> None:
    text = "\n".join(drawn(LATER, RATES, View(selected=1, inside=True)))
    assert "awaits    the target since 3.5 s, at ALTER TABLE, connection 11 there: group 8" in text


def test_one_that_an_error_has_stopped() -> None:
    when = "2026-07-01T11:00:00+00:00"
    away = ConnectionStatus(since=when)
    why = "group 8 cannot be applied: Duplicate entry. " + "And more of it. " * 40
    failed = replace(
        STATUS, state="failed", lag_seconds=None, workers=(), pending_groups=0, pending_bytes=0,
        connections=ConnectionsStatus(away, away),
        last_stop=LastStopStatus(when, graceful=False, text=why, number=1062, group=8),
    )  # fmt: skip
    lines = drawn(failed, NO_RATES, View(), height=30)
    text = "\n".join(lines)
    for server in ("source", "target"):
        (line,) = [line for line in lines if line.startswith(server)]
        assert line.endswith(f"not connected since {when}: an error has stopped the replica")
    assert "lag       unknown: an error has stopped the replica" in text
    assert "pending   " not in text
    assert "no worker runs" in text
    stopped = next(at for at, line in enumerate(lines) if line.startswith("stopped"))
    assert "cannot be applied: Duplicate entry" in lines[stopped]
    assert "mtsd status says all of it" in lines[stopped + 6]
    assert len(lines) <= 31
    assert list(status_lines(failed))[1] == f"source     10.0.0.1:3306{lines[1][23:]}"


def test_what_does_not_fit_is_cut_and_the_worker_that_is_looked_at_is_there() -> None:
    many = replace(
        STATUS,
        workers=tuple(WorkerStatus(number, "idle") for number in range(1, 65)),
        databases=tuple(DatabaseStatus(f"d{number}") for number in range(500)),
    )
    lines = drawn(many, NO_RATES, View(selected=60), height=30)
    assert len(lines) <= 31
    assert any(line.split()[:2] == ["60", "idle"] for line in lines)
    assert sum("more" in line for line in lines) == 2


@pytest.mark.parametrize(
    ("view", "key", "expected"),
    [
        (View(), "q", Pressed(View(), ends=True)),
        (View(), "j", Pressed(View(1))),
        (View(), "k", Pressed(View(2))),
        (View(2), "j", Pressed(View(1))),
        (View(1), "\n", Pressed(View(1, inside=True))),
        (View(1, inside=True), "\x1b", Pressed(View(1))),
        (View(1, message="old"), "f", Pressed(View(1), change={"do": "freeze", "worker": 1})),
        (View(2), "f", Pressed(View(2), change={"do": "unfreeze", "worker": 2})),
        (View(1), "x", Pressed(View(1))),
    ],
)
def test_keys(view: View, key: str, expected: Pressed) -> None:
    status = replace(STATUS, distribution=DistributionStatus(frozen=(2,)))
    assert pressed(view, key, status) == expected


def test_keys_come_as_the_terminal_sends_them() -> None:
    assert keys_of("jf\x1b[A\x1b[Bq") == ["j", "f", "k", "j", "q"]
    assert keys_of("\x1b") == ["\x1b"]
    assert pressed(View(), "f", STATUS).view.message


@contextmanager
def answering(path: Path, changes: list[Change]) -> Iterator[None]:
    """Answer as a daemon does, in a thread."""
    ended = asyncio.Event()
    loop = asyncio.new_event_loop()
    up = threading.Event()

    def change(wanted: Change) -> DistributionStatus:
        changes.append(wanted)
        return DistributionStatus()

    async def serve() -> None:
        server = ControlServer(path, [status_route(lambda: STATUS), distribute_route(change)])
        await server.start()
        up.set()
        await ended.wait()
        await server.stop()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    try:
        assert up.wait(10)
        yield
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()
        loop.close()


def test_in_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "config.toml"
    config.write_text(f'[status]\nsocket = "{tmp_path}/mtsd.sock"\n')
    command = ["top", "--config", str(config)]
    assert main(command) == ExitStatus.BAD_USAGE
    assert "needs a terminal" in capsys.readouterr().err
    changes: list[Change] = []
    mine, its = pty.openpty()
    with answering(tmp_path / "mtsd.sock", changes):
        top = subprocess.Popen(
            [sys.executable, "-m", "mtsd", *command], stdin=its, stdout=its, stderr=its,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "120", "LINES": "40"},
        )  # fmt: skip
        os.close(its)
        shown = read_until(mine, b"q quit")
        assert b"10.0.0.1:3306, connected since" in shown
        os.write(mine, b"jf")
        read_until(mine, b"worker 1 is frozen")
        assert changes == [Change("freeze", worker=1)]
        os.write(mine, b"q")
        assert top.wait(20) == ExitStatus.DONE
    os.close(mine)


def read_until(terminal: int, wanted: bytes) -> bytes:
    found = b""
    end = time.monotonic() + 30
    while wanted not in found:
        ready, _, _ = select.select([terminal], [], [], end - time.monotonic())
        assert ready, found
        found += os.read(terminal, 65536)
    return found

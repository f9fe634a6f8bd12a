import asyncio
import dataclasses
import fcntl
import http.client
import json
import os
import re
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import uvloop

from mtsd.control import server as server_module
from mtsd.control.client import (
    DaemonRefusedError,
    DaemonUnavailableError,
    fetch_status,
    why_not_asked,
)
from mtsd.control.place import Place
from mtsd.control.server import ControlServer, StatusSocketError, _listener
from mtsd.control.status import PartitionStatus, Status, TargetWaitStatus, WorkerStatus
from mtsd.control.status_route import status_route
from mtsd.control.stop_status import InDoubtStatus
from mtsd.model.gtid import Gtid, GtidSet
from mtsd.model.position import Position

FULL = Status(
    state="running",
    source="127.0.0.1:3306",
    target="/run/mysqld.sock",
    channel="c1",
    received=Place("binlog.000002", 900, "u:1-9"),
    executed=Place("binlog.000002", 700, "u:1-7"),
    lag_seconds=0.25,
    pending_groups=2,
    pending_bytes=200,
    last_error="connection to the target lost: it is closed",
    workers=(
        WorkerStatus(
            1,
            "applying",
            2,
            200,
            7,
            1,
            0,
            Place("binlog.000002", 700),
            0.5,
            TargetWaitStatus(3.5, "ALTER TABLE", 11, 8, "ddl", "shop"),
        ),
    ),
    partitions=(PartitionStatus("shop", 1, 2, 0.25, 7), PartitionStatus("blog", None)),
    waits={"partition": 0.5},
    in_doubt=(InDoubtStatus(8, 1, "ddl", Place("binlog.000002", 800, "u:8"), "shop"),),
)


@pytest.fixture(params=["asyncio", "uvloop"])
def runner(request: pytest.FixtureRequest) -> Iterator[asyncio.Runner]:
    factory = uvloop.new_event_loop if request.param == "uvloop" else None
    with asyncio.Runner(loop_factory=factory) as runner:
        yield runner


def _asked(runner: asyncio.Runner, path: Path, provider: Callable[[], Status]) -> Status | None:
    async def ask() -> Status | None:
        server = ControlServer(path, [status_route(provider)])
        await server.start()
        try:
            return await asyncio.to_thread(fetch_status, path)
        finally:
            await server.stop()

    return runner.run(ask())


def _fail() -> Status:
    raise RuntimeError("no status")


def test_a_status_comes_through_the_socket_whole(runner: asyncio.Runner, tmp_path: Path) -> None:
    path = tmp_path / "mtsd.sock"
    assert _asked(runner, path, lambda: FULL) == FULL
    assert not path.exists()


def test_the_json_is_that_of_the_contract() -> None:
    told = json.loads(FULL.to_json())
    assert list(told)[:13] == [
        "state",
        "source",
        "target",
        "channel",
        "received",
        "executed",
        "lag_seconds",
        "pending_groups",
        "pending_bytes",
        "last_error",
        "workers",
        "partitions",
        "waits",
    ]
    assert told["received"] == {"file": "binlog.000002", "pos": 900, "gtid": "u:1-9"}
    assert told["workers"] == [
        {
            "id": 1,
            "state": "applying",
            "queue_groups": 2,
            "queue_bytes": 200,
            "groups": 7,
            "transactions": 1,
            "retries": 0,
            "last": {"file": "binlog.000002", "pos": 700, "gtid": ""},
            "busy_ratio": 0.5,
            "target_wait": {
                "seconds": 3.5,
                "statement": "ALTER TABLE",
                "connection": 11,
                "group": 8,
                "kind": "ddl",
                "databases": "shop",
            },
            "waits_for": "",
            "gave_way": 0,
        }
    ]
    assert told["partitions"][1] == {
        "name": "blog",
        "worker": None,
        "pending_groups": 0,
        "lag_seconds": 0.0,
        "groups": 0,
    }
    nowhere = json.loads(Status(state="starting", source="a", target="b").to_json())
    assert nowhere["lag_seconds"] is None
    assert nowhere["last_error"] is None
    assert nowhere["executed"] == {"file": "", "pos": 0, "gtid": ""}


def test_every_field_is_explained() -> None:
    """A person looks for a field of `mtsd status --json` in docs/service.md."""
    page = (Path(__file__).parents[2] / "docs" / "service.md").read_text("utf-8")
    cells = re.findall(r"^\| (`.*?) \|", page, re.MULTILINE)
    explained = set(re.findall(r"`(\w+)`", " ".join(cells)))
    assert {field.name for field in dataclasses.fields(Status)} <= explained


def test_a_later_version_may_say_more_and_another_thing_is_refused() -> None:
    told = json.loads(FULL.to_json())
    told["weather"] = "fine"
    assert Status.from_json(json.dumps(told)) == FULL
    told["state"] = "asleep"
    with pytest.raises(ValueError, match="state"):
        Status.from_json(json.dumps(told))


def test_a_place_is_made_of_what_is_known() -> None:
    gtid = Gtid("3e11fa47-71ca-11e1-9e33-c80aa9429562", 5)
    assert Place.of(Position("b.1", 4), gtid) == Place("b.1", 4, str(gtid))
    assert Place.of(Position("b.1", 4), GtidSet()) == Place("b.1", 4, "")
    assert Place.of(None) == Place()


async def test_the_socket_is_its_owners_alone_and_the_umask_is_as_before(tmp_path: Path) -> None:
    path = tmp_path / "mtsd.sock"
    umask = os.umask(0)
    try:
        server = ControlServer(path, [status_route(lambda: FULL)])
        await server.start()
        assert stat.S_IMODE(path.lstat().st_mode) == 0o600
        assert os.umask(0) == 0
        await server.stop()
    finally:
        os.umask(umask)


async def test_only_status_is_answered(tmp_path: Path) -> None:
    path = tmp_path / "mtsd.sock"
    server = ControlServer(path, [status_route(lambda: FULL)])
    await server.start()
    assert await asyncio.to_thread(_code, path, "GET", "/") == http.client.NOT_FOUND
    assert await asyncio.to_thread(_code, path, "GET", "/status?a=b") == http.client.OK
    code = await asyncio.to_thread(_code, path, "POST", "/status")
    assert code == http.client.METHOD_NOT_ALLOWED
    await server.stop()


def _code(path: Path, method: str, target: str) -> int:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(5)
        client.connect(str(path))
        client.sendall(
            f"{method} {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode()
        )
        return int(client.recv(65536).split()[1])


def test_a_killed_daemons_socket_is_replaced(runner: asyncio.Runner, tmp_path: Path) -> None:
    path = tmp_path / "mtsd.sock"
    leave = "import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])"
    subprocess.run([sys.executable, "-c", leave, str(path)], check=True)
    assert path.is_socket()
    assert fetch_status(path) is None
    assert _asked(runner, path, lambda: FULL) == FULL


async def test_who_holds_the_lock_does_not_hold_up_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process could keep the daemon from ever starting, and from hearing SIGTERM."""
    path = tmp_path / "mtsd.sock"
    monkeypatch.setattr(server_module, "_LOCK_TIMEOUT_S", 0.3)
    server = ControlServer(path, [status_route(lambda: FULL)])
    held = os.open(tmp_path / "mtsd.sock.lock", os.O_RDWR | os.O_CREAT, 0o600)
    of_folder = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(of_folder, fcntl.LOCK_EX)
    fcntl.flock(held, fcntl.LOCK_EX)
    starting = asyncio.create_task(server.start())
    await asyncio.sleep(0.1)
    assert not starting.done()
    with pytest.raises(StatusSocketError, match=r"another process holds .*mtsd\.sock\.lock"):
        await starting
    os.close(held)
    await server.start()
    os.close(of_folder)
    assert stat.S_IMODE((tmp_path / "mtsd.sock.lock").stat().st_mode) == 0o600
    await server.stop()


async def test_a_living_daemons_socket_is_not(tmp_path: Path) -> None:
    path = tmp_path / "mtsd.sock"
    server = ControlServer(path, [status_route(lambda: FULL)])
    await server.start()
    second = ControlServer(path, [status_route(_fail)])
    with pytest.raises(StatusSocketError, match="a daemon answers"):
        await second.start()
    await second.stop()
    assert await asyncio.to_thread(fetch_status, path) == FULL
    await server.stop()


@pytest.fixture
def _restless() -> Iterator[None]:
    """Let threads take turns at every chance."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("_restless")
def test_of_many_that_start_at_once_on_a_stale_socket_one_gets_it(tmp_path: Path) -> None:
    path = tmp_path / "mtsd.sock"
    for _ in range(50):
        with socket.socket(socket.AF_UNIX) as stale:
            stale.bind(str(path))
        barrier = threading.Barrier(4)

        def race(barrier: threading.Barrier = barrier) -> socket.socket | None:
            barrier.wait()
            try:
                return asyncio.run(_listener(path))
            except StatusSocketError:
                return None

        with ThreadPoolExecutor(4) as racers:
            started = [done.result() for done in [racers.submit(race) for _ in range(4)]]
        listeners = [listener for listener in started if listener is not None]
        assert len(listeners) == 1
        listeners[0].close()
        path.unlink()


async def test_what_is_no_socket_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "mtsd.sock"
    path.write_text("a letter")
    with pytest.raises(StatusSocketError, match="not a socket"):
        await ControlServer(path, [status_route(lambda: FULL)]).start()
    assert path.read_text() == "a letter"


async def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "mtsd.sock"
    with pytest.raises(StatusSocketError, match=r"nowhere/mtsd\.sock: No such file"):
        await ControlServer(path, [status_route(lambda: FULL)]).start()


async def test_stop_leaves_the_socket_of_another(tmp_path: Path) -> None:
    path = tmp_path / "mtsd.sock"
    first = ControlServer(path, [status_route(_fail)])
    await first.start()
    path.unlink()
    second = ControlServer(path, [status_route(lambda: FULL)])
    await second.start()
    await first.stop()
    assert await asyncio.to_thread(fetch_status, path) == FULL
    await second.stop()


async def test_a_client_that_says_nothing_does_not_hold_the_stop(tmp_path: Path) -> None:
    path = tmp_path / "mtsd.sock"
    server = ControlServer(path, [status_route(lambda: FULL)])
    await server.start()
    with socket.socket(socket.AF_UNIX) as mute:
        mute.connect(str(path))
        await asyncio.sleep(0.05)
        async with asyncio.timeout(5):
            await server.stop()


def test_no_daemon_is_none(tmp_path: Path) -> None:
    assert fetch_status(tmp_path / "mtsd.sock") is None


def test_a_daemon_that_fails_to_say_it_is_an_error(runner: asyncio.Runner, tmp_path: Path) -> None:
    with pytest.raises(DaemonRefusedError, match="answered 500: RuntimeError"):
        _asked(runner, tmp_path / "mtsd.sock", _fail)


def test_a_socket_of_another_account() -> None:
    """Root, as whom tests may run, opens it."""
    told = why_not_asked(Path("/run/mtsd/mtsd.sock"), PermissionError(13, "Permission denied"))
    assert told.startswith("the socket /run/mtsd/mtsd.sock is for the daemon's account alone: ask")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"", "closed the connection before it answered"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", "not return an mtsd status"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}", "cannot query"),
        (None, "did not answer within 0.2 s"),
    ],
)
def test_what_answers_something_else_is_an_error(
    tmp_path: Path, answer: bytes | None, message: str
) -> None:
    path = tmp_path / "mtsd.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        done = threading.Event()

        def serve() -> None:
            # One that closes the connection without an answer is asked once more.
            for _ in range(2 if answer == b"" else 1):
                client, _address = listener.accept()
                with client:
                    client.recv(65536)
                    if answer is None:
                        done.wait(10)
                    else:
                        client.sendall(answer)

        server = threading.Thread(target=serve, daemon=True)
        server.start()
        with pytest.raises(DaemonUnavailableError, match=message):
            fetch_status(path, timeout=0.2 if answer is None else 5.0)
        done.set()
        server.join()


def test_a_daemon_that_ends_while_it_is_asked_is_none(tmp_path: Path) -> None:
    path = tmp_path / "mtsd.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def end() -> None:
            client, _ = listener.accept()
            path.unlink()
            # What has come in and was not read makes the other side's connection reset.
            client.close()

        daemon = threading.Thread(target=end, daemon=True)
        daemon.start()
        assert fetch_status(path) is None
        daemon.join()

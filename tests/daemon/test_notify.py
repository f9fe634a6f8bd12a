import os
import socket
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from mtsd.daemon import notify
from mtsd.daemon.notify import Notifier


@pytest.fixture(params=["pathname", "abstract"])
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[socket.socket]:
    """Listen as the service manager does; `getsockname` says where."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.settimeout(5)
        if request.param == "pathname":
            manager.bind(str(tmp_path / "notify"))
        else:
            manager.bind(f"\0mtsd-test-{uuid.uuid4()}")
        yield manager


def _environment(manager: socket.socket) -> dict[str, str]:
    name = manager.getsockname()
    return {"NOTIFY_SOCKET": "@" + name[1:].decode() if isinstance(name, bytes) else str(name)}


def test_each_notification_is_one_datagram(manager: socket.socket) -> None:
    notifier = Notifier(_environment(manager))
    notifier.ready()
    notifier.status("running,\nlag 0.3 s")
    notifier.watchdog()
    notifier.stopping()
    assert [manager.recv(4096) for _ in range(4)] == [
        b"READY=1",
        b"STATUS=running, lag 0.3 s",
        b"WATCHDOG=1",
        b"STOPPING=1",
    ]


def test_a_reload_bears_its_time(manager: socket.socket) -> None:
    before = time.monotonic_ns() // 1000
    Notifier(_environment(manager)).reloading()
    first, second = manager.recv(4096).split(b"\n")
    assert first == b"RELOADING=1"
    name, _, microseconds = second.partition(b"=")
    assert name == b"MONOTONIC_USEC"
    assert before <= int(microseconds) <= time.monotonic_ns() // 1000


def test_a_long_status_is_cut_between_characters(manager: socket.socket) -> None:
    Notifier(_environment(manager)).status("ü" * 5000)
    data = manager.recv(65536)
    assert 4090 <= len(data) <= 4096
    assert set(data.decode().removeprefix("STATUS=")) == {"ü"}


def test_nothing_is_sent_without_a_service_manager() -> None:
    with capture_logs() as logs:
        notifier = Notifier({})
        notifier.ready()
        notifier.stopping()
    assert notifier.watchdog_interval is None
    assert logs == []


def test_a_failure_is_logged_once_and_never_raised(tmp_path: Path) -> None:
    with capture_logs() as logs:
        notifier = Notifier({"NOTIFY_SOCKET": str(tmp_path / "nobody")})
        notifier.ready()
        notifier.watchdog()
    assert [log["event"] for log in logs] == ["cannot notify the service manager"]
    assert logs[0]["log_level"] == "warning"


@pytest.mark.parametrize("address", ["vsock:2:1234", "/" + "x" * 200, "@", "/a\0b"])
def test_an_address_that_cannot_be_used_is_a_failure_like_others(address: str) -> None:
    with capture_logs() as logs:
        Notifier({"NOTIFY_SOCKET": address}).ready()
    assert len(logs) == 1


def test_a_service_manager_that_does_not_read_costs_little(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager, capture_logs() as logs:
        manager.bind(str(tmp_path / "notify"))
        notifier = Notifier({"NOTIFY_SOCKET": str(tmp_path / "notify")})
        while not logs:
            notifier.watchdog()
        used = time.process_time()
        monkeypatch.setattr(notify, "_TIMEOUT", 60.0)
        began = time.monotonic()
        notifier.status("lost")
        assert time.monotonic() - began < 30, "it waits for a reader"
        monkeypatch.setattr(notify, "_TIMEOUT", 0.5)
        began = time.monotonic()
        notifier.stopping()
        assert 0.4 < time.monotonic() - began < 30
        assert time.process_time() - used < 0.2


@pytest.mark.parametrize(
    ("environ", "interval"),
    [
        ({"WATCHDOG_USEC": "30000000"}, 15.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid())}, 15.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "often"}, None),
        ({"WATCHDOG_PID": str(os.getpid())}, None),
    ],
)
def test_the_watchdog_is_fed_twice_as_often_as_it_asks(
    environ: dict[str, str], interval: float | None
) -> None:
    assert Notifier(environ).watchdog_interval == interval

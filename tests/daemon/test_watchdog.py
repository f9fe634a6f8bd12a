"""The watchdog gets its sign while the dispatcher is alive, and only then."""

import time
from pathlib import Path

import pytest

from mtsd.daemon.watchdog import Watchdog
from mtsd.model.pulse import Pulse, Wait
from tests.daemon.notify_socket import NotifySocket
from tests.replica.daemon_process import DaemonProcess
from tests.servers.pair import Pair

PERIOD = 1.0
"""Seconds that the service manager allows between two signs."""


def test_no_run_is_life() -> None:
    watchdog = Watchdog()
    assert [watchdog.check(None) for _ in range(3)] == [True, True, True]


def test_turns_are_life_and_none_is_not() -> None:
    watchdog, pulse = Watchdog(), Pulse()
    assert watchdog.check(pulse)
    pulse.turn()
    assert watchdog.check(pulse)
    assert not watchdog.check(pulse)
    assert watchdog.hangs
    assert not watchdog.check(pulse)
    pulse.turn()
    assert watchdog.check(pulse)
    assert not watchdog.hangs


def test_a_run_that_follows_has_a_pulse_of_its_own() -> None:
    watchdog = Watchdog()
    assert watchdog.check(Pulse())
    assert watchdog.check(Pulse())


@pytest.mark.parametrize("wait", Wait)
def test_every_named_wait_may_last(wait: Wait) -> None:
    watchdog, pulse = Watchdog(), Pulse()
    with pulse.waiting(wait):
        assert all(watchdog.check(pulse) for _ in range(5))
    assert watchdog.check(pulse), "the end of a wait is a turn"
    assert not watchdog.check(pulse)


def test_a_wait_within_a_wait_leaves_the_outer_one() -> None:
    pulse = Pulse()
    with pulse.waiting(Wait.SOURCE):
        with pytest.raises(TimeoutError), pulse.waiting(Wait.TARGET):
            raise TimeoutError
        assert pulse.waits_for is Wait.SOURCE
    assert pulse.waits_for is None


def assert_fed(manager: NotifySocket, daemon: DaemonProcess) -> None:
    """Wait for several signs from now on; none was held back, however slow the machine is."""
    began = time.monotonic()
    manager.wait_for(lambda it: len(it.pings(began)) >= 6)
    assert starved(daemon) == []


def starved(daemon: DaemonProcess) -> list[dict[str, object]]:
    """Return what the daemon has said about signs that it holds back."""
    return [record for record in daemon.records() if record["level"] == "critical"]


@pytest.mark.servers
def test_idle_and_without_a_source(tmp_path: Path) -> None:
    with Pair() as pair, NotifySocket(tmp_path, watchdog_s=PERIOD) as manager:
        daemon = DaemonProcess(
            pair.source, pair.target, tmp_path, {"source.heartbeat_period": 60.0},
            environ=manager.environ,
        )  # fmt: skip
        with daemon:
            daemon.wait_until_running()
            assert_fed(manager, daemon)
            pair.source.kill()
            assert_fed(manager, daemon)
            assert daemon.stop() == 0
        assert manager.states()[0] == "READY=1"
        assert manager.states()[-1] == "STOPPING=1"


@pytest.mark.servers
def test_held_up_by_the_target(tmp_path: Path) -> None:
    settings = {"replica.pending_jobs_size_max": 4096, "replica.batch_bytes": 4096}
    with Pair() as pair, NotifySocket(tmp_path, watchdog_s=PERIOD) as manager:
        pair.source.sql("CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY, v LONGTEXT)")
        daemon = DaemonProcess(
            pair.source, pair.target, tmp_path, settings, environ=manager.environ
        )
        with daemon:
            daemon.wait_until_caught_up()
            with pair.target.client() as client, client.cursor() as cursor:
                # Small groups fill the queue.
                cursor.execute("LOCK TABLES a.t WRITE")
                pair.source.sql(
                    ";".join(f"INSERT INTO a.t VALUES ({n}, REPEAT('a', 500))" for n in range(20))
                )
                daemon.wait_for_status(lambda now: now.pending_bytes > 3000, "nothing is held up")
                assert_fed(manager, daemon)
                cursor.execute("UNLOCK TABLES")
                daemon.wait_until_caught_up()
                # A large one is applied while it is read.
                cursor.execute("LOCK TABLES a.t WRITE")
                pair.source.sql("INSERT INTO a.t VALUES (100, REPEAT('a', 100000))")
                assert_fed(manager, daemon)
                # What follows waits behind it in the source's socket, and is no progress.
                pair.source.sql("INSERT INTO a.t VALUES (101, REPEAT('a', 100000))")
                assert_fed(manager, daemon)
                cursor.execute("UNLOCK TABLES")
            daemon.wait_until_caught_up()
            status = daemon.status()
            assert status is not None
            assert status.waits["pending_bytes"] > PERIOD
            assert daemon.stop() == 0
        assert starved(daemon) == []


@pytest.mark.servers
def test_a_dispatcher_that_hangs_starves_it(tmp_path: Path) -> None:
    with Pair() as pair, NotifySocket(tmp_path, watchdog_s=PERIOD) as manager:
        daemon = DaemonProcess(pair.source, pair.target, tmp_path, environ=manager.environ)
        daemon.start(fault="after_read:1:hangs")
        try:
            manager.wait_for(lambda it: "READY=1" in it.states() and bool(it.pings(0.0)))
            daemon.wait_for_record("the dispatcher hangs")
            # A sign from before that may still be on its way.
            time.sleep(PERIOD)
            starving = time.monotonic()
            time.sleep(2 * PERIOD)
            assert manager.pings(starving) == []
            # The event loop lives: the status socket answers, and other notifications go on.
            status = daemon.status()
            assert status is not None
            assert status.state == "running"
            assert len(starved(daemon)) == 1
        finally:
            daemon.close()

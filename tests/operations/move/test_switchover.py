"""`mtsd switchover` there and back between real servers, under a load, and put back."""

import shlex
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import pytest

from mtsd.control.client import DaemonRefusedError, DaemonUnavailableError, post
from tests.fix_daemon import command, stops
from tests.fix_families import families
from tests.operations.move.application import ACCOUNT, Application, killed_at, wait_until
from tests.operations.move.moving import ROWS, SHOP
from tests.pages.shell import Page
from tests.replica.daemon_process import DaemonProcess
from tests.servers.mysqld import GTIDS
from tests.servers.pair import Pair

pytestmark = pytest.mark.servers

START = f"sh -c '{sys.executable} -m mtsd run --standby --config {{config}} &'"
SWITCHES = 100
CONNECTIONS = 3
RATE = 1_000
"""Transactions a second that the application makes, if nothing holds it up."""
KILLED_EVERY = 5
KILLED_AT = (
    "fences it off till then", "waits until it stands by", "SET GLOBAL super_read_only = ON",
    "waits until the target has all", "left open", "stops the daemon", "compares its position",
    "does not start any more", "sets the position", "wakes its daemon",
    "on the target: SET GLOBAL read_only = OFF",
)  # fmt: skip


@contextmanager
def both_ways(pair: Pair, folder: Path) -> Iterator[tuple[DaemonProcess, DaemonProcess]]:
    """Make the files of both directions; at the end, no daemon of theirs runs."""
    (there := folder / "there").mkdir()
    (back := folder / "back").mkdir()
    forth = DaemonProcess(pair.source, pair.target, there)
    reverse = DaemonProcess(pair.target, pair.source, back, {"source.server_id": 4202})
    for daemon in (forth, reverse):
        daemon.settings["status.socket"] = str(daemon.folder / "mtsd.sock")
        daemon.configure()
    try:
        yield forth, reverse
    finally:
        for daemon in (forth, reverse):
            daemon.close()
            wait_until(partial(has_ended, daemon))


def has_ended(daemon: DaemonProcess) -> bool:
    """Stop a daemon that a switch has started; return whether it has ended."""
    try:
        return post(daemon.folder / "mtsd.sock", "/stop") is None
    except (DaemonRefusedError, DaemonUnavailableError):
        return False


def words_of(line: str, forth: DaemonProcess, reverse: DaemonProcess) -> list[str]:
    """Return the words after `mtsd` of a line of the page, with the files of this test."""
    given = {
        "config.toml": str(forth.config), "back.toml": str(reverse.config),
        "systemctl start mtsd@{name}": START,
    }  # fmt: skip
    return [given.get(word, word) for word in shlex.split(line)[1:]]


def switch(
    line: str, forth: DaemonProcess, reverse: DaemonProcess, *more: str, status: int = 0
) -> str:
    """Run a line of the page; return what is said."""
    words = words_of(line, forth, reverse)
    at = words.index("--config")
    del words[at : at + 2]
    report = forth.folder / "report.txt"
    report.unlink(missing_ok=True)
    return command(forth, *words, *more, "--report", str(report), status=status)


def pause_in(said: str) -> int:
    """Return the milliseconds of the pause that a command has measured."""
    return int(said.rpartition("pause ")[2].partition(" ms")[0].replace(",", ""))


def test_there_and_back_under_a_load(tmp_path: Path) -> None:
    (look,), (there,), (back,) = Page("switch.md").steps
    with Pair(GTIDS, {**GTIDS, "read_only": 1}) as pair:
        source, target = pair.source, pair.target
        source.sql(f"{SHOP}; CREATE EVENT shop.e ON SCHEDULE EVERY 1 DAY DO DELETE FROM shop.x")
        source.sql(ACCOUNT)
        with both_ways(pair, tmp_path) as (forth, reverse):
            assert "does not run" in switch(there, forth, reverse, status=3)
            forth.start()
            forth.wait_until_caught_up()
            assert "on the source: SET GLOBAL super_read_only = ON" in switch(look, forth, reverse)
            with Application(source, target) as application:
                application.wait_for(20)
                # Somebody has a transaction open that keeps locks: nothing remains of the try.
                with closing(source.client()) as client, client.cursor() as cursor:
                    client.begin()
                    cursor.execute("INSERT INTO shop.orders (what) VALUES ('never')")
                    for by, status in ((signal.SIGINT, 3), (signal.SIGKILL, -signal.SIGKILL)):
                        longer = ("--grace", "60", "--longest", "600")
                        words = (*words_of(there, forth, reverse), *longer)
                        assert killed_at("left open", tmp_path, *words, by=by) == status
                        if by is signal.SIGINT:
                            said = (tmp_path / "killed.txt").read_text(encoding="utf-8")
                            assert "interrupted. Everything is as it was before" in said
                            application.wait_for(20)
                assert source.sql("SELECT @@read_only") == [(1,)]
                said = switch(back, forth, reverse, "--put-back", status=3)
                assert "leave out --back" in said
                said = switch(there, forth, reverse, "--put-back")
                assert "put back: writers are on the source again" in said
                application.wait_for(20)
                said = switch(there, forth, reverse, "--enable-events")
                assert "switched over: " in said
                application.wait_for(20)
                assert target.sql("SELECT status FROM information_schema.events") == [("ENABLED",)]
                assert "was handed over to the other direction" in stops(forth)
                said = switch(back, forth, reverse)
                assert "pause" in said
                application.wait_for(20)
            wait_until(lambda: target.sql(ROWS) == source.sql(ROWS))
            rows = [what for _, what in source.sql(ROWS)]
            assert len(set(rows)) == len(rows)
            assert set(rows) >= application.acknowledged
        pair.discard()


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_many_switches_some_of_them_killed(tmp_path: Path) -> None:
    (_,), (there,), (back,) = Page("switch.md").steps
    pauses = []
    with Pair(GTIDS, {**GTIDS, "read_only": 1}) as pair:
        source, target = pair.source, pair.target
        source.sql(f"{SHOP}; {ACCOUNT}")
        with both_ways(pair, tmp_path) as (forth, reverse):
            forth.start()
            forth.wait_until_caught_up()
            with Application(source, target, connections=CONNECTIONS) as application:
                began = time.monotonic()
                for number in range(SWITCHES):
                    is_there = target.sql("SELECT @@read_only") == [(0,)]
                    line = back if is_there else there
                    if number % KILLED_EVERY == 0:
                        text = KILLED_AT[number // KILLED_EVERY % len(KILLED_AT)]
                        killed_at(text, tmp_path, *words_of(line, forth, reverse))
                        new = source if is_there else target
                        if new.sql("SELECT @@read_only") == [(1,)]:
                            switch(line, forth, reverse, "--put-back")
                        application.wait_for(10)
                        continue
                    said = switch(line, forth, reverse)
                    pauses.append(pause_in(said))
                    application.wait_for(RATE // 2)
                rate = len(application.acknowledged) / (time.monotonic() - began)
            wait_until(lambda: target.sql(ROWS) == source.sql(ROWS))
            rows = [what for _, what in source.sql(ROWS)]
            assert len(set(rows)) == len(rows)
            assert set(rows) >= application.acknowledged
        pair.discard()
    pauses.sort()
    p50, p99 = pauses[len(pauses) // 2], pauses[-1 - len(pauses) // 100]
    print(
        f"{len(pauses)} pauses: p50 {p50} ms, p99 {p99} ms; {len(rows)} rows, {rate:.0f} a second"
        f" with the pauses, {application.fastest:.0f} in the fastest second"
    )


@pytest.mark.long
def test_from_mariadb_to_mysql(tmp_path: Path) -> None:
    _, (there,), _ = Page("switch.md").steps
    with families("11.8", "9.7", {"binlog_row_metadata": "FULL"}) as pair:
        source, target = pair.source, pair.target
        target.sql("SET GLOBAL read_only = ON")
        source.sql(f"{SHOP}; ALTER DATABASE shop CHARACTER SET utf8mb4")
        with both_ways(pair, tmp_path) as (forth, reverse):
            forth.start()
            forth.wait_until_caught_up()
            for server in (source, target):
                server.sql(f"SET sql_log_bin = 0; {ACCOUNT}")
            with Application(source, target) as application:
                application.wait_for(20)
                said = switch(there, forth, reverse)
                assert "switched over: " in said
                application.wait_for(20)
            print(said.splitlines()[-2])
            wait_until(lambda: target.sql(ROWS) == source.sql(ROWS))
            rows = [what for _, what in source.sql(ROWS)]
            assert len(set(rows)) == len(rows)
            assert set(rows) >= application.acknowledged
        pair.discard()

"""The daemons of both directions, and lines of the page about a switch between them."""

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from mtsd.control.client import DaemonRefusedError, DaemonUnavailableError, fetch_status, post
from tests.fix_daemon import command
from tests.operations.move.application import ACCOUNT, Application, wait_until
from tests.operations.move.moving import ROWS, SHOP
from tests.replica.daemon_process import DaemonProcess
from tests.servers.pair import Pair

START: Final = f"sh -c '{sys.executable} -m mtsd run --standby --config {{config}} &'"


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


@contextmanager
def switching(
    pair: Pair, folder: Path, *more: str
) -> Iterator[tuple[DaemonProcess, DaemonProcess, Application]]:
    """Replicate a shop that an application writes to; in the end it has lost nothing.

    `more` is run on the source before.
    """
    with pair:
        source, target = pair.source, pair.target
        target.sql("SET GLOBAL read_only = ON")
        source.sql("; ".join((SHOP, "ALTER DATABASE shop CHARACTER SET utf8mb4", *more)))
        with both_ways(pair, folder) as (forth, reverse):
            forth.start()
            forth.wait_until_caught_up()
            # Two families have no accounts in common.
            for server in (source, target):
                server.sql(f"SET sql_log_bin = 0; {ACCOUNT}")
            with Application(source, target) as application:
                application.wait_for(20)
                yield forth, reverse, application
                application.wait_for(20)
            wait_until(lambda: target.sql(ROWS) == source.sql(ROWS))
            rows = [what for _, what in source.sql(ROWS)]
            assert len(set(rows)) == len(rows)
            assert set(rows) >= application.acknowledged
        pair.discard()


def keeps_up(daemon: DaemonProcess) -> bool:
    """Return whether a daemon, whoever started it, is connected, and has nearly caught up."""
    try:
        status = fetch_status(daemon.folder / "mtsd.sock")
    except DaemonUnavailableError:
        return False
    lag = None if status is None or status.state != "running" else status.lag_seconds
    return lag is not None and lag < 1.0


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
    line: str, forth: DaemonProcess, reverse: DaemonProcess, *more: str, status: int | None = 0
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

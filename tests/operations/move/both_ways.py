"""The daemons of both directions, and lines of the page about a switch between them."""

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from mtsd.control.client import DaemonRefusedError, DaemonUnavailableError, post
from tests.fix_daemon import command
from tests.operations.move.application import wait_until
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

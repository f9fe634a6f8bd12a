"""`mtsd top`: a running replica, live in a terminal."""

import argparse
import os
import select
import sys
import termios
import time
import tty
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.live import Live

from mtsd.cli.arguments import Subparsers, add_configuration, load_configuration, seconds
from mtsd.cli.complaint import complain
from mtsd.cli.live.screen import screen
from mtsd.cli.live.view import NO_RATES, View, keys_of, pressed, rates
from mtsd.control.client import (
    NONE_ANSWERS,
    DaemonRefusedError,
    DaemonUnavailableError,
    fetch_status,
    post,
)
from mtsd.control.status import Status
from mtsd.model.outcome.exit_status import ExitStatus

_EXAMPLE = """\
example:
  mtsd top --config /etc/mtsd/config.toml

keys: q quit, j and k choose a worker, enter looks into it, f freezes it or lets it go on
exit status: 0 ended by a key; 1 the daemon does not answer; 2 bad usage or configuration; 4 none
is running
"""
_KEY_BYTES: Final = 64
_SHORTEST_S: Final = 0.1
_LONGEST_S: Final = 3600.0


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "top",
        description="Watch a running daemon in this terminal.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_configuration(parser)
    parser.add_argument(
        "--interval", type=seconds(_SHORTEST_S, _LONGEST_S), default=1.0, metavar="SECONDS",
        help="how often it is asked (default: 1)",
    )  # fmt: skip
    parser.set_defaults(run=_top)


def _top(args: argparse.Namespace) -> int:
    socket = load_configuration(args).settings.status.socket
    if socket is None:
        return complain("status.socket is empty, so no daemon can be asked", ExitStatus.NOT_RUNNING)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return complain(
            "top needs a terminal; `mtsd status --json` is for scripts", ExitStatus.BAD_USAGE
        )
    try:
        status = fetch_status(socket)
        if status is None:
            return complain(NONE_ANSWERS.format(socket), ExitStatus.NOT_RUNNING)
        with _keys_at_once():
            _watch(socket, status, args.interval)
    except (DaemonRefusedError, DaemonUnavailableError) as error:
        return complain(error, ExitStatus.FAILED)
    except KeyboardInterrupt:
        pass
    return ExitStatus.DONE


@contextmanager
def _keys_at_once() -> Iterator[None]:
    """Have the terminal pass on each key, and show none."""
    before = termios.tcgetattr(sys.stdin)
    try:
        tty.setcbreak(sys.stdin)
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _watch(socket: Path, status: Status, interval: float) -> None:
    """Show it until a key ends that; what was shown last stays while no daemon answers."""
    view, shown = View(), NO_RATES
    console = Console()
    asked_at = time.monotonic()
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            live.update(screen(status, shown, view, console.height), refresh=True)
            left = asked_at + interval - time.monotonic()
            for key in _keys(max(0.0, left)):
                result = pressed(view, key, status)
                if result.ends:
                    return
                view = result.view
                if result.change:
                    view = replace(view, message=_changed(socket, result.change))
            if time.monotonic() < asked_at + interval:
                continue
            before, before_at = status, asked_at
            asked_at = time.monotonic()
            now, message = _asked(socket)
            if now is None:
                view = replace(view, message=message)
                continue
            status, shown = now, rates(before, now, asked_at - before_at)


def _asked(socket: Path) -> tuple[Status | None, str]:
    """Return the daemon's status, or what to say where there is none: it may come back."""
    try:
        return fetch_status(socket), f"no daemon answers on {socket} any more"
    except (DaemonRefusedError, DaemonUnavailableError) as error:
        return None, str(error)


def _keys(seconds: float) -> list[str]:
    """Return the keys that are pressed within so many seconds."""
    ready, _, _ = select.select([sys.stdin], [], [], seconds)
    if not ready:
        return []
    data = os.read(sys.stdin.fileno(), _KEY_BYTES)
    # Empty where the terminal is gone.
    return list(keys_of(data.decode("ascii", "ignore"))) if data else ["q"]


def _changed(socket: Path, change: Mapping[str, object]) -> str:
    """Have the daemon change something; return what to say about it."""
    try:
        answer = post(socket, "/distribute", change)
    except (DaemonRefusedError, DaemonUnavailableError) as error:
        return str(error)
    if answer is None:
        return f"no daemon answers on {socket}"
    did = {"freeze": "is frozen: it begins nothing more", "unfreeze": "continues"}
    return f"worker {change['worker']} {did[str(change['do'])]}"

"""What the commands that move replication share: admin accounts, and how a move is run."""

import argparse
import asyncio
import getpass
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Final

from mtsd.cli.arguments import add_configuration, named_path, seconds
from mtsd.cli.complaint import complain
from mtsd.cli.output import print_line, report
from mtsd.config import account_variable, doubts, secret_of, unreadable
from mtsd.model.errors import MtsdError
from mtsd.model.outcome.exit_status import ExitStatus
from mtsd.operations.move.admin import Admin
from mtsd.operations.move.how import HowToMove
from mtsd.operations.move.record import default_file

LONGEST_S: Final = 31_536_000.0
"""The longest time that an option of a move takes: a year."""
_TIMEOUT_S: Final = 60.0


def add_moving(parser: argparse.ArgumentParser) -> None:
    """Add the options of every move, to be read by `how_to_move`."""
    add_configuration(parser)
    parser.add_argument(
        "--execute", action="store_true", help="do it; without this, only say what would be done"
    )
    parser.add_argument(
        "--accept",
        action="append",
        default=[],
        metavar="NAME",
        help="go on although that differs, or is there; may be repeated",
    )
    parser.add_argument(
        "--timeout",
        type=seconds(1, LONGEST_S),
        default=_TIMEOUT_S,
        metavar="SECONDS",
        help="after that, everything is put back (default: %(default)g)",
    )
    parser.add_argument(
        "--report",
        type=named_path,
        metavar="FILE",
        help="where to write what was done, with times (default: mtsd-COMMAND-TIME.txt here)",
    )


def add_account(parser: argparse.ArgumentParser, option: str, what: str) -> None:
    """Add `--OPTION-user` and `--OPTION-password-file`, to be read by `account`."""
    parser.add_argument(f"--{option}-user", metavar="NAME", help=what)
    parser.add_argument(
        f"--{option}-password-file",
        type=named_path,
        metavar="FILE",
        help=f"its password (default: ${account_variable(option)}, else it is asked for)",
    )


def account(args: argparse.Namespace, option: str) -> Admin | None:
    """Return the account that was given, None if none was.

    A password is never an argument: everybody on the machine can read those. If its file cannot be
    read, says so on standard error, and raises SystemExit with status 2.
    """
    prefix = option.replace("-", "_")
    user: str | None = getattr(args, f"{prefix}_user")
    file: Path | None = getattr(args, f"{prefix}_password_file")
    if user is None:
        if file is not None:
            message = f"--{option}-password-file needs --{option}-user"
            raise SystemExit(complain(message, ExitStatus.BAD_USAGE))
        return None
    if file is not None:
        try:
            password = secret_of(file)
        except (OSError, UnicodeDecodeError) as error:
            message = f"--{option}-password-file: {unreadable(file, error, 'command line')}"
            raise SystemExit(complain(message, ExitStatus.BAD_USAGE)) from None
        for doubt in doubts(file, password):
            report(f"warning: {doubt}")
        return Admin(user, password)
    if (given := os.environ.get(account_variable(option))) is not None:
        return Admin(user, given)
    if sys.stdin is not None and sys.stdin.isatty():
        return Admin(user, getpass.getpass(f"Password of {user}: "))
    return Admin(user)


def how_to_move(args: argparse.Namespace, command: str) -> HowToMove:
    """Return what was said about a move."""
    report: Path | None = args.report
    if report is None and args.execute:
        report = default_file(command)
    return HowToMove(args.execute, frozenset(args.accept), args.timeout, report)


def run_move(move: Callable[[], Coroutine[None, None, str]], how: HowToMove) -> int:
    """Carry a move out; Ctrl-C and SIGTERM put everything back, and a second one waits for that.

    So does SIGHUP: a terminal that is gone would leave servers that nobody may write to.
    """

    async def interruptible() -> str:
        task = asyncio.current_task()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if task is not None:
                loop.add_signal_handler(number, task.cancel)
        return await move()

    try:
        proof = asyncio.run(interruptible())
    except MtsdError as error:
        return complain(error, ExitStatus.NEEDS_PERSON)
    except asyncio.CancelledError:
        return complain("interrupted before anything was done", ExitStatus.NEEDS_PERSON)
    if not proof:
        print_line("nothing was done: --execute does it")
    elif how.report is not None:
        print_line(f"what was done is in {how.report}")
    return ExitStatus.DONE

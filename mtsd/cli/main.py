"""The command `mtsd`."""

import argparse
import gc
import os
import select
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from mtsd import __version__
from mtsd.cli.complaint import complain
from mtsd.cli.output import OutputError, flush, not_written
from mtsd.cli.parser import CommandParser, did_you_mean
from mtsd.model.build import COMPILED
from mtsd.model.outcome.exit_status import ExitStatus

if TYPE_CHECKING:
    from mtsd.cli.arguments import Subparsers

COMMANDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "run": "replicate, in the foreground",
        "check": "everything that could fail later, now",
        "status": "show the state of the replica",
        "top": "watch the replica live: lag, throughput, workers, databases, waits",
        "position": "show or change the position on the target",
        "takeover": "go on where the server's own replica stops",
        "handover": "let the server's own replica go on where mtsd has stopped",
        "switchover": "let the application write to the target, with a way back",
        "distribute": "bind, pin and weigh databases, or freeze a worker, of a running daemon",
        "resolve": "settle an in-doubt group",
        "skip": "skip the group that stopped the replica",
        "binlog": "list the groups, events or rows of binary log files",
        "plan": "predict which policy, workers, batches and binds would serve a load",
        "config": "show the configuration",
        "support-bundle": "gather what a person who helps asks for first, without passwords",
        "completion": "print the completion of commands and options for a shell",
    }
)
"""What each is for."""
MOVES: Final = frozenset({"takeover", "handover", "switchover"})
"""Those of `mtsd/cli/moves`."""

_EXAMPLE = """\
example:
  mtsd check --config config.toml
  mtsd run --config config.toml
  mtsd status --config config.toml
  mtsd skip --config config.toml
  mtsd binlog --rows --gtid 3e11fa47-71ca-11e1-9e33-c80aa9429562:23 --config config.toml

Without --config, the file that the environment variable MTSD_CONFIG names is used, else
/etc/mtsd/config.toml. mtsd COMMAND --help has examples and exit statuses of each.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status: 2 on bad usage."""
    if sys.stderr is None:
        # It was closed. What is written to it must not end up in a file or socket opened later.
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["--"]:
        del words[0]
    status: int = ExitStatus.DONE
    try:
        try:
            args = _parsed(words)
            function: Callable[[argparse.Namespace], int] = args.run
            status = function(args)
        finally:
            flush()
    except BrokenPipeError:
        if not _reader_is_gone():
            raise
        _write_no_more()
    except OutputError as error:
        _write_no_more()
        complain(f"standard output cannot be written: {error.strerror}", ExitStatus.FAILED)
        status = ExitStatus.FAILED
    return status


def _parsed(words: list[str]) -> argparse.Namespace:
    """Read the words of a command. Raises SystemExit if they are wrong, or ask for help."""
    parser = _parser()
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    first = words[0] if words else "--help"
    if first in COMMANDS:
        _register(first, subparsers)
    elif first.startswith("-"):
        if first.partition("=")[0] not in {"-h", "--help", "--version"}:
            parser.error(f"COMMAND comes before its options, as in mtsd status {first}")
        # Nothing of this is run: it is listed.
        for command, purpose in COMMANDS.items():
            subparsers.add_parser(command, help=purpose)
    else:
        near = did_you_mean(first, COMMANDS) or f"; there are {', '.join(COMMANDS)}"
        parser.error(f"there is no command {first!r}{near}")
    try:
        return parser.parse_args(words)
    except OSError as error:
        # It prints its help by itself.
        raise not_written(error) from None


def _parser() -> argparse.ArgumentParser:
    parser = CommandParser(
        prog="mtsd",
        description="A MySQL replica outside the server.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    version = f"mtsd {__version__}{' (compiled)' if COMPILED else ''}"
    parser.add_argument("--version", action="version", version=version)
    return parser


def module_of(command: str) -> str:
    """Return the module of a command, which has a function `register`."""
    folder = "moves." if command in MOVES else ""
    return f"mtsd.cli.{folder}{command.replace('-', '_')}"


def _reader_is_gone() -> bool:
    """Return whether whoever reads standard output has closed it."""
    output = select.poll()
    output.register(sys.stdout, 0)
    return bool(output.poll(0))


def _write_no_more() -> None:
    """Let the interpreter not fail once more at its end, when it writes what is left."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _register(command: str, subparsers: "Subparsers") -> None:
    """Add a command. Importing the others, and collecting garbage, took a third of its start."""
    collects = gc.isenabled()
    gc.disable()
    try:
        import_module(module_of(command)).register(subparsers)
    finally:
        if collects:
            # What the modules hold lives until the end: there is no garbage in it to look for.
            gc.freeze()
            gc.enable()

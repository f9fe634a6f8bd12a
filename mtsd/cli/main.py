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
    parser = argparse.ArgumentParser(
        prog="mtsd",
        description="A MySQL replica outside the server.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    version = f"mtsd {__version__}{' (compiled)' if COMPILED else ''}"
    parser.add_argument("--version", action="version", version=version)
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["--"]:
        del words[0]
    if words and words[0] in COMMANDS:
        _register(words[0], subparsers)
    else:
        # Nothing of this is run: it is listed, or the word that is none of them is refused.
        for command, purpose in COMMANDS.items():
            subparsers.add_parser(command, help=purpose)
    args = parser.parse_args(words)
    function: Callable[[argparse.Namespace], int] = args.run
    status: int = ExitStatus.DONE
    try:
        status = function(args)
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        if not _reader_is_gone():
            raise
        # The interpreter must not flush into it again at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return status


def module_of(command: str) -> str:
    """Return the module of a command, which has a function `register`."""
    folder = "moves." if command in MOVES else ""
    return f"mtsd.cli.{folder}{command.replace('-', '_')}"


def _reader_is_gone() -> bool:
    """Return whether whoever reads standard output has closed it."""
    output = select.poll()
    output.register(sys.stdout, 0)
    return bool(output.poll(0))


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

"""The command `mtsd`."""

import argparse
import gc
import os
import select
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Final

from mtsd import __version__
from mtsd.model.build import COMPILED
from mtsd.model.outcome.exit_status import ExitStatus

COMMANDS: Final = (
    "run", "check", "status", "top", "position", "distribute", "resolve", "skip", "binlog", "plan",
    "config",
)  # fmt: skip
"""Each is the module of its name in this package, with a function `register`."""

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
    words = sys.argv[1:] if arguments is None else arguments
    # Importing the other commands and collecting garbage took a third of a command's start.
    collects = gc.isenabled()
    gc.disable()
    try:
        for command in _needed(words):
            import_module(f"mtsd.cli.{command}").register(subparsers)
    finally:
        if collects:
            # What the modules hold lives until the end: there is no garbage in it to look for.
            gc.freeze()
            gc.enable()
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


def _reader_is_gone() -> bool:
    """Return whether whoever reads standard output has closed it."""
    output = select.poll()
    output.register(sys.stdout, 0)
    return bool(output.poll(0))


def _needed(words: Sequence[str]) -> Sequence[str]:
    """Return the commands to import: one where it is named, none for the version, else all."""
    if words[:1] == ["--version"]:
        return ()
    return words[:1] if words and words[0] in COMMANDS else COMMANDS

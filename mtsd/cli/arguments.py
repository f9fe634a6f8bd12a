"""The arguments that every command with a configuration shares."""

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from mtsd.cli.complaint import complain
from mtsd.config import ConfigurationError, Loaded, load
from mtsd.model.exit_status import ExitStatus

# argparse has no public name for it.
Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001
"""What `ArgumentParser.add_subparsers` returns."""


def add_configuration(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Add `--config FILE` and `--set KEY=VALUE`, to be read by `load_configuration`."""
    parser.add_argument(
        "--config",
        type=Path,
        required=required,
        metavar="FILE",
        help="TOML file of settings; config.example.toml documents them",
    )
    parser.add_argument(
        "--set",
        type=_override,
        action="append",
        default=[],
        dest="overrides",
        metavar="KEY=VALUE",
        help="set one key, for example replica.parallel_workers=8; may be repeated",
    )


def load_configuration(
    args: argparse.Namespace, environ: Mapping[str, str] | None = None
) -> Loaded:
    """Load the settings from the arguments and the environment (`os.environ` if None).

    Warnings go to standard error. If anything is wrong, writes it there, one line each, and raises
    SystemExit with status 2.
    """
    try:
        loaded = read_configuration(args, environ)
    except ConfigurationError as error:
        for problem in error.problems:
            complain(str(problem), ExitStatus.BAD_USAGE)
        raise SystemExit(ExitStatus.BAD_USAGE) from None
    for warning in loaded.warnings:
        print(f"mtsd: warning: {warning}", file=sys.stderr)
    return loaded


def read_configuration(
    args: argparse.Namespace, environ: Mapping[str, str] | None = None
) -> Loaded:
    """Load as `load_configuration` does, but print nothing; raises ConfigurationError."""
    environ = os.environ if environ is None else environ
    credentials = environ.get("CREDENTIALS_DIRECTORY")
    return load(
        args.config, dict(args.overrides), environ, Path(credentials) if credentials else None
    )


def _override(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        # The text is not repeated: it may be a password given in the wrong place.
        raise argparse.ArgumentTypeError("KEY=VALUE is needed")
    return key.strip(), value

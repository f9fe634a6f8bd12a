"""The arguments that commands share: the configuration, and the types of numbers."""

import argparse
import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final, TypeAlias

from mtsd.cli.complaint import complain
from mtsd.cli.output import report
from mtsd.config import (
    CONFIGURATION_VARIABLE,
    FIELDS,
    ConfigurationError,
    Loaded,
    Problem,
    environment_variable,
    is_secret,
    load,
)
from mtsd.config.kinds import is_path
from mtsd.model.outcome.command import remember
from mtsd.model.outcome.exit_status import ExitStatus

# argparse has no public name for it.
Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001
"""What `ArgumentParser.add_subparsers` returns."""


DEFAULT_CONFIGURATION: Final = Path("/etc/mtsd/config.toml")
"""The file of settings that systemd/mtsd.service and the container image have."""
_MANY_DIGITS: Final = 20
_FOUND_BY_ITSELF: Final = f"default: ${CONFIGURATION_VARIABLE}, else {DEFAULT_CONFIGURATION}"


def add_configuration(parser: argparse.ArgumentParser, *, default: str = _FOUND_BY_ITSELF) -> None:
    """Add `--config FILE` and `--set KEY=VALUE`, to be read by `load_configuration`.

    `default` says in the help what is done without the former.
    """
    parser.add_argument(
        "--config",
        type=named_path,
        metavar="FILE",
        help=f"TOML file of settings; config.example.toml documents them ({default})",
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


def named_path(text: str) -> Path:
    """Return the file or folder that an argument names: the type of such an argument.

    An empty one, of a shell's variable that is not set, would be the folder that one is in.
    """
    return Path(named(text))


def named(text: str) -> str:
    """Return a name that is not empty: the type of an argument that is one."""
    if not text:
        raise argparse.ArgumentTypeError("a name is needed, and this is an empty one")
    return text


def spark_master(text: str) -> str:
    """Return the address of a Spark: the type of an argument that is one; Java's words are long."""
    if re.fullmatch(r"local(-cluster)?(\[[\d*, ]+\])?|(spark|k8s)://.+|yarn", text) is None:
        raise argparse.ArgumentTypeError(
            f"{text[:80]!r} is no master of Spark: local[*], local[4], spark://HOST:PORT, yarn, or"
            " k8s://https://HOST:PORT"
        )
    return text


def seconds(least: float, most: float) -> Callable[[str], float]:
    """Return the type of an argument that is a time: `nan` and `inf` are none."""

    def parsed(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not least <= number <= most:
            raise argparse.ArgumentTypeError(
                f"{text[:80]!r} is not a number from {least:.12g} to {most:.12g}"
            )
        return number

    return parsed


def whole(least: int, most: int = sys.maxsize) -> Callable[[str], int]:
    """Return the type of an argument that is a whole number."""

    def parsed(text: str) -> int:
        # Not int() first: it refuses thousands of digits with words of its own.
        plain = text.isascii() and text.isdecimal() and len(text) < _MANY_DIGITS
        if not plain or not least <= int(text) <= most:
            to = "" if most == sys.maxsize else f" to {most}"
            raise argparse.ArgumentTypeError(
                f"{text[:80]!r} is not a whole number from {least}{to}"
            )
        return int(text)

    return parsed


def refuse_settings(args: argparse.Namespace) -> None:
    """Raise SystemExit with status 2 if `--set` was given to a command that reads no settings."""
    if args.overrides:
        message = "--set is for the settings of a server: it has no effect without --config"
        raise SystemExit(complain(message, ExitStatus.BAD_USAGE))


def load_configuration(
    args: argparse.Namespace, environ: Mapping[str, str] | None = None
) -> Loaded:
    """Load the settings from the arguments and the environment (`os.environ` if None).

    Warnings go to standard error. If anything is wrong, writes it there, one line each, and raises
    SystemExit with status 2. Messages name commands with the same configuration from then on.
    """
    environ = os.environ if environ is None else environ
    try:
        loaded = read_configuration(args, environ)
    except ConfigurationError as error:
        for problem in error.problems:
            complain(str(problem), ExitStatus.BAD_USAGE)
        raise SystemExit(ExitStatus.BAD_USAGE) from None
    for warning in loaded.warnings:
        report(f"warning: {warning}")
    remember(_options(configuration_file(args, environ), args.overrides, environ))
    return loaded


def read_configuration(
    args: argparse.Namespace, environ: Mapping[str, str] | None = None
) -> Loaded:
    """Load as `load_configuration` does, but print nothing; raises ConfigurationError."""
    environ = os.environ if environ is None else environ
    credentials = environ.get("CREDENTIALS_DIRECTORY")
    return load(
        configuration_file(args, environ),
        dict(args.overrides),
        environ,
        Path(credentials) if credentials else None,
    )


def configuration_file(args: argparse.Namespace, environ: Mapping[str, str]) -> Path:
    """Return the file of settings. Raises ConfigurationError if none is named and none is there."""
    named: Path | None = args.config
    if named is not None:
        return named
    if variable := environ.get(CONFIGURATION_VARIABLE):
        return Path(variable)
    if not DEFAULT_CONFIGURATION.exists():
        missing = (
            f"is not given, the environment has no {CONFIGURATION_VARIABLE}, and there is no"
            f" {DEFAULT_CONFIGURATION}"
        )
        raise ConfigurationError(
            (Problem("--config FILE", missing, "one of the three is needed", "command line"),)
        )
    return DEFAULT_CONFIGURATION


def _options(
    file: Path, overrides: Iterable[tuple[str, str]], environ: Mapping[str, str]
) -> list[str]:
    """Return the options by which another process has this configuration, wherever it is started.

    What the environment sets is among them: another shell has another one. A secret is neither
    shown nor left out in silence, except those of the environment, which are usually everywhere.
    """
    words = ["--config", str(file.absolute())]
    given = {
        key: environ[name]
        for key in FIELDS
        if (name := environment_variable(key)) in environ and not is_secret(FIELDS[key])
    }
    for key, value in (given | dict(overrides)).items():
        shown = str(Path(value).absolute()) if value and is_path(FIELDS[key]) else value
        words += ["--set", f"{key}={'SECRET' if is_secret(FIELDS[key]) else shown}"]
    return words


def _override(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        # The text is not repeated: it may be a password given in the wrong place.
        raise argparse.ArgumentTypeError("KEY=VALUE is needed")
    return key.strip(), value

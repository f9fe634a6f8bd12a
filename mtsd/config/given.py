"""Which settings were given, and where: file, credentials, environment, command line."""

import difflib
import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mtsd.config.file_modes import Account, readable, writable
from mtsd.config.given_files import doubts, secret_of, text_of, unreadable
from mtsd.config.kinds import is_file, is_path, is_plain_text, is_secret
from mtsd.config.problems import Problem, shown
from mtsd.config.settings import FIELDS, SECTIONS

ENVIRONMENT_PREFIX = "MTSD_"
CONFIGURATION_VARIABLE = "MTSD_CONFIG"
"""Names the file of settings, where the command line does not; no key is called so."""
ACCOUNTS = ("admin", "admin-source", "replica")
"""The accounts of moves, which are options and no settings; their passwords may be in variables."""

_BARE_KEY = re.compile(r"[0-9A-Za-z_-]+")


@dataclass(frozen=True, slots=True)
class Given:
    """A value that was set, and where.

    `from_credential`: it may be secret whatever its key, because it came from where secrets are.
    """

    value: object
    origin: str
    from_credential: bool = False


@dataclass(slots=True)
class Gathered:
    """Everything that was given.

    `values` contains known keys only, each with the value that takes precedence; `complete` is
    false if a part could not be read.
    """

    values: dict[str, Given] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    complete: bool = True


def environment_variable(key: str) -> str:
    """Return the environment variable of a key: `MTSD_SOURCE__HOST` for `source.host`."""
    return ENVIRONMENT_PREFIX + key.upper().replace(".", "__")


def account_variable(account: str) -> str:
    """Return the variable of an account's password: `MTSD_ADMIN_PASSWORD` for `admin`."""
    return f"{ENVIRONMENT_PREFIX}{account.replace('-', '_').upper()}_PASSWORD"


_NO_KEYS = frozenset({CONFIGURATION_VARIABLE, *map(account_variable, ACCOUNTS)})


def gather(
    path: Path,
    overrides: Mapping[str, str],
    environ: Mapping[str, str],
    credentials_directory: Path | None,
) -> Gathered:
    """Collect what is given for each key; later arguments take precedence."""
    gathered = Gathered()
    _read_file(path, gathered)
    if credentials_directory is not None:
        _read_credentials(credentials_directory, gathered)
    _read_environment(environ, gathered)
    _read_overrides(overrides, gathered)
    return gathered


def _read_file(path: Path, gathered: Gathered) -> None:
    origin = f"file {path}"
    try:
        document = tomllib.loads(text_of(path))
    except (OSError, UnicodeDecodeError) as error:
        gathered.problems.append(unreadable(path, error, "the file of settings"))
        gathered.complete = False
        return
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        gathered.problems.append(_syntax_problem(path, error))
        gathered.complete = False
        return
    holds_secret = False
    for section, table in document.items():
        if section not in SECTIONS:
            gathered.problems.append(_unknown(_written(section), FIELDS, origin, SECTIONS))
            continue
        if not isinstance(table, dict):
            gathered.problems.append(
                Problem(section, "found a value", f"allowed is a table, [{section}]", origin)
            )
            continue
        for name, value in table.items():
            key = f"{section}.{name}"
            if key not in FIELDS:
                written = f"{section}.{_written(name)}"
                gathered.problems.append(_unknown(written, FIELDS, origin))
                continue
            holds_secret |= is_secret(FIELDS[key]) and bool(value)
            if is_path(FIELDS[key]) and isinstance(value, str) and value:
                gathered.values[key] = Given(str(path.absolute().parent / value), origin)
            else:
                gathered.values[key] = Given(value, origin)
    account = Account.of_this_process()
    if holds_secret:
        gathered.warnings += readable(path, "a password", account, ", or use password_file")
    gathered.warnings += writable(path, account)


def _syntax_problem(path: Path, error: tomllib.TOMLDecodeError | RecursionError) -> Problem:
    if isinstance(error, RecursionError):
        found = "found lists or tables in each other, hundreds deep"
        return Problem(str(path), found, "allowed is TOML", f"file {path}")
    match = re.fullmatch(
        r"(.*) \(at (?:line ([0-9]+), column ([0-9]+)|end of document)\)", f"{error}"
    )
    message, line, column = match.groups() if match else (str(error), None, None)
    where = f"line {line}, column {column}" if line else "end of the file"
    return Problem(
        f"{path}, {where}", f"found a syntax error, {message}", "allowed is TOML", f"file {path}"
    )


def _read_credentials(directory: Path, gathered: Gathered) -> None:
    try:
        names = sorted(os.listdir(directory))  # noqa: PTH208  names, not paths, are wanted
    except OSError as error:
        gathered.problems.append(unreadable(directory, error, "$CREDENTIALS_DIRECTORY"))
        gathered.complete = False
        return
    for name in names:
        origin = f"systemd credential {name}"
        section, dot, _ = name.partition(".")
        if not dot or section not in SECTIONS:
            # A service may have credentials for other purposes, TLS keys for example.
            continue
        if name not in FIELDS:
            gathered.problems.append(_unknown(_written(name), FIELDS, origin))
            continue
        if is_file(FIELDS[name]):
            # The credential is the certificate, key or password itself: pass on its path only.
            gathered.values[name] = Given(str(directory / name), origin)
            continue
        try:
            text = secret_of(directory / name)
        except (OSError, UnicodeDecodeError) as error:
            gathered.problems.append(unreadable(directory / name, error, origin))
            gathered.complete = False
            continue
        if is_secret(FIELDS[name]):
            gathered.warnings += doubts(directory / name, text)
        gathered.values[name] = Given(_from_text(name, text), origin, from_credential=True)


def _read_environment(environ: Mapping[str, str], gathered: Gathered) -> None:
    keys = {environment_variable(key): key for key in FIELDS}
    for name, text in environ.items():
        if not name.startswith(ENVIRONMENT_PREFIX) or name in _NO_KEYS:
            continue
        if name not in keys:
            gathered.problems.append(_unknown(_written(name), keys, "environment"))
            continue
        key = keys[name]
        gathered.values[key] = Given(_from_text(key, text), f"environment variable {name}")


def _read_overrides(overrides: Mapping[str, str], gathered: Gathered) -> None:
    for key, text in overrides.items():
        if key not in FIELDS:
            gathered.problems.append(_unknown(_written(key), FIELDS, "command line"))
            continue
        gathered.values[key] = Given(_from_text(key, text), "command line")
        if is_secret(FIELDS[key]) and text:
            gathered.warnings.append(
                f"{key} is on the command line, where every account on the machine can see it"
            )


def _from_text(key: str, text: str) -> object:
    """Parse a value written as in the TOML file, except that strings need no quotes.

    What cannot be parsed remains a string, for the key's own check to report.
    """
    if is_plain_text(FIELDS[key]):
        return text
    try:
        document = tomllib.loads(f"value = {text.strip()}")
    except (tomllib.TOMLDecodeError, RecursionError):
        return text
    value: object = document.pop("value", text)
    return text if document else value


def _written(name: str) -> str:
    return name if all(map(_BARE_KEY.fullmatch, name.split("."))) else shown(name)


def _unknown(name: str, known: Iterable[str], origin: str, sections: Iterable[str] = ()) -> Problem:
    """Report a name that does not exist, and suggest the closest one that does."""
    candidates = [*sections, *known]
    by_last_part: dict[str, str] = {}
    for candidate in candidates:
        by_last_part.setdefault(candidate.rpartition(".")[2], candidate)
    last_part = name.rpartition(".")[2]
    if last_part in by_last_part:
        # The right name in the wrong table, or outside any table.
        near = [by_last_part[last_part]]
    elif name.upper() in by_last_part:
        near = [name.upper()]
    elif not (near := difflib.get_close_matches(name, candidates, n=1, cutoff=0.75)):
        matches = difflib.get_close_matches(last_part, by_last_part, n=1, cutoff=0.75)
        near = [by_last_part[match] for match in matches]
    if name in SECTIONS:
        of_it = next(key for key in FIELDS if key.startswith(f"{name}."))
        return Problem(name, "is a section", f"name one of its keys, such as {of_it}", origin)
    hint = f"did you mean {near[0]}?" if near else "config.example.toml lists all keys"
    return Problem(name, "does not exist", hint, origin)

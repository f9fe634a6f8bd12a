"""Turns what was given into consistent settings, or into a list of everything that is wrong."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from pydantic import SecretStr, ValidationError
from pydantic_core import ErrorDetails

from mtsd.config.conflicts import conflicts, ineffective
from mtsd.config.file_modes import Account, readable, writable
from mtsd.config.given import Given, gather
from mtsd.config.given_files import doubts, secret_of, unreadable
from mtsd.config.kinds import allowed, is_secret
from mtsd.config.problems import ConfigurationError, Problem, shown
from mtsd.config.settings import FIELDS, SECTIONS, Settings, SourceSettings

DEFAULT = "default"
"""The origin of a value that was not set."""

_PASSWORD_OF_URL = re.compile(r"://[^/@]*@")
_NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Loaded:
    """The settings in force.

    `origins` says for every key of `FIELDS` where its value comes from; `warnings` are lines for
    humans.
    """

    settings: Settings
    origins: dict[str, str]
    warnings: tuple[str, ...]


def load(
    path: Path,
    overrides: Mapping[str, str] = _NOTHING,
    environ: Mapping[str, str] = _NOTHING,
    credentials_directory: Path | None = None,
) -> Loaded:
    """Read and check the settings.

    Precedence, lowest first: the TOML file at `path`; the files in `credentials_directory`, named
    after keys (`source.password`; `source.tls_key` is the PEM file itself); the variables in
    `environ` (`MTSD_SOURCE__PASSWORD`); and `overrides`, strings by key. Relative paths in the
    file, and the default of `status.socket`, are relative to the file's folder, others to the
    current one. The contents of a password_file are put into `password`.

    Raises ConfigurationError listing everything that is wrong.
    """
    gathered = gather(path, overrides, environ, credentials_directory)
    given = gathered.values
    if "status.socket" not in given:
        socket = path.absolute().parent / str(FIELDS["status.socket"].default)
        given["status.socket"] = Given(str(socket), DEFAULT)
    problems = gathered.problems
    settings, wrong = _validate(given, problems)
    if gathered.complete:
        for conflict in conflicts(settings, given):
            if wrong.isdisjoint(conflict.keys):
                key = conflict.keys[0]
                problems.append(Problem(key, conflict.found, conflict.allowed, _origin(key, given)))
                wrong.update(conflict.keys)
    origins = {key: _origin(key, given) for key in FIELDS}
    warnings = [*gathered.warnings, *ineffective(settings, given)]
    settings = _with_password_files(settings, wrong, origins, problems, warnings)
    warnings += _exposed(settings, credentials_directory)
    if problems:
        raise ConfigurationError(tuple(problems))
    return Loaded(settings, origins, tuple(warnings))


def _validate(given: Mapping[str, Given], problems: list[Problem]) -> tuple[Settings, set[str]]:
    """Check each key by itself; a key with a wrong value gets its default."""
    wrong: set[str] = set()
    sections: dict[str, object] = {}
    for section, kind in SECTIONS.items():
        make: Callable[..., object] = kind
        values = {
            key.removeprefix(f"{section}."): entry.value
            for key, entry in given.items()
            if key.startswith(f"{section}.")
        }
        try:
            sections[section] = make(**values)
        except ValidationError as error:
            for detail in error.errors(include_url=False):
                name, *within = detail["loc"]
                key = f"{section}.{name}"
                wrong.add(key)
                problems.append(_problem(key, within, detail, given[key]))
                values.pop(str(name), None)
            sections[section] = make(**values)
    make_settings: Callable[..., Settings] = Settings
    return make_settings(**sections), wrong


def _problem(key: str, within: Iterable[int | str], detail: ErrorDetails, entry: Given) -> Problem:
    if is_secret(FIELDS[key]) or entry.from_credential:
        found = "found a value that is not shown"
    elif isinstance(detail["input"], dict):
        found = "found a table"
    else:
        # A URL may have been given for the name of a host, with its password.
        found = f"found {_PASSWORD_OF_URL.sub('://…@', shown(detail['input']))}"
        if detail["type"] == "value_error":
            found += f", {detail['ctx']['error']}"
    path = key + "".join(f"[{index}]" for index in within)
    return Problem(path, found, f"allowed is {allowed(FIELDS[key])}", entry.origin)


def _origin(key: str, given: Mapping[str, Given]) -> str:
    return given[key].origin if key in given else DEFAULT


def _with_password_files(
    settings: Settings,
    wrong: set[str],
    origins: dict[str, str],
    problems: list[Problem],
    warnings: list[str],
) -> Settings:
    for section, endpoint in (("source", settings.source), ("target", settings.target)):
        key, path = f"{section}.password_file", endpoint.password_file
        if path is None or key in wrong:
            continue
        try:
            password = secret_of(path)
        except (OSError, UnicodeDecodeError) as error:
            problem = unreadable(path, error, origins[key])
            problems.append(
                Problem(key, f"{problem.key} {problem.found}", problem.allowed, problem.origin)
            )
            continue
        warnings += doubts(path, password)
        origins[f"{section}.password"] = f"{key} {path}"
        secret = SecretStr(password)
        if isinstance(endpoint, SourceSettings):
            settings = replace(settings, source=replace(endpoint, password=secret))
        else:
            settings = replace(settings, target=replace(endpoint, password=secret))
    return settings


def _exposed(settings: Settings, credentials_directory: Path | None) -> Iterator[str]:
    """Yield a warning for each file that others may read or write; systemd guards its own."""
    account = Account.of_this_process()
    warned: set[str] = set()
    for endpoint in (settings.source, settings.target):
        for path, what in (
            (endpoint.password_file, "a password"),
            (endpoint.tls_key, "a private key"),
            (endpoint.tls_ca, ""),
        ):
            if path is None or path.parent == credentials_directory:
                continue
            exposed = [*(readable(path, what, account) if what else ()), *writable(path, account)]
            yield from (warning for warning in exposed if warning not in warned)
            warned.update(exposed)

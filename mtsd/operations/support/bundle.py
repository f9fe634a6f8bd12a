"""`mtsd support-bundle`: one file with what a person who helps asks for first.

It is most needed where something does not work. So each part is had by itself, and one that cannot
be had says why in its place.
"""

import io
import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from mtsd import __version__
from mtsd.apply.position.position_schema import LOCK_TOKEN, STATUS_TABLES, TABLES
from mtsd.apply.sql import literals
from mtsd.config import Loaded, Settings, document
from mtsd.config.settings import SourceSettings, TargetSettings
from mtsd.control.client import fetch_status, get
from mtsd.model.build import COMPILED
from mtsd.model.error_numbers import NO_SUCH_TABLE
from mtsd.model.errors import MtsdError, NeedsPersonError, ServerError, system_reason
from mtsd.operations.check.checking import check
from mtsd.operations.stored_status import read_stored
from mtsd.operations.support.redaction import Redaction, secrets_in
from mtsd.replica.core.endpoints import endpoint
from mtsd.wire.neutral_session import neutral_connection

_LOG_BYTES: Final = 2_000_000
_LOG_LINES: Final = 5_000
_MAX_ROWS: Final = 1_000
_PATIENCE_S: Final = 30.0
_LIBRARIES: Final = ("aiomysql", "pymysql", "pydantic", "structlog", "uvloop", "zlib-ng", "h11")
_ABOUT: Final = """\
What mtsd support-bundle has gathered. A part that could not be had says why.

versions.json           of mtsd, Python, libraries and the operating system
config.json             the settings in force and where each comes from, passwords hidden
status.json             what the daemon says, or the target if none answers
metrics.txt             /metrics of the daemon
check.json              what mtsd check says
position-tables.json    the rows of the position tables, without the secret of the locks
source-variables.json   SHOW GLOBAL VARIABLES, passwords hidden
target-variables.json   the same
log.txt                 the end of the log

Passwords of the configuration and of the environment, coded ones too, and what is a password, a key
or a token by its place, in statements, URLs and commands, are replaced by (hidden). Names of hosts,
users, databases and tables, and the statements or rows that have stopped the replica, are there:
look through it before you give it to somebody.
"""


@dataclass(frozen=True, slots=True)
class LogSource:
    """Where the log is: a file, or else the journal of a systemd unit."""

    file: Path | None
    unit: str


async def gather(loaded: Loaded, log: LogSource) -> Mapping[str, str]:
    """Return the texts of the bundle by their names, redacted. Raises nothing."""
    settings = loaded.settings
    redaction = Redaction([*secrets_of(settings), *secrets_in(os.environ.items())])

    async def tables() -> str:
        return _json(redaction.value(await _position_tables(settings)))

    async def variables(side: SourceSettings | TargetSettings, role: str) -> str:
        return _json(redaction.variables(await _variables(side, role)))

    parts: dict[str, Callable[[], Awaitable[str]]] = {
        "versions.json": _versions,
        "config.json": lambda: _config(loaded),
        "status.json": lambda: _status(settings),
        "metrics.txt": lambda: _metrics(settings),
        "check.json": lambda: _check(settings),
        "position-tables.json": tables,
        "source-variables.json": lambda: variables(settings.source, "source"),
        "target-variables.json": lambda: variables(settings.target, "target"),
        "log.txt": lambda: _log(log),
    }
    members = {"README.txt": _ABOUT}
    for name, part in parts.items():
        try:
            text = await part()
        except (MtsdError, OSError, subprocess.SubprocessError, TimeoutError) as error:
            text = f"could not be had: {_reason(error)}\n"
        members[name] = redaction.document(text)
    return members


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {system_reason(error)}"
    return str(error)


def pack(parts: Mapping[str, str], folder: str) -> bytes:
    """Return a compressed tar of the texts, all in a folder of that name."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, text in parts.items():
            content = text.encode("utf-8", "backslashreplace")
            entry = tarfile.TarInfo(f"{folder}/{name}")
            entry.size, entry.mode = len(content), 0o600
            tar.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


def secrets_of(settings: Settings) -> list[str]:
    """Return what must not be in the bundle."""
    return [side.password.get_secret_value() for side in (settings.source, settings.target)]


async def _versions() -> str:
    libraries = {}
    for name in _LIBRARIES:
        try:
            libraries[name] = version(name)
        except PackageNotFoundError:
            libraries[name] = "not installed"
    return _json(
        {
            "mtsd": __version__,
            "compiled": COMPILED,
            "python": sys.version,
            "system": platform.platform(),
            "libraries": libraries,
        }
    )


async def _config(loaded: Loaded) -> str:
    values = document(loaded.settings)
    return _json(
        {key: {"value": value, "origin": loaded.origins[key]} for key, value in values.items()}
    )


async def _status(settings: Settings) -> str:
    socket = settings.status.socket
    status = fetch_status(socket) if socket is not None else None
    return (status or await read_stored(settings)).to_json(indent=2)


async def _metrics(settings: Settings) -> str:
    socket = settings.status.socket
    answer = get(socket, "/metrics") if socket is not None else None
    if answer is None:
        raise NeedsPersonError("no daemon answers")
    return answer.decode("utf-8", "replace")


async def _check(settings: Settings) -> str:
    return _json([asdict(line) for line in await check(settings)])


async def _position_tables(settings: Settings) -> dict[str, object]:
    contents: dict[str, object] = {}
    schema = literals.name(settings.target.schema)
    async with (
        neutral_connection(endpoint("target", settings.target)) as connection,
        connection.answering(_PATIENCE_S),
    ):
        # Who knows the token can keep a daemon from starting.
        for name in (*(each for each in TABLES if each != LOCK_TOKEN), *STATUS_TABLES):
            try:
                rows = await connection.query_named(
                    b"SELECT * FROM %b.%b LIMIT %d" % (schema, literals.name(name), _MAX_ROWS)
                )
            except ServerError as error:
                contents[name] = "not there" if error.number in NO_SUCH_TABLE else f"error: {error}"
            else:
                contents[name] = [
                    {column: _shown(value) for column, value in row.items()} for row in rows
                ]
    return contents


def _shown(value: object) -> object:
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return f"0x{value.hex()}"
    return value if isinstance(value, int | float | None) else str(value)


async def _variables(side: SourceSettings | TargetSettings, role: str) -> dict[str, str]:
    async with (
        neutral_connection(endpoint(role, side)) as connection,
        connection.answering(_PATIENCE_S),
    ):
        rows = await connection.query("SHOW GLOBAL VARIABLES")
    return {str(name): str(value) for name, value in rows}


async def _log(log: LogSource) -> str:
    if log.file is not None:
        with log.file.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _LOG_BYTES))
            lines = file.read().decode("utf-8", "replace").splitlines()
        return "\n".join(lines[-_LOG_LINES:]) + "\n"
    journalctl = shutil.which("journalctl")
    if journalctl is None:
        raise NeedsPersonError("there is no journal here: name the log with --log FILE")
    done = subprocess.run(  # noqa: ASYNC221, S603 - no shell; nothing else runs
        [journalctl, f"--unit={log.unit}", f"--lines={_LOG_LINES}", "--no-pager", "--output=cat"],
        capture_output=True, check=False, timeout=_PATIENCE_S,
    )  # fmt: skip
    if done.returncode:
        raise NeedsPersonError(done.stderr.decode("utf-8", "replace").strip())
    return done.stdout.decode("utf-8", "replace")


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"

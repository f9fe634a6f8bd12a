"""The validated options of the format `mtsd_binlog` for a live source."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from mtsd.model.errors import NeedsPersonError
from mtsd.wire.endpoint import Endpoint
from mtsd.wire.tls import REQUIRING, public_key, tls_context

_TLS_MODES: Final = ("disabled", "preferred", *sorted(REQUIRING))
_OF_TLS: Final = ("tls", "tls_ca", "tls_cert")
_MAX_IDS: Final = 1 << 16
_LARGEST_ID: Final = (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class LiveOptions:
    """Where a source is and how to log in; a password kept elsewhere is read when connecting.

    Readers take their ids from `server_ids`; if it is empty, the source does not treat them as
    replicas. An unreachable source is retried for `retry_seconds`.
    """

    host: str = "127.0.0.1"
    port: int = 3306
    unix_socket: str = ""
    user: str = "repl"
    password: str = field(default="", repr=False)
    password_file: str = ""
    password_env: str = ""
    tls: str = "preferred"
    tls_ca: str = ""
    tls_cert: str = ""
    tls_key: str = ""
    server_public_key: str = ""
    get_public_key: bool = False
    clear_password: bool = False
    connect_timeout: float = 10.0
    server_ids: tuple[int, ...] = ()
    retry_seconds: float = 60.0

    def __str__(self) -> str:
        return self.unix_socket or f"{self.host}:{self.port}"

    def endpoint(self) -> Endpoint:
        """Return where to connect, and the password; NeedsPersonError if a file is unusable."""
        context = None
        if not self.unix_socket:
            ca, cert, key = (
                Path(name) if name else None for name in (self.tls_ca, self.tls_cert, self.tls_key)
            )
            context = tls_context("source", self.tls, ca=ca, cert=cert, key=key)
        return Endpoint(
            role="source",
            host=self.host,
            port=self.port,
            unix_socket=self.unix_socket,
            user=self.user,
            password=self._password(),
            connect_timeout=self.connect_timeout,
            tls=context,
            require_tls=self.tls in REQUIRING,
            server_public_key=public_key(
                "source", Path(self.server_public_key) if self.server_public_key else None
            ),
            get_public_key=self.get_public_key,
            clear_password=self.clear_password,
        )

    def _password(self) -> str:
        if self.password_file:
            # It costs pydantic, which most reads do not need.
            from mtsd.config import secret_of  # noqa: PLC0415

            try:
                return secret_of(Path(self.password_file))
            except (OSError, UnicodeDecodeError) as error:
                why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
                raise NeedsPersonError(
                    f"option password_file = {self.password_file!r} cannot be read: {why}: it has"
                    " to be there on the driver and on every executor"
                ) from None
        if self.password_env:
            password = os.environ.get(self.password_env)
            if password is None:
                raise NeedsPersonError(
                    f"option password_env = {self.password_env!r}: there is no such variable: it"
                    " has to be set for the driver and, by spark.executorEnv, for every executor"
                )
            return password
        return self.password


def parse_live(given: Mapping[str, str]) -> tuple[LiveOptions | None, list[str]]:
    """Return the options of a live source, or None if there are none, and what is wrong."""
    values: dict[str, object] = {}
    problems: list[str] = []
    for name, parse in LIVE.items():
        if name in given:
            try:
                values[name] = parse(given[name] if name == "password" else given[name].strip())
            except ValueError as error:
                shown = "" if name == "password" else f" is {given[name]!r}"
                problems.append(f"option {name!r}{shown}: {error}")
    if not values:
        return None, problems
    if "host" not in values and "unix_socket" not in values:
        problems.append("a live source needs the option 'host' or 'unix_socket'")
    elif "host" in values and "unix_socket" in values:
        problems.append("there are both 'host' and 'unix_socket'")
    if len({"password", "password_file", "password_env"} & set(values)) > 1:
        problems.append("the password is given more than once")
    if ("tls_cert" in values) != ("tls_key" in values):
        problems.append("options 'tls_cert' and 'tls_key' belong together")
    problems += _ineffective(values)
    if problems:
        return None, problems
    return LiveOptions(**values), []  # type: ignore[arg-type]


def _ineffective(values: Mapping[str, object]) -> list[str]:
    """Return which options would do nothing beside others, although somebody counts on them."""
    problems: list[str] = []
    tls = str(values.get("tls", "preferred"))
    if "unix_socket" in values:
        problems += [
            f"option {name!r} has no effect on a 'unix_socket'"
            for name in ("port", *_OF_TLS)
            if name in values and values[name] not in {"disabled", "preferred"}
        ]
    elif "tls_ca" in values and not tls.startswith("verify_"):
        problems.append(
            f"option 'tls_ca' has no effect while 'tls' is {tls!r}: verify_ca or verify_identity"
            " has the source verified"
        )
    elif "tls_cert" in values and tls == "disabled":
        problems.append("option 'tls_cert' has no effect while 'tls' is 'disabled'")
    if values.get("get_public_key") and "server_public_key" in values:
        problems.append(
            "option 'get_public_key' has no effect beside 'server_public_key': no key is asked for"
        )
    return problems


def _host(text: str) -> str:
    if not text or "/" in text:
        raise ValueError("it is a name or an address, without anything else")
    if text.count(":") == 1:
        raise ValueError("it is a name or an address: 'port' is an option of its own")
    return text


def _port(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 1 << 16:
        raise ValueError("it is a port")
    return int(text)


def _tls(text: str) -> str:
    if text.lower() not in _TLS_MODES:
        raise ValueError(f"it is one of {', '.join(_TLS_MODES)}")
    return text.lower()


def _flag(text: str) -> bool:
    if text.lower() not in {"true", "false"}:
        raise ValueError("it is true or false")
    return text.lower() == "true"


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 86_400:
        raise ValueError("it is a number of seconds")
    return seconds


def _server_ids(text: str) -> tuple[int, ...]:
    ids: dict[int, None] = {}
    for part in text.split(","):
        first, _, last = (word.strip() for word in part.partition("-"))
        last = last or first
        if not (first.isdecimal() and last.isdecimal()):
            raise ValueError("it is a list of ids and ranges, such as 4001-4010")
        if not 0 < int(first) <= int(last) <= _LARGEST_ID or int(last) - int(first) >= _MAX_IDS:
            raise ValueError(f"{part.strip()} is no range of server ids, from 1 to {_LARGEST_ID}")
        ids.update(dict.fromkeys(range(int(first), int(last) + 1)))
    return tuple(ids)


LIVE: Final[dict[str, Callable[[str], object]]] = {
    "host": _host,
    "port": _port,
    "unix_socket": str,
    "user": str,
    "password": str,
    "password_file": str,
    "password_env": str,
    "tls": _tls,
    "tls_ca": str,
    "tls_cert": str,
    "tls_key": str,
    "server_public_key": str,
    "get_public_key": _flag,
    "clear_password": _flag,
    "connect_timeout": _seconds,
    "server_ids": _server_ids,
    "retry_seconds": _seconds,
}
"""For each option, a function that parses its value and raises ValueError."""

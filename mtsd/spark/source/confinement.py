"""What options may name where an administrator has said so: files, addresses, variables and hosts.

Whoever may write SQL on a shared Spark chooses the options, which are used as Spark's own account:
without a limit, any file or variable that Spark can read may be sent as a password to any host.

The limit is an environment variable of the driver. A configuration of Spark would be none: what
plans a read sees no configuration at all, and a task sees what the user has SET. In a Spark that
runs a user's Python, there is no limit that the user could not remove.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mtsd.spark.logs.binlog_files import is_remote, without_scheme
from mtsd.spark.options.live_options import LiveOptions
from mtsd.spark.options.options import OptionError, Options

ALLOW: Final = "SPARK_MTSD_ALLOW"
"""The variable: items with commas between them; everything else is refused. Unset: no limit."""
_KINDS: Final = ("path", "file", "env", "host")
_PATTERN: Final = re.compile(r"[^/]*[*?\[]")
_STEPS_UP: Final = re.compile(
    r"(?:^|[/\\]|%2f|%5c)(?:\.|%2e){2}(?:[/\\]|%2f|%5c|$)|::", re.IGNORECASE
)
"""What leads out of a folder; `::` chains file systems of fsspec."""


@dataclass(frozen=True, slots=True)
class AllowedPlaces:
    """Folders and beginnings of addresses, folders of secrets, variables, and hosts."""

    path: tuple[str, ...] = ()
    file: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    host: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> "AllowedPlaces":
        """Return what the variable says. Raises OptionError."""
        allowed: dict[str, list[str]] = {}
        for item in filter(None, (item.strip() for item in text.split(","))):
            kind, equals, value = item.partition("=")
            if kind not in _KINDS or not equals or not value:
                raise OptionError(
                    f"the variable {ALLOW} of Spark has the item {item!r}: allowed are path=FOLDER,"
                    " path=ADDRESS, file=FOLDER, env=NAME and host=HOST or host=HOST:PORT"
                )
            allowed.setdefault(kind, []).append(value)
        return cls(**{kind: tuple(values) for kind, values in allowed.items()})

    def refused(self, options: Options) -> Iterator[str]:
        """Yield each option that names something else."""
        if options.live is None and not all(map(self._has_path, options.paths)):
            yield "path"
        if options.live is not None:
            yield from self._refused_live(options.live)

    def _refused_live(self, live: LiveOptions) -> Iterator[str]:
        if live.unix_socket:
            if live.unix_socket not in self.host:
                yield "unix_socket"
        elif live.host not in self.host and f"{live.host}:{live.port}" not in self.host:
            yield "host"
        for name in ("password_file", "tls_ca", "tls_cert", "tls_key"):
            file = getattr(live, name)
            if file and not any(_is_inside(file, folder) for folder in self.file):
                yield name
        if live.password_env and live.password_env not in self.env:
            yield "password_env"

    def _has_path(self, path: str) -> bool:
        if is_remote(path):
            return not _STEPS_UP.search(path) and any(
                f"{path}/".startswith(f"{one.rstrip('/')}/") for one in self.path if is_remote(one)
            )
        here = without_scheme(path)
        return any(_is_inside(here, folder) for folder in self.path if not is_remote(folder))


def confine(options: Options) -> Options:
    """Return the options. Raises OptionError if they name what this Spark does not allow."""
    text = os.environ.get(ALLOW)
    if text is not None and (refused := list(AllowedPlaces.parse(text).refused(options))):
        names = " and ".join(repr(name) for name in refused)
        raise OptionError(
            f"option {names}: this Spark allows only what the variable {ALLOW} of its driver names"
        )
    return options


def _is_inside(path: str, folder: str) -> bool:
    """Tell whether a file, or all that a pattern names, is in a folder, wherever links lead."""
    match = _PATTERN.search(path)
    if _STEPS_UP.search(path) or (match and "/" in path[match.end() :]):
        return False
    known = Path(path[: match.start()] if match else path).resolve()
    return Path(folder).resolve() in (known, *known.parents)

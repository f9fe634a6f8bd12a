"""Lines about character sets whose names mean something else on the two servers."""

from collections.abc import Iterator
from typing import Final

from mtsd.operations.check.facts import ServerFacts
from mtsd.operations.check.lines.catalogue import Kind
from mtsd.operations.check.lines.line import Line

_GENERAL: Final = "utf8mb4_general_ci"
_OF_MARIADB: Final = "character_set_collations"
_OF_MYSQL: Final = "default_collation_for_utf8mb4"
_IS_UTF8MB3: Final = "UTF8_IS_UTF8MB3"
_ALIAS_SINCE: Final = (10, 6, 1)
"""A MariaDB before this one has no other utf8 than utf8mb3."""


def character_set_lines(source: ServerFacts, target: ServerFacts) -> Iterator[Line]:
    """Yield what definitions that name a character set alone make on the target otherwise."""
    default = _default_of_utf8mb4(source)
    if default != _GENERAL and not {_OF_MARIADB, _OF_MYSQL} & target.variables.keys():
        or_set = f", or SET GLOBAL {_OF_MARIADB} = '' on the source, and in its configuration"
        yield Kind.DEFAULT_COLLATION.line(
            source=default,
            target=_GENERAL,
            or_set=or_set if _OF_MARIADB in source.variables else "",
        )
    meant = [_meaning_of_utf8(server) for server in (source, target)]
    if meant[0] != meant[1]:
        # Of the two, the one that can be changed.
        server, wanted = ("target", meant[0]) if _has_alias(target) else ("source", meant[1])
        verb = "have" if wanted == "utf8mb3" else "lack"
        yield Kind.UTF8_DIFFERS.line(
            source=meant[0], target=meant[1], change=f"let old_mode of the {server} {verb}"
            f" {_IS_UTF8MB3}",
        )  # fmt: skip


def _default_of_utf8mb4(server: ServerFacts) -> str:
    for pair in server.variables.get(_OF_MARIADB, "").split(","):
        name, _, default = pair.partition("=")
        if name == "utf8mb4":
            return default
    return server.variables.get(_OF_MYSQL, _GENERAL)


def _meaning_of_utf8(server: ServerFacts) -> str:
    modes = server.variables.get("old_mode", _IS_UTF8MB3).split(",")
    return "utf8mb4" if _has_alias(server) and _IS_UTF8MB3 not in modes else "utf8mb3"


def _has_alias(server: ServerFacts) -> bool:
    # A MySQL has no old_mode.
    return "old_mode" in server.variables and server.version >= _ALIAS_SINCE

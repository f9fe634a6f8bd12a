"""Which server it is: its family, its version there, and what tells it from others."""

import enum
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

Version = tuple[int, int, int]
NEVER: Final[Version] = (1 << 31, 0, 0)
"""Later than every version: since when a family has what it does not have."""
_Choice = TypeVar("_Choice")

_MARIADB_IDENTITY: Final = "server_id "
_MARIADB_KNOWS: Final[Version] = (5, 6, 0)
_OF_OLD_REPLICAS: Final = "5.5.5-"
"""Before a MariaDB's version: older replicas would not connect to a server of version 10."""
_NUMBER: Final = re.compile(r"(\d+)\.(\d+)\.(\d+)")


class Flavour(enum.Enum):
    """A family of servers."""

    MYSQL = "MySQL"
    MARIADB = "MariaDB"


@dataclass(frozen=True, slots=True)
class ServerVersion:
    """The family of a server and its version there."""

    flavour: Flavour
    number: Version

    @property
    def mysql(self) -> Version:
        """The version of MySQL whose statements, variables and privileges the server has.

        MariaDB shares those of MySQL 5.6, and has more of its own.
        """
        return _MARIADB_KNOWS if self.flavour is Flavour.MARIADB else self.number


def flavour_of(text: str) -> Flavour:
    """Return the family of a server from the `text` of its greeting."""
    return Flavour.MARIADB if "mariadb" in text.lower() else Flavour.MYSQL


def version_of(text: str) -> Version | None:
    """Return the version in the `text` of a server's greeting, None if there is none in it."""
    match = _NUMBER.match(text.removeprefix(_OF_OLD_REPLICAS))
    return (int(match[1]), int(match[2]), int(match[3])) if match else None


def of_version(choices: Sequence[tuple[Version, _Choice]], version: Version) -> _Choice:
    """Return what a version has, of `choices` and the versions since which they are; newest first.

    The last one is since (0, 0, 0).
    """
    return next(choice for since, choice in choices if version >= since)


def identity_of(flavour: Flavour, variables: Mapping[str, str]) -> str:
    """Return what tells a server from others, from its variables by their names in lower case."""
    if flavour is Flavour.MARIADB:
        # Its GTIDs name servers in this way, too.
        return f"{_MARIADB_IDENTITY}{variables['server_id']}"
    return variables.get("server_uuid", "").lower()


def server_id_of(identity: str) -> int:
    """Return the server_id in what `identity_of` has returned; 0 if there is none in it."""
    number = identity.removeprefix(_MARIADB_IDENTITY)
    return int(number) if number != identity and number.isdecimal() else 0


def flavour_of_origin(origin: str) -> Flavour:
    """Return the family of what a GTID set has before the numbers.

    It is a domain and a server_id, or a UUID.
    """
    return Flavour.MARIADB if origin.count("-") == 1 else Flavour.MYSQL


def flavour_of_identity(identity: str) -> Flavour:
    """Return the family of a server from what `identity_of` has returned for it."""
    return Flavour.MARIADB if identity.startswith(_MARIADB_IDENTITY) else Flavour.MYSQL

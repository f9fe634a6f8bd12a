"""What mtsd's users must be granted on each server, and what they have.

The needs are those of the statements that mtsd runs: the source's own statements run again on the
target with this user's privileges, and rows through BINLOG. The tests run a daemon with exactly
these.
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from mtsd.apply.sql.literals import bare_name, shown_name
from mtsd.config import Settings
from mtsd.model.server import Flavour, ServerVersion, Version
from mtsd.replica.core.gtid_mode import Gtids, decide_gtids


@dataclass(frozen=True, slots=True)
class NeededPrivilege:
    """A required privilege: one of `anyof`, the first being the one to grant.

    `since` and `until`: the versions that have `anyof[0]`. `flavour`: the family of servers that
    has it; None if both have.
    """

    anyof: tuple[str, ...]
    since: Version = (0, 0, 0)
    until: Version = (999, 0, 0)
    flavour: Flavour | None = None

    def applies_to(self, server: ServerVersion) -> bool:
        """Return whether a server has the privilege to grant."""
        if self.flavour not in {None, server.flavour}:
            return False
        return self.since <= server.number < self.until


def _needs(*names: str, flavour: Flavour | None = None) -> tuple[NeededPrivilege, ...]:
    return tuple(NeededPrivilege((name,), flavour=flavour) for name in names)


_MYSQL = Flavour.MYSQL
_MARIADB = Flavour.MARIADB


_SET_ANY_DEFINER = (8, 2, 0)
SOURCE = (
    *_needs("REPLICATION SLAVE"),
    *_needs("REPLICATION CLIENT", flavour=_MYSQL),
    NeededPrivilege(("BINLOG MONITOR", "SUPER"), flavour=_MARIADB),
)
WRITES_ALTHOUGH_READ_ONLY = (
    NeededPrivilege(("CONNECTION_ADMIN", "SUPER"), flavour=_MYSQL),
    NeededPrivilege(("READ_ONLY ADMIN", "SUPER"), flavour=_MARIADB),
)
"""What the target's user needs while that is read_only."""
SEE_TABLES = ("REFERENCES",)
"""One of these makes a table visible in information_schema, but none of its rows."""

DEFINITIONS = (
    *_needs(
        "SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "REFERENCES", "INDEX", "ALTER",
        "CREATE TEMPORARY TABLES", "EXECUTE", "CREATE VIEW", "CREATE ROUTINE", "ALTER ROUTINE",
        "EVENT", "TRIGGER",
    ),
    *_needs("DELETE HISTORY", flavour=_MARIADB),
)  # fmt: skip
"""What statements of the source need: on every replicated database."""
EVERY_DATABASE = "%"
"""The pattern by which privileges are granted on all databases that have no grant of their own."""
POSITION = ("SELECT", "INSERT", "UPDATE", "DELETE", "CREATE")
"""On the position schema."""
TARGET = (
    # FLUSH TABLES is in the binary log.
    NeededPrivilege(("RELOAD", "FLUSH_TABLES")),
    NeededPrivilege(("REPLICATION CLIENT", "SUPER"), flavour=_MYSQL),
    NeededPrivilege(("BINLOG MONITOR", "SUPER"), flavour=_MARIADB),
)
"""In addition to those, on the whole server."""
SESSION = (
    NeededPrivilege(
        ("SESSION_VARIABLES_ADMIN", "SYSTEM_VARIABLES_ADMIN", "SUPER"),
        since=(8, 0, 14),
        flavour=_MYSQL,
    ),
    NeededPrivilege(("SYSTEM_VARIABLES_ADMIN", "SUPER"), until=(8, 0, 14), flavour=_MYSQL),
    NeededPrivilege(("BINLOG REPLAY", "SUPER"), flavour=_MARIADB),
)
"""For sessions that look like the source's, in which its statements run
(mtsd.apply.session.pinning)."""
DEFINERS = (
    NeededPrivilege(("SET_ANY_DEFINER",), since=_SET_ANY_DEFINER, flavour=_MYSQL),
    NeededPrivilege(("ALLOW_NONEXISTENT_DEFINER",), since=_SET_ANY_DEFINER, flavour=_MYSQL),
    NeededPrivilege(("SET_USER_ID",), until=_SET_ANY_DEFINER, flavour=_MYSQL),
    NeededPrivilege(("SYSTEM_USER",), since=(8, 0, 16), flavour=_MYSQL),
    NeededPrivilege(("SET USER", "SUPER"), flavour=_MARIADB),
)
"""For views, triggers, routines and events that keep the definer that they have on the source."""
BINLOG = (
    NeededPrivilege(
        ("REPLICATION_APPLIER", "BINLOG_ADMIN", "SUPER"), since=(8, 0, 18), flavour=_MYSQL
    ),
    NeededPrivilege(("BINLOG_ADMIN", "SUPER"), until=(8, 0, 18), flavour=_MYSQL),
    NeededPrivilege(("BINLOG REPLAY", "SUPER"), flavour=_MARIADB),
)
"""For BINLOG statements: not if rows are applied as SQL."""
MIRROR = (NeededPrivilege(("SYSTEM_VARIABLES_ADMIN", "SUPER")),)
"""For SET GLOBAL gtid_purged."""
EVIDENCE = _needs("REPLICATION SLAVE")
"""To read the target's own binlog if the target has no GTIDs."""
XA = (
    NeededPrivilege(("XA_RECOVER_ADMIN",), flavour=_MYSQL),
    NeededPrivilege(("PROCESS",), flavour=_MARIADB),
)
"""To list what the target has prepared, which shows what became of an interrupted group; to see
when InnoDB has let go of it, on MariaDB."""
OWN_REPLICA = (NeededPrivilege(("SLAVE MONITOR", "SUPER"), since=(10, 5, 9), flavour=_MARIADB),)
"""To see whether the target's own replica has the same source: on MySQL, REPLICATION CLIENT is
enough."""
LOCKS = _needs("PROCESS")
"""To see which transaction waits for which, with consistency = "any_time"."""
LOCKS_OF_ROWS = ("SELECT",)
"""For the same on MySQL: on performance_schema."""
ACCOUNTS = (
    *_needs("CREATE USER"),
    NeededPrivilege(("ROLE_ADMIN",), flavour=_MYSQL),
    *_needs("GRANT OPTION"),
)
"""For the source's CREATE USER, GRANT and similar statements."""

_NAME = r"(?:\*|`(?:[^`]|``)*`)"
_GRANT_LINE = re.compile(rf"GRANT (.+) ON ({_NAME})\.({_NAME}) TO .*?( WITH GRANT OPTION)?")
_REVOKE_LINE = re.compile(rf"REVOKE (.+) ON ({_NAME})\.\* FROM .*")


@dataclass(slots=True)
class HeldPrivileges:
    """The privileges listed by SHOW GRANTS, by where they are held.

    Those on single tables and columns are ignored: they are not enough for replication.
    """

    everywhere: set[str] = field(default_factory=set)
    databases: dict[str, set[str]] = field(default_factory=dict)
    """By LIKE pattern of the database name."""
    revoked: dict[str, set[str]] = field(default_factory=dict)
    """Partial revokes, by database."""

    @classmethod
    def of(cls, grants: Iterable[str]) -> "HeldPrivileges":
        """Parse the lines of SHOW GRANTS."""
        held = cls()
        for line in grants:
            if revoke := _REVOKE_LINE.fullmatch(line):
                held.revoked.setdefault(bare_name(revoke[2]), set()).update(_split(revoke[1]))
            elif match := _GRANT_LINE.fullmatch(line):
                names = set(_split(match[1])) | ({"GRANT OPTION"} if match[4] else set())
                if match[2] == "*":
                    held.everywhere |= names
                elif match[3] == "*":
                    held.databases.setdefault(bare_name(match[2]), set()).update(names)
        return held

    def has(self, names: Sequence[str]) -> bool:
        """Return whether one of these is held on everything."""
        return not self.everywhere.isdisjoint((*names, "ALL PRIVILEGES"))

    def has_on_all(self, name: str) -> bool:
        """Return whether a privilege is held on all databases, or on all but some."""
        return self.has((name,)) or not self.databases.get(EVERY_DATABASE, set()).isdisjoint(
            (name, "ALL PRIVILEGES")
        )

    def has_on(self, database: str, name: str) -> bool:
        """Return whether a privilege is held on a database."""
        if name in self.revoked.get(database, ()):
            return False
        if self.has((name,)):
            return True
        matching = [pattern for pattern in self.databases if _like(pattern, database)]
        if not matching:
            return False
        # The server looks at the one that is most specific, and at no other.
        names = self.databases[max(matching, key=_literal_length)]
        return not names.isdisjoint((name, "ALL PRIVILEGES"))


def missing(
    held: HeldPrivileges, needs: Iterable[NeededPrivilege], server: ServerVersion
) -> list[str]:
    """Return what has to be granted on *.*, of what this server has."""
    return [need.anyof[0] for need in needs if need.applies_to(server) and not held.has(need.anyof)]


def definitions(server: ServerVersion) -> list[str]:
    """Return the names of `DEFINITIONS` that this server has."""
    return [need.anyof[0] for need in DEFINITIONS if need.applies_to(server)]


def missing_on_all(held: HeldPrivileges, server: ServerVersion) -> list[str]:
    """Return which of `DEFINITIONS` have to be granted if every database is replicated."""
    return [name for name in definitions(server) if not held.has_on_all(name)]


def missing_on(
    held: HeldPrivileges, needed: Sequence[str], databases: Iterable[str]
) -> dict[str, list[str]]:
    """Return what of these names has to be granted on each database where something is missing."""
    by_database: dict[str, list[str]] = {}
    for database in databases:
        names = [name for name in needed if not held.has_on(database, name)]
        if names:
            by_database[database] = names
    return by_database


def grant(names: Sequence[str], account: str, database: str = "") -> str:
    """Return a GRANT statement; on everything if `database` is ""."""
    place = f"{shown_name(database)}.*" if database else "*.*"
    option = " WITH GRANT OPTION" if "GRANT OPTION" in names else ""
    listed = ", ".join(name for name in names if name != "GRANT OPTION") or "USAGE"
    return f"GRANT {listed} ON {place} TO {account}{option}"


def target_needs(
    settings: Settings,
    *,
    logs: bool,
    gtids: bool = True,
    source: Flavour = Flavour.MYSQL,
    as_sql: bool = False,
) -> tuple[NeededPrivilege, ...]:
    """Return what the target's user needs on the whole server in addition to `DEFINITIONS`.

    `logs`: the target writes what is applied to a binary log; `gtids`: its gtid_mode is ON, and the
    user may give transactions GTIDs; `as_sql`: rows are applied as SQL statements. Nothing is
    replicated without these; without `SESSION` and `DEFINERS`, most is.
    """
    common = TARGET if as_sql else (*TARGET, *BINLOG)
    # Only a MySQL can have its gtid_mode ON.
    setting = settings.target.gtid
    decided = decide_gtids(setting, source, Flavour.MYSQL, gtid_mode=gtids, logged=logs)
    mirrors = decided is Gtids.MIRROR
    needs = (*common, *MIRROR) if mirrors else common
    return needs if gtids or not logs else (*needs, *EVIDENCE)


def _split(names: str) -> list[str]:
    # Column lists are in parentheses: a privilege on columns is not one on the whole table.
    return [name.strip().upper() for name in re.sub(r"\w+ \([^)]*\),?", "", names).split(",")]


def _like(pattern: str, text: str) -> bool:
    """Return whether a LIKE pattern of GRANT matches a name."""
    parts = re.findall(r"\\.|%|_|.", pattern, re.DOTALL)
    wild = {"%": ".*", "_": "."}
    expression = "".join(wild.get(part) or re.escape(part.removeprefix("\\")) for part in parts)
    return re.fullmatch(expression, text, re.DOTALL) is not None


def _literal_length(pattern: str) -> float:
    """Return how many characters stand before the first wildcard of a LIKE pattern."""
    match = re.match(r"(?:\\.|[^%_\\])*", pattern, re.DOTALL)
    end = match.end() if match is not None else 0
    return math.inf if end == len(pattern) else end

"""Where a part of the load runs: between which servers, in which format, in which databases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Final

from tests.servers.mysqld import Server

MYSQL: Final = "9.7"
"""The series of MySQL; the others are MariaDB's."""


@dataclass(frozen=True, slots=True)
class Between:
    """A source and a target, given by their series, and the source's binlog_format."""

    source: str
    target: str
    binlog_format: str

    @property
    def from_mysql(self) -> bool:
        return self.source == MYSQL

    @property
    def to_mysql(self) -> bool:
        return self.target == MYSQL

    @property
    def one_family(self) -> bool:
        return self.from_mysql == self.to_mysql

    def __str__(self) -> str:
        return f"{self.source} to {self.target}, {self.binlog_format}"


@dataclass(frozen=True, slots=True)
class Condition:
    """Where something is part of the load; `why` says what is missing elsewhere."""

    why: str
    holds: Callable[[Between], bool]


MYSQLS: Final = Condition(
    "only MySQL has it", lambda between: between.from_mysql and between.to_mysql
)
MARIADBS: Final = Condition(
    "only MariaDB has it", lambda between: not between.from_mysql and not between.to_mysql
)
NEW_MARIADBS: Final = Condition(
    "only MariaDB has it, from 11.7 on", lambda between: between.source == between.target == "11.8"
)
ROWS_OR_MARIADBS: Final = Condition(
    "only MariaDB has it in statements",
    lambda between: (
        not between.from_mysql and (not between.to_mysql or between.binlog_format == "ROW")
    ),
)
ONE_FAMILY: Final = Condition(
    "the other family does not understand the statement", lambda between: between.one_family
)
SAME_PERIODS: Final = Condition(
    "the end of current rows is another time from MariaDB 11.5 on",
    lambda between: between.source == between.target != MYSQL,
)
ROWS_WHERE_NEEDED: Final = Condition(
    "as a statement it would have another effect",
    lambda between: between.binlog_format != "STATEMENT",
)
FROM_MYSQL: Final = Condition("the source has to be a MySQL", lambda between: between.from_mysql)
FROM_MARIADB: Final = Condition(
    "the source has to be a MariaDB", lambda between: not between.from_mysql
)
ACCOUNTS: Final = Condition(
    "MySQL logs accounts with plugins that MariaDB does not have",
    lambda between: between.to_mysql or not between.from_mysql,
)
TRIGGERS_ON_TARGET: Final = Condition(
    "rows that are applied as SQL would fire triggers of the target",
    lambda between: between.one_family or between.binlog_format != "ROW",
)
GENERATED_LOGGED: Final = Condition(
    "MariaDB 11.8 does not log the generated columns that 10.11 expects",
    lambda between: (
        (between.source, between.target, between.binlog_format) != ("11.8", "10.11", "ROW")
    ),
)
CONDITIONS: Final = (
    MYSQLS, MARIADBS, NEW_MARIADBS, ROWS_OR_MARIADBS, ONE_FAMILY, SAME_PERIODS, ROWS_WHERE_NEEDED,
    FROM_MYSQL, FROM_MARIADB, ACCOUNTS, TRIGGERS_ON_TARGET, GENERATED_LOGGED,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Step:
    """A statement that fails with `error` on the source (0: it does not), in one of the sessions.

    The empty statement ends the session.
    """

    sql: str
    session: int = 0
    error: int = 0


@dataclass(slots=True)
class Place:
    """What a part knows: its databases `here` and `there`, which no other part uses."""

    between: Between
    server: Server
    here: str
    there: str
    rng: Random
    left_out: list[str] = field(default_factory=list)

    def has(self, condition: Condition, what: str) -> bool:
        """Return whether something is part of the load; what is not is noted."""
        if condition.holds(self.between):
            return True
        self.left_out.append(f"{what}: {condition.why}")
        return False

    def file(self, name: str, text: str) -> str:
        """Write a file for LOAD DATA and return its path."""
        path = self.server.folder / f"{self.here}_{name}"
        path.write_bytes(text.encode())
        return str(path)


Part = Callable[[Place], Iterator[str | Step]]
"""The first session begins in `here`, as do the others when they are first used."""

"""What a mixed load is mixed of, and the transactions that it runs, in their proportions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final

from tests.load.changes import Changes
from tests.load.definitions import (
    PLAIN,
    Life,
    create_select,
    event,
    non_transactional,
    trigger,
    user,
)
from tests.load.tables import ODD, SMALL_DATABASES

DEFAULTS: Final = {"gtid_next": "'AUTOMATIC'"}
"""What a session variable is set to after a transaction, where that is not DEFAULT."""


AS_STATEMENTS: Final = {
    "binlog_format": "'STATEMENT'", "transaction_isolation": "'REPEATABLE-READ'",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mix:
    """What a load is mixed of, besides transactions on one and on several databases.

    `ddl`: tables, views, routines, databases, and what ANALYZE and its like log; `triggers` too.
    `rotation`: FLUSH BINARY LOGS. `large`: transactions of thousands of rows. `over_max`:
    transactions on more than 16 databases. `abroad`: foreign keys across databases. `sessions`:
    compression, row images, partial JSON, unchecked keys, Rows_query events. `gtids`: tagged ones
    and empty groups (only where the source has gtid_mode=ON). `events`, `users`: their DDL.
    `create_select`: CREATE TABLE … SELECT. `statement_format`: sessions with binlog_format
    STATEMENT and MIXED. `satellites`: many statements that need user variables, RAND() and the
    like, and temporary tables that are logged. `non_transactional`: MyISAM tables. `temporary`:
    temporary tables (row format logs nothing of them). `load_data`: files, as statements; the
    target needs `local_infile`.
    """

    ddl: bool = True
    triggers: bool = True
    rotation: bool = True
    large: bool = True
    over_max: bool = True
    abroad: bool = True
    sessions: bool = True
    gtids: bool = True
    events: bool = False
    users: bool = False
    create_select: bool = False
    statement_format: bool = False
    satellites: bool = False
    non_transactional: bool = False
    temporary: bool = False
    load_data: bool = False

    @property
    def lives(self) -> Sequence[Life]:
        """The lives of DDL that belong to it."""
        chosen = [life for life in PLAIN if self.triggers or life is not trigger]
        chosen = chosen if self.ddl else []
        for wanted, life in (
            (self.events, event),
            (self.users, user),
            (self.create_select, create_select),
            (self.non_transactional, non_transactional),
        ):
            if wanted:
                chosen.append(life)
        return chosen


@dataclass(frozen=True, slots=True)
class Transaction:
    """A transaction: what it changes in which databases, and how its session is set for it."""

    databases: Sequence[str]
    statements: list[str]
    settings: dict[str, str] = field(default_factory=dict)
    commits: bool = True


class Transactions:
    """Makes the transactions of one worker."""

    def __init__(self, rng: Random, changes: Changes, databases: Sequence[str], mix: Mix) -> None:
        self._rng = rng
        self._changes = changes
        self._databases = databases
        self._mix = mix
        makers: Sequence[tuple[bool, float, Callable[[], Transaction]]] = (
            (True, 60, self._single),
            (len(databases) > 1, 14, self._several),
            (True, 10, self._cascade),
            (True, 3, self._rolled_back),
            (True, 4, self._savepoints),
            (True, 2, self._odd),
            (True, 1, self._searched),
            (True, 4, self._json),
            (mix.sessions, 1, self._orphan),
            (mix.large, 0.15, self._bulk),
            (mix.over_max, 0.3, self._over_max),
            (mix.abroad and len(databases) > 1, 0.5, self._abroad),
            (mix.statement_format, 6, self._statements),
            (mix.satellites, 40, self._generated),
            (mix.temporary, 8 if mix.satellites else 1, self._temporary),
            (mix.load_data, 8, self._loaded),
        )
        self._makers = [maker for wanted, _, maker in makers if wanted]
        self._weights = [weight for wanted, weight, _ in makers if wanted]

    def next(self, *, tagged: bool) -> Transaction:
        """Return the next transaction; `tagged`: its GTID may have a tag."""
        (maker,) = self._rng.choices(self._makers, self._weights)
        made = maker()
        return Transaction(
            made.databases,
            made.statements,
            {**self._settings(tagged=tagged), **made.settings},
            made.commits,
        )

    def _settings(self, *, tagged: bool) -> dict[str, str]:
        rng, settings = self._rng, dict[str, str]()
        if rng.random() < 0.3:
            settings["transaction_isolation"] = "'READ-COMMITTED'"
        if tagged and rng.random() < 0.05:
            settings["gtid_next"] = rng.choice(("'AUTOMATIC:load'", "'AUTOMATIC:other_tag'"))
        if self._mix.sessions:
            if rng.random() < 0.1:
                settings["binlog_transaction_compression"] = "ON"
            if rng.random() < 0.1:
                settings["binlog_row_image"] = rng.choice(("'MINIMAL'", "'NOBLOB'"))
            if rng.random() < 0.05:
                settings["binlog_rows_query_log_events"] = "ON"
            if rng.random() < 0.03:
                settings["unique_checks"] = "OFF"
        return settings

    def _single(self) -> Transaction:
        database = self._one()
        return Transaction([database], self._changes.some(database))

    def _several(self) -> Transaction:
        count = min(self._rng.choice((2, 2, 3)), len(self._databases))
        databases = self._rng.sample(self._databases, count)
        if self._rng.random() < 0.1:
            return Transaction(databases, self._changes.both(*databases[:2]))
        return Transaction(
            databases, [change for name in databases for change in self._changes.some(name)]
        )

    def _cascade(self) -> Transaction:
        database = self._one()
        return Transaction([database], self._changes.cascade(database))

    def _orphan(self) -> Transaction:
        database = self._one()
        statements = self._changes.orphan(database)
        return Transaction([database], statements, {"foreign_key_checks": "OFF"})

    def _rolled_back(self) -> Transaction:
        database = self._one()
        return Transaction([database], self._changes.some(database), commits=False)

    def _savepoints(self) -> Transaction:
        one, other = self._one(), self._one()
        statements = [*self._changes.some(one), "SAVEPOINT `a 1`", *self._changes.some(other)]
        if self._rng.random() < 0.7:
            statements += ["ROLLBACK TO SAVEPOINT `a 1`", *self._changes.some(one)]
        statements += ["SAVEPOINT b", "RELEASE SAVEPOINT b"]
        return Transaction(sorted({one, other}), statements)

    def _odd(self) -> Transaction:
        return Transaction([ODD], self._changes.odd())

    def _searched(self) -> Transaction:
        home = self._databases[0]
        return Transaction([home], self._changes.searched(home))

    def _json(self) -> Transaction:
        database = self._one()
        settings = {"binlog_row_value_options": "PARTIAL_JSON"} if self._mix.sessions else {}
        return Transaction([database], self._changes.json(database), settings)

    def _bulk(self) -> Transaction:
        database = self._one()
        return Transaction([database], self._changes.bulk(database))

    def _over_max(self) -> Transaction:
        names = [f"e{number}" for number in range(SMALL_DATABASES)]
        count = self._rng.randint(15, SMALL_DATABASES)
        return Transaction([self._one(), *self._rng.sample(names, count)], [])

    def _abroad(self) -> Transaction:
        home, abroad = self._databases[0], self._databases[-1]
        return Transaction([home, abroad], self._changes.abroad(home, abroad))

    def _statements(self) -> Transaction:
        database, rng = self._one(), self._rng
        settings = {
            "binlog_format": rng.choice(("'STATEMENT'", "'STATEMENT'", "'MIXED'")),
            "transaction_isolation": "'REPEATABLE-READ'",
        }
        if rng.random() < 0.5:
            settings["time_zone"] = rng.choice(("'+05:30'", "'-08:00'"))
        if rng.random() < 0.3:
            settings["lc_time_names"] = "'de_DE'"
        if rng.random() < 0.3:
            settings["sql_mode"] = "'NO_BACKSLASH_ESCAPES,ANSI'"
        return Transaction([database], self._changes.statements(database), settings)

    def _generated(self) -> Transaction:
        database = self._one()
        return Transaction([database], self._changes.generated(database), AS_STATEMENTS)

    def _loaded(self) -> Transaction:
        database = self._one()
        return Transaction([database], self._changes.loaded(database), AS_STATEMENTS)

    def _temporary(self) -> Transaction:
        database = self._one()
        statements = [
            f"CREATE TEMPORARY TABLE {database}.passing (a INT)",
            f"INSERT INTO {database}.passing VALUES (1), (2)",
            f"INSERT INTO {database}.nokey (a) SELECT a FROM {database}.passing",
            f"DROP TEMPORARY TABLE {database}.passing",
        ]
        settings = AS_STATEMENTS if self._mix.satellites else {}
        return Transaction([database], statements, settings)

    def _one(self) -> str:
        return self._rng.choice(self._databases)

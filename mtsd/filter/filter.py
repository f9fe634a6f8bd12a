"""What is replicated, and under which name: the rules as a server's own replica evaluates them.

Source: MySQL manual, "How Servers Evaluate Replication Filtering Rules" and the sections on the
options --replicate-*; compared with a server's own replica in the tests. The rules for databases
come first: they apply to the default database of a statement, and to the database of each row. If
they let it pass, the rules for tables decide, in the order do_table, ignore_table, wild_do_table,
wild_ignore_table.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from mtsd.filter.rules import NO_RULES, Rules
from mtsd.filter.wildcards import escaped, is_everything, matches, overlap
from mtsd.model.names import folded

Table = tuple[str, str]
"""A database and a table."""

_NONE: Final[Mapping[str, "Filter"]] = MappingProxyType({})
_REMEMBERED: Final = 65536
SYSTEM_SCHEMAS: Final = frozenset({"information_schema", "mysql", "performance_schema", "sys"})
"""The server's own, with its accounts; in lower case."""


class Filter:
    """Decides for one channel. Names are those on the source where they are called so.

    Nothing on `position_schema` is replicated. With `fold_case`, the target does not distinguish
    names by case; with `fold_tables`, the rules for tables do not (those of a MariaDB), and with
    `one_level`, rules for databases leave those for tables no say in CREATE, ALTER and DROP
    DATABASE (those of a MySQL). With `refuse_system_rows`, rows of `SYSTEM_SCHEMAS` that the rules
    let pass are refused. `others` are the filters of other channels with the same source and
    target, by their names.
    """

    def __init__(
        self,
        rules: Rules = NO_RULES,
        *,
        position_schema: str = "",
        fold_case: bool = False,
        fold_tables: bool = False,
        one_level: bool = False,
        refuse_system_rows: bool = False,
        others: Mapping[str, "Filter"] = _NONE,
    ) -> None:
        self.rules = rules
        self.position_schema = position_schema
        self.others = others
        self._fold_case = fold_case
        self._fold_tables = fold_case or fold_tables
        self._one_level = one_level
        self._refuse_system_rows = refuse_system_rows
        self._folded_schema = self.folded(position_schema)
        self._do_db = self._all_folded(self.rules.do_db)
        self._ignore_db = self._all_folded(self.rules.ignore_db)
        self._do_table = frozenset(map(self.folded_table, self.rules.do_table))
        self._ignore_table = frozenset(map(self.folded_table, self.rules.ignore_table))
        self._wild_do = tuple(map(self.folded_table, self.rules.wild_do_table))
        self._wild_ignore = tuple(map(self.folded_table, self.rules.wild_ignore_table))
        self._names: dict[str, str] = {}
        for name, target in self.rules.rewrite_db:
            self._names.setdefault(self.folded(name), target)
        # If no rule matches a table, the existence of a do rule decides.
        self._otherwise = not (self.rules.do_table or self.rules.wild_do_table)
        self._owners: dict[str, tuple[str, ...]] = {}

    def is_position_schema(self, database: str) -> bool:
        """Return whether a database of the source has the name of the position schema."""
        return self.folded(database) == self._folded_schema

    def target_name(self, database: str) -> str:
        """Return the name on the target of a database of the source, or of a default database."""
        return self._names.get(self.folded(database), database)

    def passes_database(self, database: str) -> bool:
        """Return whether the rules for databases let one pass, by its name on the target.

        The name "" is no default database.
        """
        if self._do_db:
            return self.folded(database) in self._do_db
        return self.folded(database) not in self._ignore_db

    def passes_definition(self, database: str) -> bool:
        """Return whether CREATE, ALTER or DROP DATABASE is replicated, by the name in its text.

        A pattern such as `db.%` applies to the database itself too. A MySQL goes by the name that
        `rewrite_db` gives the database, although the statement keeps the one that it has.
        """
        if self._one_level:
            database = self.target_name(database)
            if self._do_db or self._ignore_db:
                return self.passes_database(database)
        elif not self.passes_database(database):
            return False
        key = f"{self.folded_table(database)}."
        if any(matches(pattern, key) for pattern in self._wild_do):
            return True
        if any(matches(pattern, key) for pattern in self._wild_ignore):
            return False
        return not self._wild_do

    def passes_tables(self, tables: Iterable[Table]) -> bool:
        """Return whether the rules for tables let a change of all these pass, by target names.

        The first of them that any rule matches decides. A change of no table does not pass.
        """
        passes = False
        for database, table in tables:
            passes = True
            matched = self._matched(database, table)
            if matched is not None:
                return matched
        return passes and self._otherwise

    def passes_any_of(self, tables: Iterable[Table]) -> bool | None:
        """Return whether a change of some of these tables passes; None if it depends on which."""
        results = {self.passes_tables([table]) for table in tables}
        return results.pop() if len(results) == 1 else None

    def passes_any_in(self, database: str) -> bool | None:
        r"""Return whether a change of a table in this database passes; None if it depends on it.

        A table with a dot in its name may match a pattern for other databases (`%\_old.%`). That
        one of these does not pass, where all others do, is not considered.
        """
        database = self.folded_table(database)
        prefix = f"{database}."
        verdicts: set[bool] = set()
        if any(name.startswith(prefix) for name in self._do_table):
            verdicts.add(True)
        if any(name.startswith(prefix) for name in self._ignore_table):
            verdicts.add(False)
        verdicts |= self._verdicts(database)
        return verdicts.pop() if len(verdicts) == 1 else None

    def _verdicts(self, database: str) -> set[bool]:
        """Return what the patterns say of tables in a database, or what counts without them."""
        verdicts: set[bool] = set()
        for patterns, passes in ((self._wild_do, True), (self._wild_ignore, False)):
            for pattern in patterns:
                if not overlap(pattern, escaped(f"{database}.") + "%"):
                    continue
                of_database, _, of_table = pattern.partition(".")
                if passes or "." in database or overlap(of_database, escaped(database)):
                    verdicts.add(passes)
                if matches(of_database, database) and is_everything(of_table):
                    return verdicts
        verdicts.add(self._otherwise)
        return verdicts

    def row_database(self, database: str, table: str) -> str | None:
        """Return the target's name of the database of row events.

        None if they are left out, or refused.
        """
        if self.is_position_schema(database):
            return None
        name = self.target_name(database)
        if not self._passes_rows(name, table) or self._is_refused(name):
            return None
        return name

    def refuses_rows(self, database: str, table: str) -> bool:
        """Return whether row events, by their names on the source, stop the replica."""
        name = self.target_name(database)
        return self._is_refused(name) and self._passes_rows(name, table)

    def may_change(self, database: str, table: str) -> bool:
        """Return whether rows may be applied to a table of the target, by its names there."""
        if self.is_position_schema(database) or not self._passes_rows(database, table):
            return False
        return self.target_name(database) == database or self.folded(database) in map(
            self.folded, self._names.values()
        )

    def owners(self, database: str) -> tuple[str, ...]:
        """Return the other channels that may replicate a database of the source, by name."""
        if not self.others:
            return ()
        known = self._owners.get(database)
        if known is None:
            if len(self._owners) >= _REMEMBERED:
                self._owners.clear()
            known = tuple(
                channel
                for channel, other in self.others.items()
                if not self.is_position_schema(database) and other.reaches(database)
            )
            self._owners[database] = known
        return known

    def reaches(self, database: str) -> bool:
        """Return whether anything in a database of the source may be replicated."""
        name = self.target_name(database)
        return self.passes_database(name) and self.passes_any_in(name) is not False

    def _is_refused(self, database: str) -> bool:
        return self._refuse_system_rows and folded(database) in SYSTEM_SCHEMAS

    def _passes_rows(self, database: str, table: str) -> bool:
        """Return whether the rules let rows of a table pass, by its names on the target."""
        return self.passes_database(database) and (
            not self.rules.on_tables or self.passes_tables([(database, table)])
        )

    def _matched(self, database: str, table: str) -> bool | None:
        """Return what the first rule that matches a table says; None if none does."""
        key = self.folded_table(f"{database}.{table}")
        if key in self._do_table:
            return True
        if key in self._ignore_table:
            return False
        if any(matches(pattern, key) for pattern in self._wild_do):
            return True
        if any(matches(pattern, key) for pattern in self._wild_ignore):
            return False
        return None

    def folded(self, database: str) -> str:
        """Return a name by which databases compare as in the rules for them."""
        return folded(database) if self._fold_case else database

    def folded_table(self, table: str) -> str:
        """Return a name, or a pattern, by which tables compare as in the rules for them."""
        return folded(table) if self._fold_tables else table

    def _all_folded(self, names: Iterable[str]) -> frozenset[str]:
        return frozenset(map(self.folded, names))


UNFILTERED: Final = Filter()
"""Everything is replicated, under its own name."""

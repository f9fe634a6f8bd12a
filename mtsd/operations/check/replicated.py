"""What of the facts concerns replication, by the filter, and by the names on the target."""

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import replace

from mtsd.filter.filter import Filter
from mtsd.model.names import folded
from mtsd.operations.check.facts import ServerFacts, UserTable

_Name = Callable[[str], str]


def only_replicated(facts: ServerFacts, rules: Filter) -> ServerFacts:
    """Return the source's facts without tables whose rows are left out."""
    if not rules.rules:
        return facts
    tables = tuple(
        table for table in facts.tables if rules.row_database(table.schema, table.name) is not None
    )
    kept = {str(table) for table in tables}
    return replace(
        _with(facts, tables, str),
        foreign_keys_across=_touching(facts.foreign_keys_across, kept),
        cascades=_touching(facts.cascades, kept),
    )


def only_changed(facts: ServerFacts, rules: Filter) -> ServerFacts:
    """Return the target's facts without what only concerns tables that rows are not applied to."""
    if not rules.rules:
        return facts
    kept = {str(table) for table in facts.tables if rules.may_change(table.schema, table.name)}
    return replace(
        facts,
        triggers=tuple(each for each in facts.triggers if facts.triggers_on.get(each, "") in kept),
        cascades=_touching(facts.cascades, kept),
    )


def _touching(foreign_keys: tuple[str, ...], tables: AbstractSet[str]) -> tuple[str, ...]:
    """Return those foreign keys ("a.t -> b.u") of which one table is among these."""
    return tuple(each for each in foreign_keys if not tables.isdisjoint(each.split(" -> ")))


def as_on_target(facts: ServerFacts, rules: Filter) -> ServerFacts:
    """Return the source's facts with the names that databases have on the target."""
    if not rules.rules.rewrite_db:
        return facts
    return _with(facts, facts.tables, rules.target_name)


def in_lower_case(facts: ServerFacts) -> ServerFacts:
    """Return a server's facts with all names as a target has them that folds their case."""

    def of_all(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(folded, names))

    return replace(
        facts,
        tables=tuple(
            replace(table, schema=folded(table.schema), name=folded(table.name))
            for table in facts.tables
        ),
        foreign_keys_across=of_all(facts.foreign_keys_across),
        triggers=of_all(facts.triggers),
        events=of_all(facts.events),
        columns={folded(table): value for table, value in facts.columns.items()},
        versioned=of_all(facts.versioned),
        cascades=of_all(facts.cascades),
        expressions={folded(table): value for table, value in facts.expressions.items()},
        triggers_on={folded(each): folded(table) for each, table in facts.triggers_on.items()},
        generated=of_all(facts.generated),
    )


def _with(facts: ServerFacts, tables: tuple[UserTable, ...], name: _Name) -> ServerFacts:
    """Return the facts with these tables of theirs, and other names of databases."""
    kept = {str(table) for table in tables}

    def renamed(of_database: str) -> str:
        database, dot, rest = of_database.partition(".")
        return f"{name(database)}{dot}{rest}"

    return replace(
        facts,
        tables=tuple(replace(table, schema=name(table.schema)) for table in tables),
        versioned=tuple(renamed(each) for each in facts.versioned if each in kept),
        generated=tuple(renamed(each) for each in facts.generated if each in kept),
        columns={renamed(key): value for key, value in facts.columns.items() if key in kept},
        triggers=tuple(map(renamed, facts.triggers)),
        events=tuple(map(renamed, facts.events)),
    )

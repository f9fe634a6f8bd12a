"""What of the source's tables is replicated, and which filter rules match none of them."""

from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import replace

from mtsd.filter.filter import Filter
from mtsd.filter.wildcards import matches
from mtsd.model.names import folded
from mtsd.operations.check.catalogue import Kind
from mtsd.operations.check.facts import ServerFacts, UserTable
from mtsd.operations.check.line import Line, listed
from mtsd.operations.check.server_lines import sees_tables

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


def filter_lines(source: ServerFacts, rules: Filter) -> Iterator[Line]:
    """Yield the lines about the filter."""
    if not rules.rules:
        return
    yield Kind.FILTER.line(rules=rules.rules)
    if not sees_tables(source):
        return
    unmatched = list(_unmatched(source, rules))
    if unmatched:
        yield Kind.FILTER_MATCHES_NOTHING.line(rules=listed(unmatched))


def _unmatched(source: ServerFacts, rules: Filter) -> Iterator[str]:
    given = rules.rules
    of_database, of_table = rules.folded, rules.folded_table
    before = {of_database(table.schema) for table in source.tables}
    databases = {of_database(rules.target_name(table.schema)) for table in source.tables}
    tables = {
        of_table(f"{rules.target_name(table.schema)}.{table.name}") for table in source.tables
    }
    for key, names, known, fold in (
        ("do_db", given.do_db, databases, of_database),
        ("ignore_db", given.ignore_db, databases, of_database),
        ("do_table", given.do_table, tables, of_table),
        ("ignore_table", given.ignore_table, tables, of_table),
        ("rewrite_db", [name for name, _ in given.rewrite_db], before, of_database),
    ):
        yield from (f"{key} {name!r}" for name in names if fold(name) not in known)
    for key, patterns in (
        ("wild_do_table", given.wild_do_table),
        ("wild_ignore_table", given.wild_ignore_table),
    ):
        for pattern in patterns:
            if not any(matches(of_table(pattern), table) for table in tables):
                yield f"{key} {pattern!r}"


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

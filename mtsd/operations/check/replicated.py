"""What of the source's tables is replicated, and which filter rules match none of them."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from mtsd.filter.filter import Filter
from mtsd.filter.wildcards import matches
from mtsd.operations.check.catalogue import Kind
from mtsd.operations.check.facts import ServerFacts, TableFacts
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
    return _with(facts, tables, str)


def as_on_target(facts: ServerFacts, rules: Filter) -> ServerFacts:
    """Return the source's facts with the names that databases have on the target."""
    if not rules.rules.rewrite_db:
        return facts
    return _with(facts, facts.tables, rules.target_name)


def filter_lines(source: ServerFacts, rules: Filter, *, fold_case: bool) -> Iterator[Line]:
    """Yield the lines about the filter; `fold_case` is as for `Filter`."""
    if not rules.rules:
        return
    yield Kind.FILTER.line(rules=rules.rules)
    if not sees_tables(source):
        return
    unmatched = list(_unmatched(source, rules, str.lower if fold_case else str))
    if unmatched:
        yield Kind.FILTER_MATCHES_NOTHING.line(rules=listed(unmatched))


def _unmatched(source: ServerFacts, rules: Filter, fold: _Name) -> Iterator[str]:
    given = rules.rules
    before = {fold(table.schema) for table in source.tables}
    there = [(fold(rules.target_name(table.schema)), fold(table.name)) for table in source.tables]
    databases = {database for database, _ in there}
    tables = {f"{database}.{name}" for database, name in there}
    for key, names, known in (
        ("do_db", given.do_db, databases),
        ("ignore_db", given.ignore_db, databases),
        ("do_table", given.do_table, tables),
        ("ignore_table", given.ignore_table, tables),
        ("rewrite_db", [name for name, _ in given.rewrite_db], before),
    ):
        yield from (f"{key} {name!r}" for name in names if fold(name) not in known)
    for key, patterns in (
        ("wild_do_table", given.wild_do_table),
        ("wild_ignore_table", given.wild_ignore_table),
    ):
        for pattern in patterns:
            if not any(matches(fold(pattern), table) for table in tables):
                yield f"{key} {pattern!r}"


def _with(facts: ServerFacts, tables: tuple[TableFacts, ...], name: _Name) -> ServerFacts:
    """Return the facts with these tables of theirs, and other names of databases."""
    kept = {str(table) for table in tables}

    def renamed(of_database: str) -> str:
        database, dot, rest = of_database.partition(".")
        return f"{name(database)}{dot}{rest}"

    return replace(
        facts,
        tables=tuple(replace(table, schema=name(table.schema)) for table in tables),
        columns={renamed(key): value for key, value in facts.columns.items() if key in kept},
        triggers=tuple(map(renamed, facts.triggers)),
        events=tuple(map(renamed, facts.events)),
    )

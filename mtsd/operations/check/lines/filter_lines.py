"""Lines about the filter: its rules, and those that match nothing on the source."""

from collections.abc import Iterator
from typing import Final

from mtsd.filter.filter import Filter
from mtsd.filter.wildcards import matches
from mtsd.operations.check.facts import ServerFacts
from mtsd.operations.check.lines.catalogue import Kind
from mtsd.operations.check.lines.line import Line, listed
from mtsd.operations.check.visible import sees_tables

_BY_SESSION: Final = ("do_db", "ignore_db", "rewrite_db")


def filter_lines(source: ServerFacts, rules: Filter) -> Iterator[Line]:
    """Yield the lines about the filter."""
    if not rules.rules:
        return
    yield Kind.FILTER.line(rules=rules.rules)
    value = source.variables.get("binlog_format", "ROW")
    by_session = [key for key in _BY_SESSION if getattr(rules.rules, key)]
    if by_session and value != "ROW":
        yield Kind.FILTER_BY_SESSION.line(value=value, keys=", ".join(by_session))
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

"""Whether a statement is replicated: the order in which a server's own replica applies its rules.

The rules for databases look at the default database alone, whatever the statement changes; CREATE,
ALTER and DROP DATABASE also at the database that they name. The rules for tables look at the tables
that the statement changes: statements on accounts change those of the database mysql. Whatever
names no table passes them (MySQL manual, "How Servers Evaluate Replication Filtering Rules").
"""

from mtsd.binlog.sql.changed_tables import Changed, Extent, changed
from mtsd.binlog.sql.statement_secrets import shown
from mtsd.binlog.sql.table_names import Table
from mtsd.binlog.sql.words import Words
from mtsd.filter.filter import Filter
from mtsd.model.errors import NotSupportedError
from mtsd.model.step import QueryEvent

_ACCOUNTS = tuple(
    ("mysql", table)
    for table in (
        "user", "db", "tables_priv", "columns_priv", "procs_priv", "proxies_priv", "role_edges",
        "default_roles", "global_grants", "password_history",
    )
)  # fmt: skip
"""In the order in which a server opens them for a statement on accounts."""
_DATABASES = frozenset({b"DATABASE", b"SCHEMA"})


def filtered(query: QueryEvent, rules: Filter) -> QueryEvent | None:
    """Return a statement as it runs on the target, or None if it is not replicated.

    Raises NotSupportedError, whose text completes "contains …", if its text does not tell.
    """
    if not rules.rules:
        return query
    name = rules.target_name(query.database)
    if not rules.passes_database(name):
        return None
    if not _passes(query, name, rules):
        return None
    return query if name == query.database else query._replace(database=name)


def _passes(query: QueryEvent, default: str, rules: Filter) -> bool:
    if not rules.rules.on_tables and not _is_of_database(query):
        return True
    changes = changed(query.text, query.table_map_for_update)
    result = _judged(changes, default, rules)
    if result is None:
        raise NotSupportedError(
            "a statement of which its text does not tell whether the filter's rules for tables let"
            f" it pass: {shown(query, _LONGEST)!r}"
        )
    return result


def _judged(changes: Changed, default: str, rules: Filter) -> bool | None:
    on_tables = rules.rules.on_tables
    tables = [_qualified(table, default) for table in changes.tables]
    match changes.extent:
        case Extent.DATABASE:
            return rules.passes_definition(changes.database or default)
        case _ if not on_tables:
            return True
        case Extent.TABLES:
            return rules.passes_tables(tables)
        case Extent.SOME:
            return rules.passes_any_of(tables)
        case Extent.IN_DATABASE:
            return rules.passes_any_in(changes.database or default)
        case Extent.ACCOUNTS:
            named = not tables or rules.passes_tables(tables)
            return named and rules.passes_tables(_ACCOUNTS)
        case Extent.READS:
            return False
        case Extent.NONE:
            return True
    return None


def _qualified(table: Table, default: str) -> Table:
    database, name = table
    return database or default, name


def _is_of_database(query: QueryEvent) -> bool:
    words = Words(query.text)
    if words.word() not in {b"ALTER", b"CREATE", b"DROP"}:
        return False
    words.take_words(b"OR", b"REPLACE")
    return words.word() in _DATABASES


_LONGEST = 200

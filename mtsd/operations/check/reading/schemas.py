"""Reads what the schemas of users contain on a server, as facts of its check."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from mtsd.apply.session.family import TARGETS
from mtsd.apply.sql import literals
from mtsd.apply.tables.key_definitions import ForeignKey, KeyDefinitions, read_key_definitions
from mtsd.apply.tables.misread_tables import GENERATED
from mtsd.apply.tables.table_columns import TableColumn
from mtsd.model.names import folded
from mtsd.model.server import Flavour, ServerVersion
from mtsd.operations.check.facts import UserTable
from mtsd.wire.connection import Connection


def tables_of(known: KeyDefinitions, transactional: Collection[str]) -> tuple[UserTable, ...]:
    """Return the tables, by name; `transactional` are the engines that can roll back."""
    return tuple(
        UserTable(
            *name,
            transactional=table.engine in transactional,
            keyed=table.identifies_rows,
            is_blackhole=table.engine == "blackhole",
        )
        for name, table in sorted(known.tables.items())
    )


def columns_of(known: KeyDefinitions) -> Mapping[str, Sequence[TableColumn]]:
    """Return the columns of each table, in order, by its qualified name.

    A server lists some tables to a user to whom it does not show their columns.
    """
    return {
        ".".join(name): [each.column for each in table.columns]
        for name, table in sorted(known.tables.items())
        if table.columns
    }


def expressions_of(known: KeyDefinitions) -> Mapping[str, Mapping[str, str]]:
    """Return the expressions of generated columns, by qualified table and column."""
    by_table = {
        ".".join(name): {
            each.column.name: each.expression for each in table.columns if each.generated
        }
        for name, table in known.tables.items()
    }
    return {name: expressions for name, expressions in by_table.items() if expressions}


def foreign_keys_of(known: KeyDefinitions, wanted: Callable[[ForeignKey], bool]) -> tuple[str, ...]:
    """Return those of the foreign keys, each with the table that it refers to."""
    keys = (each for each in known.foreign_keys if each.table in known.tables and wanted(each))
    pairs = sorted((".".join(each.table), ".".join(each.parent)) for each in keys)
    return tuple(f"{table} -> {parent}" for table, parent in pairs)


async def read_keys(
    connection: Connection, flavour: Flavour, position_schema: str
) -> KeyDefinitions:
    """Return the tables of users with their columns and keys, as the daemon reads them."""
    known = await read_key_definitions(connection, flavour, fold_case=False)
    ((folds,),) = await connection.query("SELECT @@global.lower_case_table_names")
    own = folded(position_schema) if folds else position_schema
    tables = {
        name: each
        for name, each in known.tables.items()
        if (folded(name[0]) if folds else name[0]) != own
    }
    return replace(known, tables=tables)


async def read_transactional(connection: Connection) -> frozenset[str]:
    """Return the engines that can roll back, in lower case."""
    engines = await connection.query("SELECT engine, transactions FROM information_schema.engines")
    return frozenset(str(engine).lower() for engine, does in engines if does == "YES")


async def read_generated(
    connection: Connection, version: ServerVersion, position_schema: str
) -> tuple[str, ...]:
    """Return the tables with columns that a MariaDB generates without its events showing it."""
    if not TARGETS[version.flavour].omits_generated:
        return ()
    rows = await connection.query(
        "SELECT DISTINCT table_schema, table_name FROM information_schema.columns c"
        f" WHERE {GENERATED} AND {_users('table_schema', position_schema)} ORDER BY 1, 2"
    )
    return tuple(f"{schema!s}.{name!s}" for schema, name in rows)


async def read_triggers(connection: Connection, position_schema: str) -> Mapping[str, str]:
    """Return the qualified table of each trigger, by its qualified name."""
    rows = await connection.query(
        "SELECT trigger_schema, trigger_name, event_object_schema, event_object_table"
        " FROM information_schema.triggers"
        f" WHERE {_users('trigger_schema', position_schema)} ORDER BY 1, 2"
    )
    return {f"{schema!s}.{name!s}": f"{of!s}.{table!s}" for schema, name, of, table in rows}


async def read_names(
    connection: Connection, kind: str, table: str, position_schema: str, condition: str = "TRUE"
) -> tuple[str, ...]:
    """Return the qualified names of what is of a kind in a table of information_schema."""
    rows = await connection.query(
        f"SELECT {kind}_schema, {kind}_name FROM information_schema.{table}"
        f" WHERE {_users(f'{kind}_schema', position_schema)} AND {condition} ORDER BY 1, 2"
    )
    return tuple(f"{schema!s}.{name!s}" for schema, name in rows)


async def read_reaching(connection: Connection, position_schema: str) -> tuple[str, ...]:
    """Return views, triggers and routines whose text names the position schema."""
    own = literals.text(f"{position_schema}.").decode()
    names_it = f"LOCATE({own}, REPLACE(REPLACE(REPLACE({{}}, '`', ''), '\"', ''), ' ', ''))"
    views = f"is_updatable = 'YES' AND {names_it.format('view_definition')}"
    return (
        *await read_names(connection, "table", "views", position_schema, views),
        *await read_names(
            connection, "trigger", "triggers", position_schema, names_it.format("action_statement")
        ),
        *await read_names(
            connection,
            "routine",
            "routines",
            position_schema,
            names_it.format("routine_definition"),
        ),
    )


def _users(column: str, position_schema: str) -> str:
    """Return the condition for a schema to be a user's."""
    own = literals.text(position_schema).decode()
    return (
        f"{column} NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema')"
        f" AND {column} <> {own}"
    )


async def tables_in(connection: Connection, schema: str) -> tuple[str, ...] | None:
    """Return the visible tables of a database; None if the database is not visible."""
    name = literals.text(schema)
    databases = await connection.query(
        b"SELECT schema_name FROM information_schema.schemata WHERE schema_name=%b" % name
    )
    if not databases:
        return None
    rows = await connection.query(
        b"SELECT table_name FROM information_schema.tables WHERE table_schema=%b" % name
    )
    return tuple(sorted(str(row[0]) for row in rows))

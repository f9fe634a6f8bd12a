"""Reads what the schemas of users contain on a server, as facts of its check."""

from collections.abc import Mapping, Sequence
from typing import Final

from mtsd.apply.session.family import TARGETS
from mtsd.apply.sql import literals
from mtsd.apply.tables.misread_tables import GENERATED
from mtsd.apply.tables.table_columns import COLUMNS, TableColumn, table_column
from mtsd.model.server import ServerVersion
from mtsd.operations.check.facts import (
    UserTable,
)
from mtsd.wire.connection import Connection

CASCADES: Final = (
    "('CASCADE' IN (delete_rule, update_rule) OR 'SET NULL' IN (delete_rule, update_rule))"
)
_TABLES: Final = "table_type IN ('BASE TABLE', 'SYSTEM VERSIONED')"


async def read_tables_of_users(
    connection: Connection, position_schema: str
) -> tuple[UserTable, ...]:
    """Return the tables, by name."""
    engines = await connection.query("SELECT engine, transactions FROM information_schema.engines")
    transactional = {str(engine).lower() for engine, does in engines if does == "YES"}
    users = _users("table_schema", position_schema)
    keys = await connection.query(
        "SELECT DISTINCT table_schema, table_name FROM information_schema.columns"
        f" WHERE column_key = 'PRI' AND {users}"
    )
    keyed = {(str(schema), str(name)) for schema, name in keys}
    rows = await connection.query(
        "SELECT table_schema, table_name, engine FROM information_schema.tables"
        f" WHERE {_TABLES} AND {users} ORDER BY 1, 2"
    )
    return tuple(
        UserTable(
            str(schema),
            str(name),
            transactional=str(engine).lower() in transactional,
            keyed=(str(schema), str(name)) in keyed,
            is_blackhole=str(engine).lower() == "blackhole",
        )
        for schema, name, engine in rows
    )


async def read_columns(
    connection: Connection, position_schema: str
) -> Mapping[str, Sequence[TableColumn]]:
    """Return the columns of each table, in order, by its qualified name."""
    rows = await connection.query(
        f"SELECT table_schema, table_name, {COLUMNS} FROM information_schema.columns"
        " JOIN information_schema.tables USING (table_schema, table_name)"
        f" WHERE {_TABLES} AND {_users('table_schema', position_schema)}"
        " ORDER BY table_schema, table_name, ordinal_position"
    )
    columns: dict[str, list[TableColumn]] = {}
    for schema, name, *column in rows:
        columns.setdefault(f"{schema!s}.{name!s}", []).append(table_column(tuple(column)))
    return columns


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


async def read_expressions(
    connection: Connection, position_schema: str
) -> Mapping[str, Mapping[str, str]]:
    """Return the expressions of generated columns, by qualified table and column."""
    rows = await connection.query(
        "SELECT table_schema, table_name, column_name, generation_expression"
        " FROM information_schema.columns WHERE COALESCE(generation_expression, '') <> ''"
        f" AND {_users('table_schema', position_schema)}"
    )
    expressions: dict[str, dict[str, str]] = {}
    for schema, table, name, expression in rows:
        expressions.setdefault(f"{schema!s}.{table!s}", {})[str(name)] = str(expression)
    return expressions


async def read_foreign_keys(
    connection: Connection, position_schema: str, condition: str
) -> tuple[str, ...]:
    """Return the foreign keys of which a condition is true, each with the table it refers to."""
    rows = await connection.query(
        "SELECT constraint_schema, table_name, unique_constraint_schema, referenced_table_name"
        " FROM information_schema.referential_constraints"
        f" WHERE {condition} AND {_users('constraint_schema', position_schema)} ORDER BY 1, 2"
    )
    return tuple(f"{a!s}.{b!s} -> {c!s}.{d!s}" for a, b, c, d in rows)


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

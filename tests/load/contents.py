"""What users have made in one server: definitions as it prints them, and checksums of all rows.

A table's checksum does not depend on the order of its rows and is computed in the server.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final

import pymysql

from tests.servers.mysqld import Server

SYSTEM_SCHEMAS: Final = ("information_schema", "mysql", "performance_schema", "sys")
SYSTEM_USERS: Final = ("root", "mysql.infoschema", "mysql.session", "mysql.sys")

SESSION: Final = (
    "SET SESSION time_zone = '+00:00', sql_mode = 'NO_ENGINE_SUBSTITUTION', sql_quote_show_create"
    " = 1, lock_wait_timeout = 60, transaction_isolation = 'READ-COMMITTED'"
)

# A rolled-back insert moves the counter at the source and leaves no trace in its binlog, so no
# replica can have the same. The tablespace of all tables is named only after an ALTER TABLE.
_NOT_COMPARED: Final = re.compile(
    r"^\) (?:/\*!50100 TABLESPACE `innodb_\w+` \*/ )?(ENGINE=\w+)(?: AUTO_INCREMENT=\d+)?",
    re.MULTILINE,
)

NUMBERS_AND_TIMES: Final = frozenset(
    [
        "tinyint",
        "smallint",
        "mediumint",
        "int",
        "bigint",
        "decimal",
        "year",
        "date",
        "time",
        "datetime",
        "timestamp",
    ]
)

# Kind, view of information_schema, its columns of schema and name, and of what defines one.
PROPERTIES: Final = (
    (
        "view",
        "VIEWS",
        "TABLE_SCHEMA",
        "TABLE_NAME",
        (
            "VIEW_DEFINITION, CHECK_OPTION, IS_UPDATABLE, DEFINER, SECURITY_TYPE,"
            " CHARACTER_SET_CLIENT, COLLATION_CONNECTION"
        ),
    ),
    (
        "trigger",
        "TRIGGERS",
        "TRIGGER_SCHEMA",
        "TRIGGER_NAME",
        (
            "EVENT_OBJECT_TABLE, ACTION_TIMING, EVENT_MANIPULATION, ACTION_ORDER, ACTION_STATEMENT,"
            " SQL_MODE, DEFINER, CHARACTER_SET_CLIENT, COLLATION_CONNECTION, DATABASE_COLLATION"
        ),
    ),
    (
        "routine",
        "ROUTINES",
        "ROUTINE_SCHEMA",
        "CONCAT(ROUTINE_NAME, ' (', LOWER(ROUTINE_TYPE), ')')",
        (
            "ROUTINE_DEFINITION, DTD_IDENTIFIER, EXTERNAL_LANGUAGE, IS_DETERMINISTIC,"
            " SQL_DATA_ACCESS, SECURITY_TYPE, SQL_MODE, ROUTINE_COMMENT, DEFINER,"
            " CHARACTER_SET_CLIENT, COLLATION_CONNECTION, DATABASE_COLLATION"
        ),
    ),
    (
        "parameter",
        "PARAMETERS",
        "SPECIFIC_SCHEMA",
        "CONCAT_WS(' ', SPECIFIC_NAME, LOWER(ROUTINE_TYPE), ORDINAL_POSITION)",
        "PARAMETER_MODE, PARAMETER_NAME, DTD_IDENTIFIER, CHARACTER_SET_NAME, COLLATION_NAME",
    ),
    (
        "event",
        "EVENTS",
        "EVENT_SCHEMA",
        "EVENT_NAME",
        (
            "EVENT_DEFINITION, EVENT_TYPE, EXECUTE_AT, INTERVAL_VALUE, INTERVAL_FIELD, STARTS,"
            " ENDS, ON_COMPLETION, TIME_ZONE, SQL_MODE, EVENT_COMMENT, DEFINER,"
            " CHARACTER_SET_CLIENT,"
            " COLLATION_CONNECTION, DATABASE_COLLATION"
        ),
    ),
)


@dataclass(frozen=True, slots=True, order=True)
class Table:
    """A base table and the SQL expressions that give its columns' values exactly, in order."""

    schema: str
    name: str
    values: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"

    @property
    def quoted(self) -> str:
        """The table's name for SQL."""
        return f"{quoted(self.schema)}.{quoted(self.name)}"

    @property
    def row(self) -> str:
        """The SQL expression of a row's text: equal for equal rows only."""
        return f"CONCAT_WS('|', {', '.join(self.values)})"

    @property
    def slice(self) -> str:
        """The SQL expression of the upper 64 bits of SHA-256 over a row, an unsigned integer."""
        return f"CAST(CONV(LEFT(SHA2({self.row}, 256), 16), 16, 10) AS UNSIGNED)"


@dataclass(frozen=True, slots=True)
class Checksum:
    """A table's rows: how many, and the sum of their hashes, so that a double shows."""

    rows: int
    total: int

    def __str__(self) -> str:
        return f"{self.rows} rows {self.total % 2**64:016x}"


@dataclass(frozen=True, slots=True)
class Contents:
    """What one server holds.

    `definitions` maps "kind schema.name" to the statement or the properties that define it;
    `events` maps the events' names to their status.
    """

    definitions: dict[str, str]
    events: dict[str, str]
    tables: dict[str, Table]
    checksums: dict[str, Checksum]


def compared(definition: str) -> str:
    """Return what is compared of a statement that SHOW CREATE has returned."""
    return _NOT_COMPARED.sub(r") \1", definition)


def contents(
    server: Server, ignore_schemas: Sequence[str] = ("mtsd",), *, users: bool = False
) -> Contents:
    """Return what the server holds, without the schemas to be ignored."""
    with closing(connect(server)) as client:
        schemas = _schemas(client, ignore_schemas)
        tables = {str(table): table for table in _tables(client, schemas)}
        definitions = {
            f"database {schema}": _shown(client, f"DATABASE {quoted(schema)}") for schema in schemas
        }
        for name, table in tables.items():
            text = _shown(client, f"TABLE {table.quoted}")
            definitions[f"table {name}"] = compared(text)
        definitions |= _properties(client, schemas)
        if users:
            definitions |= _users(client)
        return Contents(
            definitions=definitions,
            events=_event_states(client, schemas),
            tables=tables,
            checksums={name: _checksum(client, table) for name, table in tables.items()},
        )


def quoted(name: str) -> str:
    """Return `name` as an identifier in SQL."""
    return "`" + name.replace("`", "``") + "`"


def connect(server: Server) -> pymysql.connections.Connection:
    """Return a connection that prints and hashes values alike, whatever the server's settings."""
    client = server.client()
    client.query(SESSION)
    return client


def _schemas(client: pymysql.connections.Connection, ignored: Sequence[str]) -> list[str]:
    known = _rows(client, "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA")
    return sorted({name for (name,) in known} - {*SYSTEM_SCHEMAS, *ignored})


def _tables(client: pymysql.connections.Connection, schemas: Sequence[str]) -> list[Table]:
    columns: dict[tuple[str, str], list[str]] = {}
    for schema, table, column, kind, length in _rows(
        client,
        "SELECT c.TABLE_SCHEMA, c.TABLE_NAME, c.COLUMN_NAME, c.DATA_TYPE,"
        " c.CHARACTER_MAXIMUM_LENGTH FROM information_schema.COLUMNS c"
        " JOIN information_schema.TABLES t USING (TABLE_SCHEMA, TABLE_NAME)"
        f" WHERE t.TABLE_TYPE = 'BASE TABLE' AND c.TABLE_SCHEMA IN ({_listed(schemas)})"
        " ORDER BY 1, 2, c.ORDINAL_POSITION",
    ):
        value = _value(quoted(column), kind, length)
        columns.setdefault((schema, table), []).append(f"IFNULL({value}, '~')")
    return [Table(schema, name, tuple(values)) for (schema, name), values in columns.items()]


def _value(column: str, kind: str, length: int | None) -> str:
    """Return an expression whose text is the same for equal values only, and never holds a ~."""
    if kind in {"float", "double"}:
        # A FLOAT prints six digits; a DOUBLE as many as it takes to tell it from all others.
        return f"CAST({column} AS DOUBLE)"
    if kind in {"bit", "enum", "set"}:
        return f"CAST({column} AS UNSIGNED)"
    if kind in NUMBERS_AND_TIMES:
        return column
    if kind in {"char", "varchar", "binary", "varbinary"} and (length or 0) <= 255:
        return f"HEX({column})"
    # JSON goes by its text, geometry (with its SRID) and vectors by their bytes.
    return f"SHA2({column}, 256)"


def _checksum(client: pymysql.connections.Connection, table: Table) -> Checksum:
    ((rows, total),) = _rows(
        client, f"SELECT COUNT(*), COALESCE(SUM({table.slice}), 0) FROM {table.quoted}"
    )
    return Checksum(int(rows), int(total))


def _properties(client: pymysql.connections.Connection, schemas: Sequence[str]) -> dict[str, str]:
    """Return the definitions of views, triggers, routines and events, a property a line."""
    found: dict[str, str] = {}
    for kind, view, schema, name, properties in PROPERTIES:
        for row in _rows(
            client,
            f"SELECT {schema}, {name}, {properties} FROM information_schema.{view}"
            f" WHERE {schema} IN ({_listed(schemas)}) ORDER BY 1, 2",
        ):
            lines = (
                f"{word}={value}"
                for word, value in zip(properties.split(", "), row[2:], strict=True)
            )
            found[f"{kind} {row[0]}.{row[1]}"] = "\n".join(lines)
    return found


def _event_states(client: pymysql.connections.Connection, schemas: Sequence[str]) -> dict[str, str]:
    return {
        f"{schema}.{name}": state
        for schema, name, state in _rows(
            client,
            "SELECT EVENT_SCHEMA, EVENT_NAME, STATUS FROM information_schema.EVENTS"
            f" WHERE EVENT_SCHEMA IN ({_listed(schemas)})",
        )
    }


def _users(client: pymysql.connections.Connection) -> dict[str, str]:
    client.query("SET SESSION print_identified_with_as_hex = ON")
    found: dict[str, str] = {}
    for user, host in _rows(
        client, f"SELECT User, Host FROM mysql.user WHERE User NOT IN ({_listed(SYSTEM_USERS)})"
    ):
        account = f"{quoted(user)}@{quoted(host)}"
        grants = sorted(grant for (grant,) in _rows(client, f"SHOW GRANTS FOR {account}"))
        ((created,),) = _rows(client, f"SHOW CREATE USER {account}")
        found[f"user {user}@{host}"] = "\n".join([created, *grants])
    return found


def _shown(client: pymysql.connections.Connection, what: str) -> str:
    """Return the statement that SHOW CREATE gives for `what`."""
    return str(_rows(client, f"SHOW CREATE {what}")[0][1])


def _listed(words: Sequence[str]) -> str:
    """Return the words as an SQL list, never empty."""
    return ", ".join(f"_utf8mb4 0x{word.encode().hex()}" for word in words) or "NULL"


def _rows(client: pymysql.connections.Connection, statement: str) -> list[tuple[Any, ...]]:
    with client.cursor() as cursor:
        cursor.execute(statement)
        return list(cursor.fetchall())

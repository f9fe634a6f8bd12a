"""Two servers of any families side by side: rows, definitions, accounts, and what is prepared.

Between two servers of one series definitions are compared as they show them, and tables by
CHECKSUM TABLE too. Otherwise definitions are compared by what both families have in common, and
rows by their values alone: the families compute checksums differently.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any, Final

from pymysql.cursors import Cursor

from tests.load.contents import SYSTEM_SCHEMAS, compared, quoted
from tests.servers.mysqld import Server

_SHOWN: Final = 300
"""How many characters of a difference are shown."""
_SYSTEM_USERS: Final = ("root", "mariadb.sys", "mysql.infoschema", "mysql.session", "mysql.sys")
_NUMBERED: Final = frozenset({"bit", "enum", "set"})
_TEXTS: Final = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext"})
_BYTES: Final = frozenset({
    "binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "vector", "geometry",
    "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon",
    "geometrycollection", "geomcollection",
})  # fmt: skip
_SAME_TYPES: Final = {"json": "longtext", "geomcollection": "geometrycollection"}
"""Names that MySQL has for what has another name in MariaDB."""
_TRIGGER: Final = " trigger "
_DISABLED: Final = frozenset({"SLAVESIDE_DISABLED", "REPLICA_SIDE_DISABLED"})
_DISABLED_EVENT: Final = re.compile(r"DISABLE ON (SLAVE|REPLICA)|ENABLE|DISABLE")
_GENERATED: Final = re.compile(r"(VIRTUAL|STORED|PERSISTENT) GENERATED", re.IGNORECASE)


def unequal(source: Server, target: Server, *, triggers: bool = True) -> list[str]:
    """Return a line for each difference; none: the servers are equal.

    Without `triggers`, those of the source need not be on the target.

    Nothing may change meanwhile. Not compared are the schema mtsd, AUTO_INCREMENT counters, and
    whether an event is enabled on the source: on the target it must not be.
    """
    one_family = source.installation.defaults == target.installation.defaults
    one_series = source.installation.version == target.installation.version
    with closing(source.client()) as ours, closing(target.client()) as theirs:
        both = ours.cursor(), theirs.cursor()
        for cursor in both:
            cursor.execute("SET SESSION time_zone = '+00:00', sql_mode = ''")
        tables = [_tables(cursor) for cursor in both]
        found = list(_differing("tables", *(dict.fromkeys(each, "") for each in tables)))
        for schema, name in sorted(tables[0].keys() & tables[1].keys()):
            kinds = [each[schema, name] for each in tables]
            if kinds[0].keys() != kinds[1].keys():
                found.append(f"{schema}.{name}: columns {[*kinds[0]]} and {[*kinds[1]]}")
                continue
            found += _rows_differing(both, schema, name, kinds)
        if one_family:
            found += _compared(both, lambda cursor: _checksums(cursor, generated=one_series))
        if one_series:
            found += _compared(both, _statements)
        else:
            found += _compared(both, _columns)
            found += _compared(both, _properties)
        if not triggers:
            found = [line for line in found if not line.startswith(_TRIGGER)]
        found += _compared(both, _grants)
        found += _compared(both, _prepared)
        found += _enabled_events(*both)
    return found


def _compared(
    both: tuple[Cursor, Cursor], read: Callable[[Cursor], dict[str, str]]
) -> Iterator[str]:
    ours, theirs = (read(cursor) for cursor in both)
    yield from _differing("", ours, theirs)


def _differing(what: str, ours: dict[Any, str], theirs: dict[Any, str]) -> Iterator[str]:
    for key in sorted(ours.keys() | theirs.keys()):
        here, there = ours.get(key, "missing"), theirs.get(key, "missing")
        if here != there:
            at = next((i for i, (a, b) in enumerate(zip(here, there, strict=False)) if a != b), 0)
            begin = max(at - 40, 0)
            yield (
                f"{what} {key}: {here[begin : begin + _SHOWN]!r} on the source and"
                f" {there[begin : begin + _SHOWN]!r} on the target"
            )


def _ask(cursor: Cursor, query: str, *values: str) -> list[tuple[Any, ...]]:
    cursor.execute(query, values or None)
    return list(cursor.fetchall())


def _of_users(column: str) -> str:
    listed = ", ".join(f"'{name}'" for name in (*SYSTEM_SCHEMAS, "mtsd"))
    return f"{column} NOT IN ({listed})"


def _tables(cursor: Cursor) -> dict[tuple[str, str], dict[str, str]]:
    """Return the types of the columns of all tables and views, by schema and name."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for schema, table, column, kind in _ask(
        cursor,
        "SELECT c.table_schema, c.table_name, c.column_name, c.data_type"
        f" FROM information_schema.columns c WHERE {_of_users('c.table_schema')}"
        " ORDER BY 1, 2, c.ordinal_position",
    ):
        found.setdefault((schema, table), {})[column] = kind.lower()
    return found


def _rows_differing(
    both: tuple[Cursor, Cursor], schema: str, table: str, kinds: Sequence[dict[str, str]]
) -> Iterator[str]:
    ours, theirs = (_rows(cursor, schema, table, kinds) for cursor in both)
    if ours != theirs:
        names = [*kinds[0]]
        only, only_there = [*(ours - theirs).elements()], [*(theirs - ours).elements()]
        columns = sorted(
            {
                name
                for here, there in zip(
                    sorted(only, key=str), sorted(only_there, key=str), strict=False
                )
                for name, a, b in zip(names, here, there, strict=False)
                if a != b
            }
        )
        yield (
            f"{schema}.{table}: {len(only)} rows on the source only, such as"
            f" {str(only[:1])[:_SHOWN]}, and {len(only_there)} on the target only, such as"
            f" {str(only_there[:1])[:_SHOWN]}; in columns {columns}"
        )


def _rows(
    cursor: Cursor, schema: str, table: str, kinds: Sequence[dict[str, str]]
) -> Counter[tuple[Any, ...]]:
    shown = []
    documents = set()
    for place, (name, kind) in enumerate(kinds[0].items()):
        pair = {kind, kinds[1][name]}
        column = quoted(name)
        if "json" in pair:
            documents.add(place)
        elif kind in _TEXTS:
            column = f"HEX(CONVERT({column} USING utf8mb4))"
        elif kind in _BYTES:
            column = f"HEX({column})"
        elif kind in _NUMBERED:
            column = f"CAST({column} AS UNSIGNED)"
        elif kind in {"float", "double"}:
            column = f"CAST({column} AS DOUBLE)"
        else:
            column = f"CAST({column} AS CHAR)"
        shown.append(column)
    name = f"{quoted(schema)}.{quoted(table)}"
    history = ""
    if _ask(
        cursor,
        "SELECT 1 FROM information_schema.tables WHERE table_type = 'SYSTEM VERSIONED'"
        " AND table_schema = %s AND table_name = %s",
        schema,
        table,
    ):
        history = " FOR SYSTEM_TIME ALL"
        if not any(
            kind == "timestamp" and name in {"since", "until"} for name, kind in kinds[0].items()
        ):
            shown += ["CAST(row_start AS CHAR)", "CAST(row_end AS CHAR)"]
    rows = _ask(cursor, f"SELECT {', '.join(shown)} FROM {name}{history}")
    return Counter(
        tuple(
            json.dumps(json.loads(value), sort_keys=True)
            if place in documents and value is not None
            else value
            for place, value in enumerate(row)
        )
        for row in rows
    )


def _checksums(cursor: Cursor, *, generated: bool) -> dict[str, str]:
    """Return the checksum of each table, of those with `generated` columns only if so told.

    Versions of MariaDB compute that of the same generated columns differently.
    """
    names = _ask(
        cursor,
        "SELECT table_schema, table_name FROM information_schema.tables"
        f" WHERE table_type <> 'VIEW' AND {_of_users('table_schema')}",
    )
    # In MySQL the hidden columns of such an index get another checksum each time.
    expressions = _ask(
        cursor,
        "SELECT table_schema, table_name FROM information_schema.statistics"
        f" WHERE column_name IS NULL AND {_of_users('table_schema')}",
    )
    if not generated:
        expressions += _ask(
            cursor,
            "SELECT table_schema, table_name FROM information_schema.columns"
            f" WHERE extra LIKE '%GENERATED%' AND {_of_users('table_schema')}",
        )
    return {
        f"checksum of {schema}.{name}": str(
            _ask(cursor, f"CHECKSUM TABLE {quoted(schema)}.{quoted(name)}")[0][1]
        )
        for schema, name in names
        if (schema, name) not in expressions
    }


_SHOWN_BY_STATEMENT: Final = tuple(
    (
        kind,
        column,
        f"SELECT {names} FROM information_schema.{where} {_of_users(names.split(',')[0])}",
    )
    for kind, column, names, where in (
        ("DATABASE", 1, "schema_name, ''", "schemata WHERE"),
        ("TABLE", 1, "table_schema, table_name", "tables WHERE table_type <> 'VIEW' AND"),
        ("VIEW", 1, "table_schema, table_name", "views WHERE"),
        ("TRIGGER", 2, "trigger_schema, trigger_name", "triggers WHERE"),
        (
            "PROCEDURE", 2, "routine_schema, routine_name",
            "routines WHERE routine_type = 'PROCEDURE' AND",
        ),
        (
            "FUNCTION", 2, "routine_schema, routine_name",
            "routines WHERE routine_type = 'FUNCTION' AND",
        ),
        ("EVENT", 3, "event_schema, event_name", "events WHERE"),
    )
)  # fmt: skip
"""What SHOW CREATE shows: the column of the statement, and a query for schemas and names."""


def _statements(cursor: Cursor) -> dict[str, str]:
    """Return what SHOW CREATE says about everything that users have made."""
    found: dict[str, str] = {}
    for kind, column, listing in _SHOWN_BY_STATEMENT:
        for schema, name in _ask(cursor, listing):
            full = quoted(schema) + (f".{quoted(name)}" if name else "")
            text = str(_ask(cursor, f"SHOW CREATE {kind} {full}")[0][column])
            if kind == "EVENT":
                text = _DISABLED_EVENT.sub("", text)
            found[f"{kind.lower()} {schema}.{name}"] = compared(text)
    return found


def _columns(cursor: Cursor) -> dict[str, str]:
    """Return what the families agree on about the columns of tables."""
    found = {}
    for schema, table, name, data_type, column_type, nullable, *rest in _ask(
        cursor,
        "SELECT c.table_schema, c.table_name, c.column_name, c.data_type, c.column_type,"
        " c.is_nullable, c.datetime_precision, c.character_set_name, c.column_default, c.extra,"
        " c.column_comment FROM information_schema.columns c JOIN information_schema.tables t"
        " USING (table_schema, table_name)"
        f" WHERE t.table_type <> 'VIEW' AND {_of_users('c.table_schema')}",
    ):
        fraction, text, default, shown, comment = rest
        kind, full, extra = data_type.lower(), column_type.lower(), shown.upper()
        json_like = kind == "json" or (kind == "longtext" and comment == "")
        said = [
            _SAME_TYPES.get(kind, kind),
            # Widths of integers and years have no meaning.
            ""
            if "int" in kind or kind == "year" or json_like
            else re.sub(r"^geomc", "geometryc", full),
            "unsigned" if "unsigned" in full else "",
            nullable,
            fraction,
            "" if json_like else text,
            "generated" if _GENERATED.search(extra) else _default(default),
            "stored" if "STORED" in extra or "PERSISTENT" in extra else "",
            "invisible" if "INVISIBLE" in extra else "",
            "auto" if "AUTO_INCREMENT" in extra else "",
            "on update" if "ON UPDATE" in extra else "",
            comment,
        ]
        found[f"column {schema}.{table}.{name}"] = str(said)
    return found


def _default(default: str | None) -> str:
    """Return a default as both show it: MariaDB quotes literals, and has NULL for none."""
    text = "NULL" if default is None else str(default)
    if text.startswith("'") and text.endswith("'"):
        text = text[1:-1].replace("''", "'")
    return re.sub(r"(current_timestamp)\(\)", r"\1", text.lower())


_IN_COMMON: Final = tuple(
    (kind, f"SELECT {names} FROM information_schema.{where} {_of_users(names.split(',')[0])}")
    for kind, names, where in (
        (
            "key",
            ("table_schema, CONCAT_WS(' ', table_name, index_name, seq_in_index), non_unique,"
            " column_name, sub_part, index_type"),
            "statistics WHERE",
        ),
        (
            "table",
            "table_schema, table_name, engine, table_comment",
            "tables WHERE table_type <> 'VIEW' AND",
        ),
        (
            "foreign key",
            ("constraint_schema, CONCAT_WS(' ', table_name, constraint_name),"
            " REPLACE(delete_rule, 'RESTRICT', 'NO ACTION'),"
            " REPLACE(update_rule, 'RESTRICT', 'NO ACTION'), referenced_table_name"),
            "referential_constraints WHERE",
        ),
        (
            "partition",
            ("table_schema, CONCAT_WS(' ', table_name, partition_ordinal_position),"
            " partition_name, partition_method, partition_description"),
            "partitions WHERE partition_name IS NOT NULL AND",
        ),
        (
            "view",
            "table_schema, table_name, check_option, is_updatable, security_type, definer",
            "views WHERE",
        ),
        (
            "trigger",
            ("trigger_schema, trigger_name, event_object_table, action_timing,"
            " event_manipulation, action_statement, definer"),
            "triggers WHERE",
        ),
        (
            "routine",
            ("routine_schema, CONCAT_WS(' ', routine_type, routine_name), routine_definition,"
            " is_deterministic, sql_data_access, security_type, routine_comment, definer,"
            " character_set_client"),
            "routines WHERE",
        ),
        (
            "event",
            ("event_schema, event_name, event_definition, event_type, execute_at,"
            " interval_value, interval_field, starts, ends, on_completion, time_zone,"
            " event_comment, definer"),
            "events WHERE",
        ),
        ("database", "schema_name, '', default_character_set_name", "schemata WHERE"),
    )
)  # fmt: skip
"""What a thing is called, and a query of schema, name and properties that mean the same in both."""


def _properties(cursor: Cursor) -> dict[str, str]:
    return {
        f"{kind} {schema}.{name}": str(
            [each.decode() if isinstance(each, bytes) else each for each in properties]
        )
        for kind, query in _IN_COMMON
        for schema, name, *properties in _ask(cursor, query)
    }


def _grants(cursor: Cursor) -> dict[str, str]:
    """Return the privileges of each account, without its password."""
    listed = ", ".join(f"'{name}'" for name in _SYSTEM_USERS)
    found = {}
    for user, host in _ask(
        cursor, f"SELECT user, host FROM mysql.user WHERE user NOT IN ({listed}) AND user <> ''"
    ):
        account = f"'{user}'@'{host}'" if host else f"'{user}'"
        lines = (str(line) for (line,) in _ask(cursor, f"SHOW GRANTS FOR {account}"))
        found[f"account {account}"] = "\n".join(
            sorted(map(_sorted_grant, (line for line in lines if "GRANT USAGE" not in line)))
        )
    return found


def _sorted_grant(line: str) -> str:
    privileges, on, rest = line.removeprefix("GRANT ").partition(" ON ")
    rest = re.sub(r" IDENTIFIED BY PASSWORD '.*?'", "", rest)
    # Column lists are in the brackets.
    each = sorted(re.split(r", (?![^(]*\))", privileges.replace("`", "")))
    return ", ".join(each) + on + rest


def _prepared(cursor: Cursor) -> dict[str, str]:
    """Return what is prepared, under xids of text."""
    return {
        f"prepared {number} {gtrid} {bqual} {xid if isinstance(xid, str) else xid.decode()}": ""
        for number, gtrid, bqual, xid in _ask(cursor, "XA RECOVER")
    }


def _enabled_events(source: Cursor, target: Cursor) -> Iterator[str]:
    query = "SELECT event_schema, event_name, status FROM information_schema.events"
    ours = {(schema, name): status for schema, name, status in _ask(source, query)}
    for schema, name, status in _ask(target, query):
        if status not in _DISABLED and ours.get((schema, name)) != "DISABLED":
            yield f"event {schema}.{name} is {status} on the target"

"""Tables and changes that MySQL and MariaDB both understand, and their contents compared by rows.

The two families compute CHECKSUM TABLE differently, and show other definitions.
"""

from __future__ import annotations

import json
from collections import Counter
from contextlib import closing
from typing import Any, Final

from tests.servers.mysqld import Server

TYPES: Final = (
    ("ti", "TINYINT UNSIGNED", ("0", "255", "NULL")),
    ("si", "SMALLINT", ("-32768", "32767", "NULL")),
    ("mi", "MEDIUMINT UNSIGNED", ("0", "16777215", "NULL")),
    ("i", "INT", ("-2147483648", "2147483647", "NULL")),
    ("bi", "BIGINT UNSIGNED", ("0", "18446744073709551615", "NULL")),
    ("n", "DECIMAL(30,10)", ("-12345678901234567890.0123456789", "0.0000000001", "NULL")),
    ("f", "FLOAT", ("1.5e10", "-0.1", "NULL")),
    ("d", "DOUBLE", ("1.7976931348623157e308", "-0.1", "NULL")),
    ("b", "BIT(17)", ("b'10000000000000001'", "b'0'", "NULL")),
    ("y", "YEAR", ("1901", "2155", "NULL")),
    ("da", "DATE", ("'1000-01-01'", "'9999-12-31'", "NULL")),
    ("t", "TIME(6)", ("'-838:59:59.000000'", "'12:34:56.789012'", "NULL")),
    ("dt", "DATETIME(6)", ("'1000-01-01 00:00:00.000001'", "'9999-12-31 23:59:59.999999'", "NULL")),
    ("ts", "TIMESTAMP(3) NULL", ("'1970-01-02 00:00:01.001'", "'2037-12-31 01:02:03.999'", "NULL")),
    ("c", "CHAR(10) CHARACTER SET utf8mb4", ("'é'", "'😀x'", "NULL")),
    ("l", "VARCHAR(20) CHARACTER SET latin1", ("'äöü'", "''", "NULL")),
    ("x", "TEXT CHARACTER SET utf8mb4", ("'漢字 \\\\ \\'q\\''", "REPEAT('a', 300)", "NULL")),
    ("bn", "BINARY(5)", ("X'0102000000'", "X'FF'", "NULL")),
    ("vb", "VARBINARY(300)", ("X'00FF00'", "X''", "NULL")),
    ("bl", "BLOB", ("X'80818283'", "X''", "NULL")),
    ("e", "ENUM('one','two','thrée') CHARACTER SET utf8mb4", ("'thrée'", "'one'", "NULL")),
    ("s", "SET('a','b','c')", ("'a,c'", "''", "NULL")),
    ("j", "JSON", ("'{\"b\": [1, 2.5, \"é\", null, true], \"a\": {}}'", "'[]'", "NULL")),
    (
        "g",
        "GEOMETRY",
        ("ST_GeomFromText('POINT(1 2)')", "ST_GeomFromText('LINESTRING(0 0,1 1)')", "NULL"),
    ),
)  # fmt: skip
"""Name, type and values of each column."""

_SHOWN: Final = {
    **dict.fromkeys(("c", "l", "x", "bn", "vb", "bl"), "HEX(CONVERT({0} USING utf8mb4))"),
    **dict.fromkeys(("bn", "vb", "bl"), "HEX({0})"),
    "b": "CAST({0} AS UNSIGNED)",
    "e": "CAST({0} AS UNSIGNED)",
    "s": "CAST({0} AS UNSIGNED)",
    "f": "CAST({0} AS DOUBLE)",
    "g": "HEX(ST_AsBinary({0}))",
}
KEYS: Final = {
    "keyed": "id INT PRIMARY KEY",
    "uniquely": "id INT NOT NULL UNIQUE",
    "keyless": "id INT",
}


def create(server: Server, database: str) -> None:
    """Create a database with a table of every type for each kind of key."""
    columns = ", ".join(f"{name} {kind}" for name, kind, _ in TYPES)
    server.sql(f"CREATE DATABASE {database}")
    for table, key in KEYS.items():
        server.sql(f"CREATE TABLE {table} ({key}, {columns}) CHARACTER SET utf8mb4", database)


def change(server: Server, database: str, binlog_format: str) -> None:
    """Insert, update and delete rows with each value of each type."""
    with closing(server.client(database)) as client, client.cursor() as cursor:
        cursor.execute("SET NAMES utf8mb4")
        cursor.execute("SET time_zone = '+00:00'")
        cursor.execute(f"SET SESSION binlog_format = {binlog_format}")
        for table in KEYS:
            for number in range(3):
                values = ", ".join(each[number] for _, _, each in TYPES)
                cursor.execute(f"INSERT INTO {table} VALUES ({number}, {values})")
                cursor.execute(f"INSERT INTO {table} VALUES ({number + 10}, {values})")
            for name, _, each in TYPES:
                cursor.execute(f"UPDATE {table} SET {name} = {each[1]} WHERE id IN (0, 2)")
                cursor.execute(f"UPDATE {table} SET {name} = {each[0]} WHERE id = 1")
            cursor.execute(f"DELETE FROM {table} WHERE id IN (10, 12)")


def unequal(source: Server, target: Server, databases: tuple[str, ...]) -> list[str]:
    """Return a line for each table of `create` whose rows differ."""
    found: list[str] = []
    for database in databases:
        for table in KEYS:
            ours, theirs = (_rows(server, database, table) for server in (source, target))
            found += [
                f"{database}.{table}: {name} has {dict(ours[name] - theirs[name])} on the source"
                f" and {dict(theirs[name] - ours[name])} on the target"
                for name in ours
                if ours[name] != theirs[name]
            ]
    return found


def _rows(server: Server, database: str, table: str) -> dict[str, Counter[Any]]:
    names = ["id", *(name for name, _, _ in TYPES)]
    shown = ", ".join(_SHOWN.get(name, "{0}").format(name) for name in names)
    with closing(server.client(database)) as client, client.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        cursor.execute(f"SELECT {shown} FROM {table}")
        rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    for row in rows:
        row["j"] = None if row["j"] is None else json.dumps(json.loads(row["j"]), sort_keys=True)
    found: dict[str, Counter[Any]] = {
        name: Counter((row["id"], str(row[name])) for row in rows) for name in names
    }
    found["rows"] = Counter(str(sorted((k, str(v)) for k, v in row.items())) for row in rows)
    return found

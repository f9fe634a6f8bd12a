"""Every column type with its boundary values: inserted, updated and deleted by each kind of key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from tests.load import families
from tests.load.columns import BYTES, CHARSETS, DOCUMENTS, NUMBERS, TEXTS, TIMES, WIDE, Column
from tests.load.matrix.place import MARIADBS, MYSQLS, NEW_MARIADBS, Part, Place, Step

_OF_MYSQL: Final = ("ja_0900", "gb18030", "JSON", "VECTOR", "SRID")
"""What the declaration of a column contains that MariaDB does not have."""
SHARED: Final[dict[str, tuple[Column, ...]]] = {
    name: tuple(
        column for column in columns if not any(word in column.declaration for word in _OF_MYSQL)
    )
    for name, columns in {
        "numbers": NUMBERS,
        "times": TIMES,
        "texts": TEXTS,
        "charsets": CHARSETS,
        "bytes_": BYTES,
        "shapes": DOCUMENTS,
    }.items()
}
"""Columns that both families have."""
_KEYS: Final = {
    "keyed": "id INT PRIMARY KEY",
    "uniquely": "id INT NOT NULL UNIQUE",
    "keyless": "id INT",
}
_ROWS: Final = 4


def chosen_values(_place: Place) -> Iterator[str | Step]:
    """Set each column to each of its chosen values."""
    columns = ", ".join(f"{name} {kind}" for name, kind, _ in families.TYPES)
    for table, key in _KEYS.items():
        yield f"CREATE TABLE {table} ({key}, {columns}) CHARACTER SET utf8mb4"
        for number in range(3):
            values = ", ".join(each[number] for _, _, each in families.TYPES)
            yield f"INSERT INTO {table} VALUES ({number}, {values}), ({number + 10}, {values})"
        for name, _, each in families.TYPES:
            yield f"UPDATE {table} SET {name} = {each[1]} WHERE id IN (0, 2)"
            yield f"UPDATE {table} SET {name} = {each[0]} WHERE id = 1"
        yield f"DELETE FROM {table} WHERE id IN (10, 12)"
    yield "CREATE TABLE edges (id INT PRIMARY KEY, a TIMESTAMP NULL, b TIMESTAMP(6) NULL)"
    yield (
        "INSERT INTO edges VALUES (1, '1970-01-01 00:00:01', '1970-01-01 00:00:01.000001'),"
        " (2, '2038-01-19 03:14:07', '2038-01-19 03:14:07.999999'), (3, NULL, NULL)"
    )
    yield "UPDATE edges SET a = '2038-01-19 03:14:07' WHERE b < '1970-01-02'"


def _filled(
    place: Place, table: str, columns: Sequence[Column], key: str, rows: int = _ROWS
) -> Iterator[str]:
    """Create a table, fill it, and change each of its columns."""
    declared = ", ".join(f"{column.name} {column.declaration}" for column in columns)
    yield f"CREATE TABLE {table} ({key}, {declared})"

    def values(number: int) -> str:
        return f"({', '.join([str(number), *(each.literal(place.rng) for each in columns)])})"

    yield f"INSERT INTO {table} VALUES {', '.join(values(number) for number in range(rows))}"
    yield f"INSERT INTO {table} (id) VALUES ({rows}), ({rows + 1})"
    yield f"INSERT INTO {table} VALUES {values(rows + 2)}"
    for column in columns:
        to = place.rng.choice(("NULL", column.literal(place.rng)))
        yield (
            f"UPDATE {table} SET {column.name} = {to}"
            f" WHERE id IN ({place.rng.randrange(rows)}, {rows})"
        )
    yield f"DELETE FROM {table} WHERE id IN (1, {rows + 1})"


def by_chance(place: Place) -> Iterator[str | Step]:
    """Fill the columns that both families have with values by chance and their extremes."""
    for table, columns in SHARED.items():
        yield from _filled(place, table, columns, "id INT PRIMARY KEY")
        yield from _filled(place, f"{table}_keyless", columns, "id INT", 2)


def of_mysql(place: Place) -> Iterator[str | Step]:
    """Fill what only MySQL has: its JSON, SRIDs, character sets."""
    if not place.has(MYSQLS, "types"):
        return
    for table, columns in WIDE.items():
        yield from _filled(place, table, columns, "id INT PRIMARY KEY")
    yield "SET SESSION binlog_row_value_options = 'PARTIAL_JSON'"
    yield "CREATE TABLE partly (id INT PRIMARY KEY, j JSON, v INT)"
    yield (
        "INSERT INTO partly VALUES (1, JSON_OBJECT('a', 1, 'b', REPEAT('x', 500)), 1),"
        " (2, JSON_ARRAY(1, 2, 3, REPEAT('y', 400)), 2)"
    )
    yield "UPDATE partly SET j = JSON_SET(j, '$.a', 2)"
    yield "UPDATE partly SET j = JSON_REPLACE(j, '$[1]', 'two'), v = 3 WHERE id = 2"
    yield "UPDATE partly SET j = JSON_REMOVE(j, '$.a') WHERE id = 1"
    yield "DELETE FROM partly WHERE id = 2"


_OWN: Final = (
    (
        "u",
        "UUID",
        (
            "'123e4567-e89b-12d3-a456-426655440000'",
            "'ffffffff-ffff-ffff-ffff-ffffffffffff'",
            "NULL",
        ),
    ),
    ("i4", "INET4", ("'0.0.0.0'", "'255.255.255.255'", "NULL")),
    ("i6", "INET6", ("'::'", "'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'", "NULL")),
    ("vc", "VARCHAR(300) COMPRESSED CHARACTER SET utf8mb4", ("REPEAT('é', 300)", "''", "NULL")),
    ("bc", "BLOB COMPRESSED", ("REPEAT(x'00ff', 900)", "x''", "NULL")),
    ("tc", "MEDIUMTEXT COMPRESSED", ("REPEAT('long ', 500)", "'x'", "NULL")),
    ("j", "JSON", ("'{\"a\": [1, 2]}'", "'null'", "NULL")),
    ("p", "POINT REF_SYSTEM_ID=0", ("POINT(1, 2)", "POINT(-1e300, 0)", "NULL")),
)


def of_mariadb(place: Place) -> Iterator[str | Step]:
    """Fill what only MariaDB has."""
    if not place.has(MARIADBS, "types"):
        return
    columns = list(_OWN)
    if place.has(NEW_MARIADBS, "VECTOR, and TIMESTAMP up to 2106"):
        columns += [
            ("ve", "VECTOR(3)", ("VEC_FromText('[1,2.5,-3]')", "VEC_FromText('[0,0,0]')", "NULL")),
            ("ts", "TIMESTAMP(2) NULL", ("'2038-01-19 03:14:08'", "'2106-02-07 06:28:15'", "NULL")),
        ]
    declared = ", ".join(f"{name} {kind}" for name, kind, _ in columns)
    for table, key in _KEYS.items():
        yield f"CREATE TABLE {table} ({key}, {declared}) CHARACTER SET utf8mb4"
        for number in range(3):
            values = ", ".join(each[number] for _, _, each in columns)
            yield f"INSERT INTO {table} VALUES ({number}, {values}), ({number + 10}, {values})"
        for name, _, each in columns:
            yield f"UPDATE {table} SET {name} = {each[0]} WHERE id IN (2, 12)"
        yield f"DELETE FROM {table} WHERE id IN (0, 11)"


PARTS: Final[tuple[Part, ...]] = (chosen_values, by_chance, of_mysql, of_mariadb)

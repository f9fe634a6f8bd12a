"""A table with columns of every type, values at random and at their limits, and what SELECT says.

A column is its definition, an expression that shows its value in full, and literals of values.
"""

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.events.rows import ROW_EVENTS
from mtsd.binlog.events.table_map import TableMap, parse_table_map
from mtsd.binlog.values.column_values import Value
from mtsd.binlog.values.row_image import RowChange, RowDecoder, RowImage
from tests.binlog.recording import events_of
from tests.servers.mysqld import Server

Literal = Callable[[random.Random], str]
FROM_SERVER: Mapping[str, Callable[[Any], Value]] = {
    "same": lambda value: value,
    "hex": bytes.fromhex,
    "float": float,
    "decimal": Decimal,
}


@dataclass(frozen=True)
class Kind:
    """A column: its definition, what SELECT shows (`{}` is its name), and values of it."""

    definition: str
    literal: Literal
    shown: str = "{}"
    read: str = "same"


def one_of(*literals: object) -> Literal:
    return lambda rng: str(rng.choice(literals))


def integer(bits: int, *, unsigned: bool) -> Literal:
    low, high = (0, (1 << bits) - 1) if unsigned else (-(1 << bits - 1), (1 << bits - 1) - 1)

    def literal(rng: random.Random) -> str:
        near = rng.choice((low, high, 0, 1, -1 if low else 2, rng.randint(low, high)))
        return str(rng.choice((near, rng.randint(low, high) >> rng.randrange(bits))))

    return literal


def decimal(digits: int, scale: int) -> Literal:
    def literal(rng: random.Random) -> str:
        length = rng.choice((digits, rng.randint(1, digits)))
        number = rng.choice((10**length - 1, rng.randrange(10**length), 10 ** (length - 1), 0))
        return f"{rng.choice(('', '-'))}{Decimal(number).scaleb(-scale, BIG):f}"

    return literal


BIG = Context(prec=100)


def real(rng: random.Random) -> str:
    return repr(rng.choice((0.0, 1.5, -1.0, rng.random(), rng.uniform(-1e6, 1e6),
                            rng.random() * 10.0 ** rng.randint(-37, 37))))  # fmt: skip


def text(characters: str, most: int) -> Literal:
    def literal(rng: random.Random) -> str:
        length = rng.choice((0, 1, most, rng.randint(0, most)))
        return quoted("".join(rng.choice(characters) for _ in range(length)))

    return literal


def quoted(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"


def binary(most: int) -> Literal:
    def literal(rng: random.Random) -> str:
        raw = rng.randbytes(rng.choice((0, 1, most, rng.randint(0, most))))
        return f"x'{rng.choice((raw, raw[:-1] + bytes(1), bytes(len(raw)))).hex()}'"

    return literal


def moment(first: int, last: int, digits: int) -> Literal:
    def literal(rng: random.Random) -> str:
        fraction = f".{rng.choice((0, 10**6 - 1, rng.randrange(10**6))):06d}"[: digits + 1]
        day = (rng.randint(first, last), rng.randint(1, 12), rng.randint(1, 28))
        return (
            f"'{day[0]:04d}-{day[1]:02d}-{day[2]:02d} {rng.randrange(24):02d}:"
            f"{rng.randrange(60):02d}:{rng.randrange(60):02d}{fraction if digits else ''}'"
        )

    return literal


def clock(digits: int) -> Literal:
    def literal(rng: random.Random) -> str:
        fraction = f".{rng.choice((0, 1, 10**6 - 1, rng.randrange(10**6))):06d}"[: digits + 1]
        sign = rng.choice(("", "-"))
        hours = rng.choice((0, 837, rng.randrange(838)))
        return (
            f"'{sign}{hours:02d}:{rng.randrange(60):02d}:{rng.randrange(60):02d}"
            f"{fraction if digits else ''}'"
        )

    return literal


def either(*literals: Literal) -> Literal:
    return lambda rng: rng.choice(literals)(rng)


def document(rng: random.Random) -> str:
    return (
        f"CAST({quoted(json.dumps(json_value(rng, 4), ensure_ascii=rng.random() < 0.5))} AS JSON)"
    )


def json_value(rng: random.Random, depth: int) -> object:
    """Return a value of JSON at random."""
    kind = rng.randrange(11 if depth else 9)
    match kind:
        case 0 | 1 | 2:
            return (None, True, False)[kind]
        case 3 | 4:
            return rng.choice((-1, 1)) * rng.randrange(1 << rng.choice((3, 15, 16, 31, 32, 63)))
        case 5:
            return rng.random() * 10.0 ** rng.randint(-20, 20)
        case 6 | 7 | 8:
            characters = 'ab"\\/\x00\x1f\n\té€😀\x7f\u2028'
            most = rng.choice((3, 3, 40, 300))
            return "".join(rng.choice(characters) for _ in range(rng.randrange(most)))
        case 9:
            return [json_value(rng, depth - 1) for _ in range(rng.choice((0, 1, 3, 12)))]
        case _:
            keys = ["", "a", "b", "id", "long key", "é", 'quo"te', "back\\slash", "$.x[0]"]
            count = rng.randrange(len(keys))
            return {key: json_value(rng, depth - 1) for key in rng.sample(keys, count)}


_SPECIAL_JSON = one_of(
    "JSON_ARRAY(CAST('2024-02-29' AS DATE), CAST('-838:59:59.5' AS TIME(6)),"
    " CAST('9999-12-31 23:59:59.999999' AS DATETIME(6)), TIMESTAMP'1970-01-01 00:00:01')",
    "JSON_OBJECT('d', 1.10, 'e', -0.000001, 'f',"
    " 12345678901234567890123456789012345.123456789012345678901234567890)",
    "JSON_ARRAY(b'101', x'00ff41', CAST(REPEAT('ab', 200) AS BINARY), CAST('x' AS BINARY))",
    "JSON_ARRAY(REPEAT('large ', 12000), JSON_OBJECT('n', REPEAT('ä', 70000)), 1, 70000, NULL)",
    "CAST('-0.0' AS JSON)", "CAST('{}' AS JSON)", "CAST('[]' AS JSON)", "CAST('null' AS JSON)",
    "CAST('18446744073709551615' AS JSON)", "CAST('1e100' AS JSON)", "CAST('5e-324' AS JSON)",
)  # fmt: skip

LATIN = "aZ 0é€ß\x81'\\%"
KINDS: dict[str, Kind] = {
    **{
        f"{name}_{'unsigned' if unsigned else 'signed'}": Kind(
            f"{name} {'UNSIGNED' if unsigned else ''}", integer(bits, unsigned=unsigned)
        )
        for name, bits in {
            "tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64,
        }.items()
        for unsigned in (False, True)
    },
    **{
        f"decimal_{digits}_{scale}": Kind(f"DECIMAL({digits},{scale})", decimal(digits, scale))
        for digits, scale in ((1, 0), (1, 1), (9, 9), (10, 0), (18, 4), (19, 2), (38, 10), (39, 0),
                              (65, 30), (65, 0))
    },
    "single": Kind("FLOAT", real, "CAST({} AS DOUBLE)", "float"),
    "wide": Kind("DOUBLE", real, "{}", "float"),
    **{
        f"bit_{size}": Kind(f"BIT({size})", integer(size, unsigned=True), "{} + 0")
        for size in (1, 7, 8, 9, 33, 63, 64)
    },
    "year": Kind("YEAR", one_of(0, 1901, 2155, 2024, 1970)),
    "date": Kind(
        "DATE",
        either(moment(0, 9999, 0), one_of("'0000-00-00'", "'2024-00-00'", "'2024-02-00'",
               "'9999-12-31'", "'1000-01-01'", "'2024-02-29'")),
        "CONCAT({})",
    ),
    **{f"time_{d}": Kind(f"TIME({d})", either(clock(d), one_of("'838:59:59'", "'-838:59:59'")),
                         "CONCAT({})") for d in range(7)},
    **{
        f"datetime_{d}": Kind(
            f"DATETIME({d})",
            either(moment(0, 9999, d), one_of("'0000-00-00'", "'2024-00-00 01:02:03'",
                                              "'9999-12-31 23:59:59'")),
            "CONCAT({})",
        )
        for d in range(7)
    },
    **{
        f"timestamp_{d}": Kind(
            f"TIMESTAMP({d}) NULL",
            either(moment(1971, 2037, d), one_of("'0000-00-00'", "'1970-01-01 00:00:01'",
                                                 "'2038-01-19 03:14:07'")),
            "CONCAT({})",
        )
        for d in range(7)
    },
    "char_utf8mb4": Kind("CHAR(9)", text("aé€😀 ", 9)),
    "char_wide": Kind("CHAR(255)", text("aé€😀 ", 255)),
    "char_latin1": Kind("CHAR(255) CHARACTER SET latin1", text(LATIN, 255)),
    "binary_5": Kind("BINARY(5)", binary(5), "HEX({})", "hex"),
    "binary_255": Kind("BINARY(255)", binary(255), "HEX({})", "hex"),
    "varchar_63": Kind("VARCHAR(63)", text("aé€😀 ", 63)),
    "varchar_300": Kind("VARCHAR(300)", text("aé€😀 ", 300)),
    "varchar_utf8mb3": Kind("VARCHAR(20) CHARACTER SET utf8mb3", text("aé€ ", 20)),
    "varchar_sjis": Kind("VARCHAR(20) CHARACTER SET sjis", text("aアあ漢 ", 20)),
    "varchar_gbk": Kind("VARCHAR(20) CHARACTER SET gbk", text("a汉字 ", 20)),
    "varchar_utf16": Kind("VARCHAR(20) CHARACTER SET utf16", text("a€😀 ", 20)),
    "varchar_cp1251": Kind("VARCHAR(20) CHARACTER SET cp1251", text("aЖя ", 20)),
    "varbinary_20": Kind("VARBINARY(20)", binary(20), "HEX({})", "hex"),
    "varbinary_300": Kind("VARBINARY(300)", binary(300), "HEX({})", "hex"),
    **{
        f"{size}{kind}": Kind(f"{size}{kind}", binary(255) if kind == "blob" else text("aé€ ", 80),
                              *(("HEX({})", "hex") if kind == "blob" else ()))
        for size in ("tiny", "", "medium", "long")
        for kind in ("blob", "text")
    },
    "text_latin1": Kind("TEXT CHARACTER SET latin1", text(LATIN, 300)),
    "enum_few": Kind("ENUM('a', 'ü', '', 'with,comma')", either(
        integer(2, unsigned=True), one_of(4)), "CONCAT({})"),
    "enum_latin1": Kind("ENUM('a', 'ü') CHARACTER SET latin1", one_of(1, 2), "CONCAT({})"),
    "enum_many": Kind(
        f"ENUM({', '.join(repr(f'e{n}') for n in range(300))})", one_of(1, 255, 256, 300),
        "CONCAT({})"),
    **{
        f"set_{size}": Kind(f"SET({', '.join(repr(f's{n}') for n in range(size))})",
                            integer(size, unsigned=True), "CONCAT({})")
        for size in (1, 8, 9, 20, 33, 64)
    },
    "json": Kind("JSON", either(document, document, document, _SPECIAL_JSON),
                 "CAST({} AS CHAR)"),
    "json_second": Kind("JSON", document, "CAST({} AS CHAR)"),
    "point": Kind("POINT", one_of("POINT(1, -2.5)", "ST_GeomFromText('POINT(1 2)', 4326)"),
                  "HEX({})", "hex"),
    "geometry": Kind("GEOMETRY", one_of("ST_GeomFromText('LINESTRING(0 0,1 1,2 2)')",
                     "ST_GeomFromText('GEOMETRYCOLLECTION(POINT(1 1),LINESTRING(0 0,1 0))')"),
                     "HEX({})", "hex"),
    "vector": Kind("VECTOR(3)", one_of("TO_VECTOR('[1,-2.5,3e38]')", "TO_VECTOR('[0]')"),
                   "HEX({})", "hex"),
}  # fmt: skip


def names(kinds: Mapping[str, Kind]) -> str:
    return ", ".join(f"`{name}`" for name in kinds)


def create(name: str, kinds: Mapping[str, Kind] = KINDS) -> str:
    """Return the statement that creates a table with these columns behind its `id`."""
    columns = (f"`{column}` {kind.definition}" for column, kind in kinds.items())
    return f"CREATE TABLE {name} (id INT PRIMARY KEY, {', '.join(columns)})"


def row(rng: random.Random, kinds: Mapping[str, Kind] = KINDS) -> str:
    """Return the literals of one row without its `id`, some of them NULL."""
    nulls = rng.choice((0.0, 0.1, 1.0))
    return ", ".join(
        "NULL" if rng.random() < nulls else kind.literal(rng) for kind in kinds.values()
    )


LENIENT = "SET sql_mode = 'ALLOW_INVALID_DATES', time_zone = '+00:00'"


def shown(
    server: Server, table: str, kinds: Mapping[str, Kind] = KINDS
) -> dict[int, dict[str, Value]]:
    """Return what a SELECT says, by id and column."""
    expressions = ", ".join(kind.shown.format(f"`{name}`") for name, kind in kinds.items())
    found: dict[int, dict[str, Value]] = {}
    with closing(server.client()) as client, client.cursor() as cursor:
        cursor.execute(LENIENT)
        cursor.execute(f"SELECT id, {expressions} FROM {table}")
        for number, *values in cursor.fetchall():
            found[number] = {
                name: None if value is None else FROM_SERVER[kind.read](value)
                for (name, kind), value in zip(kinds.items(), values, strict=True)
            }
    return found


def logged(
    server: Server,
    statements: Sequence[str],
    database: str,
    answers: list[tuple[Any, ...]] | None = None,
) -> list[bytes]:
    """Run the statements on one connection and return the events that the server logs.

    Rows that they return go to `answers`.
    """
    server.sql("FLUSH BINARY LOGS")
    (name, *_), *_ = server.sql("SHOW BINARY LOG STATUS")
    with closing(server.client(database)) as client, client.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
            if answers is not None:
                answers += cursor.fetchall()
    server.sql("FLUSH BINARY LOGS")
    return list(events_of(Path(server.datadir / str(name))))


def row_events_of(
    events: Sequence[bytes], table: str = ""
) -> Iterator[tuple[TableMap, list[bytes]]]:
    """Yield each table map with the row events after it, those of `table` if it is named."""
    current: TableMap | None = None
    rows: list[bytes] = []
    for event in [*events, b"\0" * 19]:
        if event[4] in ROW_EVENTS:
            rows.append(event)
            continue
        if current is not None and rows and table in {"", current.table}:
            yield current, rows
        rows = []
        if event[4] == EventType.TABLE_MAP_EVENT:
            current = parse_table_map(event)


def changes_of(events: Sequence[bytes], table: str = "") -> list[tuple[RowDecoder, RowChange]]:
    """Return every row of a table, each with its decoder."""
    found = []
    for table_map, rows in row_events_of(events, table):
        decoder = RowDecoder(table_map)
        found += [(decoder, change) for event in rows for change in decoder.changes(event)]
    return found


def named(decoder: RowDecoder, image: RowImage | None) -> dict[str, Value]:
    """Return an image's values by the names of their columns."""
    if image is None:
        return {}
    return {
        decoder.formats[index].name: value
        for index, value in zip(image.columns, image.values, strict=True)
    }

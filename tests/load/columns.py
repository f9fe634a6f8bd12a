"""Every column type that MySQL has, with values for it: the extremes, the odd and the ordinary.

WIDE holds the tables made of them. All columns may be NULL, so that an INSERT can name any of
them. Values are SQL literals that mean the same under any SQL mode but for zero dates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

Literal = Callable[[Random], str]


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name, its type with attributes, and what makes a literal for it."""

    name: str
    declaration: str
    literal: Literal


def _choice(values: Sequence[str]) -> Literal:
    return lambda rng: rng.choice(values)


def _number(low: int, high: int) -> Literal:
    extremes = (str(low), str(high), "0", "1")

    def literal(rng: Random) -> str:
        return rng.choice(extremes) if rng.random() < 0.3 else str(rng.randint(low, high))

    return literal


def _integers() -> list[Column]:
    columns = []
    for kind, bits in (
        ("TINYINT", 8),
        ("SMALLINT", 16),
        ("MEDIUMINT", 24),
        ("INT", 32),
        ("BIGINT", 64),
    ):
        signed = _number(-(1 << bits - 1), (1 << bits - 1) - 1)
        columns.append(Column(f"{kind.lower()}_s", kind, signed))
        columns.append(Column(f"{kind.lower()}_u", f"{kind} UNSIGNED", _number(0, (1 << bits) - 1)))
    return columns


def _decimal(digits: int, scale: int) -> Literal:
    top = 10**digits - 1

    def literal(rng: Random) -> str:
        number = rng.choice((top, 0, 1)) if rng.random() < 0.3 else rng.randint(0, top)
        text = str(number).rjust(scale + 1, "0")
        sign = rng.choice(("", "-"))
        return f"{sign}{text[:-scale]}.{text[-scale:]}" if scale else sign + text

    return literal


def _real(extremes: Sequence[str], magnitude: float) -> Literal:
    def literal(rng: Random) -> str:
        if rng.random() < 0.3:
            return rng.choice(extremes)
        return f"{rng.uniform(-magnitude, magnitude):.16e}"

    return literal


def _bits(width: int) -> Literal:
    return lambda rng: f"b'{rng.getrandbits(width):0{width}b}'"


def _time(fraction: int) -> Literal:
    def literal(rng: Random) -> str:
        if rng.random() < 0.2:
            return rng.choice(("'838:59:59'", "'-838:59:59'", "'00:00:00'", "'-00:00:01'"))
        sign = rng.choice(("", "-"))
        clock = f"{rng.randrange(800)}:{rng.randrange(60):02}:{rng.randrange(60):02}"
        return f"'{sign}{clock}{_fraction(rng, fraction)}'"

    return literal


def _moment(extremes: Sequence[str], years: tuple[int, int], fraction: int) -> Literal:
    def literal(rng: Random) -> str:
        if rng.random() < 0.2:
            return rng.choice(extremes)
        day = f"{rng.randint(*years):04}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
        clock = f"{rng.randrange(24):02}:{rng.randrange(60):02}:{rng.randrange(60):02}"
        return f"'{day} {clock}{_fraction(rng, fraction)}'"

    return literal


def _fraction(rng: Random, digits: int) -> str:
    return f".{rng.randrange(10**digits):0{digits}}" if digits else ""


def text(value: str) -> str:
    """Return a literal of a text that no SQL mode and no character set of the client changes."""
    return f"_utf8mb4 x'{value.encode().hex()}'"


def binary(value: bytes) -> str:
    """Return a literal of a byte string."""
    return f"x'{value.hex()}'"


PLAIN: Final = ("", "a", "A", "ordinary words", "trailing  ", "it's \"quoted\" `so`", "back\\slash",
                "nul\0inside", "tab\tand\nline", "%_ like", "0", "NULL")  # fmt: skip


def _text(longest: int, *special: str) -> Literal:
    """Return a maker of texts of up to `longest` characters, with the special ones among them."""
    words = [word[:longest] for word in (*PLAIN, *special, *special)]
    long = [(word * longest)[:longest] for word in ("x", *special)]

    def literal(rng: Random) -> str:
        if rng.random() < 0.1:
            return text(rng.choice(long)[: rng.randint(0, longest)])
        return text(rng.choice(words))

    return literal


def _bytes(longest: int) -> Literal:
    def literal(rng: Random) -> str:
        if rng.random() < 0.2:
            return binary(rng.choice((b"", b"\0", b"\xff" * longest, b"\0" * longest, b" ")))
        return binary(rng.randbytes(rng.randint(0, min(longest, 64))))

    return literal


def _document(rng: Random) -> str:
    """Return a JSON document as a literal: of every kind of value that JSON columns hold."""
    if rng.random() < 0.25:
        return rng.choice(
            (
                "CAST('null' AS JSON)",
                "CAST('[]' AS JSON)",
                "CAST('{}' AS JSON)",
                "CAST('\"text\"' AS JSON)",
                "CAST('-9223372036854775808' AS JSON)",
                "CAST('18446744073709551615' AS JSON)",
                "CAST(1.25 AS JSON)",
                "CAST(1e300 AS JSON)",
                "CAST(CAST('2024-02-29 12:34:56.789012' AS DATETIME(6)) AS JSON)",
                "CAST(CAST('-12:34:56.5' AS TIME(1)) AS JSON)",
                "JSON_OBJECT('blob', x'00ff', 'day', CAST('2024-02-29' AS DATE), 'd', 0.10)",
                "JSON_ARRAY(TRUE, FALSE, NULL, 1, -1, 1.5E0, JSON_OBJECT('a', JSON_ARRAY(1)))",
            )
        )
    padding = "ü" * rng.randrange(200)
    return (
        f"JSON_OBJECT('number', {rng.randrange(1000)}, 'name', {text('é😀 ' + padding)},"
        f" 'tags', JSON_ARRAY({rng.randrange(50)}, {rng.randrange(50)}),"
        f" 'inner', JSON_OBJECT('a', {rng.randrange(10)}, 'b', REPEAT('b', {rng.randrange(300)})))"
    )


def _shape(*texts: str, srid: int = 0) -> Literal:
    """Return a maker of geometries from well-known texts, in which `?` stands for a number."""

    def literal(rng: Random) -> str:
        shape = rng.choice(texts)
        while "?" in shape:
            shape = shape.replace("?", f"{rng.uniform(-80, 80):.6f}", 1)
        return f"ST_GeomFromText('{shape}', {srid})"

    return literal


SQUARE: Final = "(0 0, 10 0, 10 10, 0 10, 0 0)"
SHAPES: Final = {
    "point": ("POINT(? ?)",),
    "linestring": ("LINESTRING(? ?, ? ?)", "LINESTRING(? ?, ? ?, ? ?, ? ?)"),
    "polygon": (f"POLYGON({SQUARE})", f"POLYGON({SQUARE}, (2 2, 4 2, 4 4, 2 4, 2 2))"),
    # Without brackets around each point, which MariaDB does not understand.
    "multipoint": ("MULTIPOINT(? ?, ? ?)",),
    "multilinestring": ("MULTILINESTRING((? ?, ? ?), (? ?, ? ?))",),
    "multipolygon": (f"MULTIPOLYGON(({SQUARE}), ((20 20, 30 20, 30 30, 20 20)))",),
    "geometrycollection": (
        "GEOMETRYCOLLECTION(POINT(? ?), LINESTRING(? ?, ? ?))",
        "GEOMETRYCOLLECTION EMPTY",
    ),
}


def _vector(most: int) -> Literal:
    def literal(rng: Random) -> str:
        numbers = (f"{rng.uniform(-1, 1):.7g}" for _ in range(rng.randint(1, most)))
        return f"TO_VECTOR('[{','.join(numbers)}]')"

    return literal


FAR: Final = ("'1000-01-01 00:00:00'", "'9999-12-31 23:59:59'", "'2024-02-29 00:00:00'")
# Under any time zone that the load sets these are in the range of TIMESTAMP.
NEAR: Final = ("'1970-01-03 00:00:00'", "'2038-01-17 03:14:07'", "'2024-02-29 00:00:00'")

NUMBERS: Final = (
    *_integers(),
    Column("filled", "INT(10) UNSIGNED ZEROFILL", _number(0, 2**32 - 1)),
    Column("truth", "BOOLEAN", _choice(("TRUE", "FALSE"))),
    Column("dec_small", "DECIMAL(5,2)", _decimal(5, 2)),
    Column("dec_large", "DECIMAL(65,30)", _decimal(65, 30)),
    Column("dec_whole", "DECIMAL(10,0) UNSIGNED", _number(0, 10**10 - 1)),
    Column("real_single", "FLOAT", _real(("3.402823E38", "-1.175494E-38", "-0E0", "0.1E0"), 1e6)),
    Column("real_fixed", "FLOAT(7,4)", _real(("999.9999", "0.0001"), 999.0)),
    Column(
        "real_double",
        "DOUBLE",
        _real(("1.7976931348623157E308", "2.2250738585072014E-308", "-0E0", "0.1E0"), 1e12),
    ),
    Column("real_scaled", "DOUBLE(20,3)", _real(("99999999999999999.999",), 1e10)),
    Column("bit_1", "BIT(1)", _bits(1)),
    Column("bit_13", "BIT(13)", _bits(13)),
    Column("bit_64", "BIT(64)", _bits(64)),
)

TIMES: Final = (
    Column("day", "DATE", lambda rng: _moment(FAR, (1000, 9999), 0)(rng)[:11] + "'"),
    *(Column(f"time_{n}", f"TIME({n})", _time(n)) for n in (0, 1, 3, 6)),
    *(Column(f"datetime_{n}", f"DATETIME({n})", _moment(FAR, (1000, 9998), n)) for n in range(7)),
    *(
        Column(f"timestamp_{n}", f"TIMESTAMP({n}) NULL", _moment(NEAR, (1971, 2037), n))
        for n in (0, 2, 5, 6)
    ),
    Column("year_", "YEAR", _choice(("0", "1901", "2024", "2155"))),
)

# A character set, and a word of it that is not ASCII.
CHARACTER_SETS: Final = (
    ("latin1", "éß€ÿ"),
    ("latin2", "łžő"),
    ("latin5", "ğış"),
    ("ascii", "~"),
    ("cp1250", "łžő"),
    ("cp1251", "жук"),
    ("koi8r", "жук"),
    ("greek", "αβγ"),
    ("hebrew", "אבג"),
    ("tis620", "กขค"),
    ("gbk", "中文縗"),
    ("gb2312", "中文"),
    ("gb18030", "中文😀"),
    ("big5", "中文功"),
    ("sjis", "日本ソ"),
    ("cp932", "日本ソ"),
    ("ujis", "日本語"),
    ("eucjpms", "日本語"),
    ("euckr", "한국"),
    ("ucs2", "é中"),
    ("utf16", "é中😀"),
    ("utf16le", "é中😀"),
    ("utf32", "é中😀"),
    ("utf8mb3", "é中"),
)
ANY: Final = ("é中😀", "👩‍👩‍👧", "İıſß")

TEXTS: Final = (
    Column("char_0", "CHAR(0)", lambda _: "''"),
    Column("char_10", "CHAR(10)", _text(10, *ANY)),
    Column("char_255", "CHAR(255) COLLATE utf8mb4_bin", _text(255, *ANY)),
    Column("varchar_20", "VARCHAR(20)", _text(20, *ANY)),
    Column("varchar_300", "VARCHAR(300) COLLATE utf8mb4_ja_0900_as_cs", _text(300, *ANY)),
    Column("tiny_", "TINYTEXT", _text(60, *ANY)),
    Column("text_", "TEXT", _text(900, *ANY)),
    Column("medium_", "MEDIUMTEXT CHARACTER SET utf16", _text(900, *ANY)),
    Column("long_", "LONGTEXT CHARACTER SET gbk", _text(900, "中文")),
    Column("enum_", "ENUM('', 'one', 'two', 'drei', 'é😀')", _choice(("''", "'one'", "2", "5"))),
    Column(
        "enum_many",
        f"ENUM({', '.join(repr(f'm{n}') for n in range(300))}) CHARACTER SET latin1",
        lambda rng: f"'m{rng.randrange(300)}'",
    ),
    Column("set_", "SET('a', 'b', 'c', 'ü')", _choice(("''", "'a'", "'a,c'", "'a,b,c,ü'", "8"))),
    Column(
        "set_many",
        f"SET({', '.join(repr(f'm{n}') for n in range(64))})",
        lambda rng: str(rng.getrandbits(63)),
    ),
)

CHARSETS: Final = (
    *tuple(
        Column(f"in_{name}", f"VARCHAR(20) CHARACTER SET {name}", _text(20, word))
        for name, word in CHARACTER_SETS
    ),
    Column("char_gbk", "CHAR(8) CHARACTER SET gbk", _text(8, "中文")),
)

BYTES: Final = (
    Column("binary_5", "BINARY(5)", _bytes(5)),
    Column("binary_255", "BINARY(255)", _bytes(255)),
    Column("varbinary_20", "VARBINARY(20)", _bytes(20)),
    Column("varbinary_1000", "VARBINARY(1000)", _bytes(1000)),
    Column("varchar_bytes", "VARCHAR(20) CHARACTER SET binary", _bytes(20)),
    Column("tiny_", "TINYBLOB", _bytes(255)),
    Column("blob_", "BLOB", _bytes(3000)),
    Column("medium_", "MEDIUMBLOB", _bytes(9000)),
    Column("long_", "LONGBLOB", _bytes(20000)),
)

DOCUMENTS: Final = (
    Column("js", "JSON", _document),
    Column("js_list", "JSON DEFAULT (JSON_ARRAY())", _document),
    Column("vector_3", "VECTOR(3)", _vector(3)),
    Column("vector_any", "VECTOR", _vector(40)),
    Column("geometry_", "GEOMETRY", _shape(*(text for texts in SHAPES.values() for text in texts))),
    *(Column(f"{kind}_", kind.upper(), _shape(*texts)) for kind, texts in SHAPES.items()),
    Column("place", "POINT SRID 4326", _shape("POINT(? ?)", srid=4326)),
)

WIDE: Final[dict[str, tuple[Column, ...]]] = {
    "numbers": NUMBERS,
    "times": TIMES,
    "texts": TEXTS,
    "charsets": CHARSETS,
    "bytes_": BYTES,
    "documents": DOCUMENTS,
}

"""JSON documents of row images as SQL expressions that make the same document again.

Its text alone would lose types that JSON does not have: unsigned integers, decimals, dates, bytes;
and a server reads a floating-point number of a text less exactly than one of a statement. Documents
with any of these are built by functions, all others from their text.

A value of a type that JSON does not have (opaque) keeps the type of the column or expression that
it came from, and documents that differ in nothing else are not equal. No function returns BIT,
TIMESTAMP, BINARY or a BLOB of each size; columns of JSON_TABLE have them (since MySQL 8.0.4).
"""

from typing import Final

from mtsd.apply.sql import literals
from mtsd.binlog.values.column_type import ColumnType
from mtsd.binlog.values.json_binary import (
    DOUBLE,
    INT64,
    LARGE_ARRAY,
    LARGE_OBJECT,
    LITERAL,
    OPAQUE,
    STRING,
    UINT16,
    UINT32,
    UINT64,
    JsonDocument,
    json_text,
)
from mtsd.model.errors import NotSupportedError

_UNSIGNED: Final = frozenset({UINT16, UINT32, UINT64})
_TYPED: Final = frozenset({*_UNSIGNED, INT64, DOUBLE, OPAQUE})
"""Types of values that are not those of their text: a large integer is unsigned in a text."""
_CASTS: Final = {
    ColumnType.DATE.value: b"DATE",
    ColumnType.TIME.value: b"TIME(6)",
    ColumnType.DATETIME.value: b"DATETIME(6)",
}
_OF_TEXT: Final = frozenset({*_CASTS, ColumnType.NEWDECIMAL.value, ColumnType.TIMESTAMP.value})
_BLOBS: Final = {
    ColumnType.TINY_BLOB.value: b"TINYBLOB",
    ColumnType.BLOB.value: b"BLOB",
    ColumnType.MEDIUM_BLOB.value: b"MEDIUMBLOB",
    ColumnType.LONG_BLOB.value: b"LONGBLOB",
}
_MAX_BITS: Final = 64
_LONGEST_BINARY: Final = 255
_LONGEST_VARBINARY: Final = 0xFFFF


def json_literal(raw: bytes) -> bytes:
    """Return an expression for a document in binary form.

    Raises BinlogError if it is damaged, NotSupportedError if it has a value that no expression
    makes.
    """
    if not raw:
        return b"CAST('null' AS JSON)"
    if _is_plain(JsonDocument(raw), raw[0], 1, 0):
        return _of_text(json_text(raw))
    value = _expression(JsonDocument(raw), raw[0], 1, 0)
    if raw[0] <= LARGE_ARRAY:
        return value
    return b"JSON_EXTRACT(JSON_ARRAY(%b),'$[0]')" % value


def _of_text(text: str) -> bytes:
    return b"CAST(_utf8mb4 %b AS JSON)" % literals.text(text)


def _is_plain(document: JsonDocument, kind: int, at: int, depth: int) -> bool:
    """Return whether a value's text is all that there is to it."""
    if kind > LARGE_ARRAY:
        return kind not in _TYPED
    width = 4 if kind & 1 else 2
    count, _, values = document.entries(kind, at, depth)
    return all(
        _is_plain(document, *document.element(values + index * (1 + width), at, width), depth + 1)
        for index in range(count)
    )


def _expression(document: JsonDocument, kind: int, at: int, depth: int) -> bytes:
    if kind > LARGE_ARRAY:
        return _scalar(document, kind, at)
    width = 4 if kind & 1 else 2
    count, keys, values = document.entries(kind, at, depth)
    parts: list[bytes] = []
    for index in range(count):
        if kind <= LARGE_OBJECT:
            key = document.key(keys + index * (width + 2), at, width)
            parts.append(b"_utf8mb4 " + literals.blob(key))
        element, place = document.element(values + index * (1 + width), at, width)
        parts.append(_expression(document, element, place, depth + 1))
    name = b"JSON_OBJECT" if kind <= LARGE_OBJECT else b"JSON_ARRAY"
    return b"%b(%b)" % (name, b",".join(parts))


def _scalar(document: JsonDocument, kind: int, at: int) -> bytes:
    if kind == OPAQUE:
        return _opaque(document, at)
    text = document.scalar(kind, at)
    if kind in {STRING, LITERAL}:
        return _of_text(text)
    if kind == DOUBLE:
        return double_literal(float(text))
    if kind in _UNSIGNED:
        return b"CAST(%b AS UNSIGNED)" % text.encode()
    return text.encode()


def _opaque(document: JsonDocument, at: int) -> bytes:
    kind = document.raw[at]
    start, end = document.sized(at + 1)
    raw = document.raw[start:end]
    if kind in _OF_TEXT:
        # One that has not counted these bytes yet.
        text = JsonDocument(document.raw).scalar(OPAQUE, at).strip('"').encode()
        if kind == ColumnType.NEWDECIMAL.value:
            return _decimal(text, raw[0], raw[1])
        if kind == ColumnType.TIMESTAMP.value:
            return _from_column(b"TIMESTAMP(6)", b"'\"%b\"'" % text, b"$")
        return b"CAST('%b' AS %b)" % (text, _CASTS[kind])
    if kind == ColumnType.BIT.value and 0 < 8 * len(raw) <= _MAX_BITS:
        return _from_column(b"BIT(%d)" % (8 * len(raw)), b"'%d'" % int.from_bytes(raw), b"$")
    if kind == ColumnType.VARCHAR.value and len(raw) <= _LONGEST_VARBINARY:
        return literals.blob(raw)
    if kind == ColumnType.STRING.value and len(raw) <= _LONGEST_BINARY:
        return _from_bytes(b"BINARY(%d)" % len(raw), raw)
    if kind in _BLOBS:
        return _from_bytes(_BLOBS[kind], raw)
    raise NotSupportedError(
        f"a JSON document has {len(raw)} bytes of the column type {_type_name(kind)}, which no"
        " expression makes (older servers wrote such documents): write the document again on the"
        ' source, or set [target] apply_mode = "binlog", which passes it on as it is'
    )


def _decimal(text: bytes, digits: int, scale: int) -> bytes:
    """Return a DECIMAL that is kept with this number of digits, `scale` of them a fraction's."""
    if scale and len(text.lstrip(b"-")) == digits + 1:
        return text
    # By itself, a whole one would be an integer; a column's have as many digits as it may have.
    return _from_column(b"DECIMAL(%d,%d)" % (digits, scale), b"'\"%b\"'" % text, b"$")


def _from_bytes(column: bytes, raw: bytes) -> bytes:
    return _from_column(column, b"JSON_ARRAY(%b)" % literals.blob(raw), b"$[0]")


def _from_column(column: bytes, document: bytes, path: bytes) -> bytes:
    """Return an expression for what a column of this type holds of a document.

    What the column cannot hold is an error, and never NULL.
    """
    return (
        b"(SELECT CAST(v AS JSON) FROM JSON_TABLE(%b,'%b' COLUMNS"
        b"(v %b PATH '$' ERROR ON EMPTY ERROR ON ERROR)) AS o)" % (document, path, column)
    )


def _type_name(kind: int) -> str:
    try:
        return ColumnType(kind).name
    except ValueError:
        return str(kind)


def double_literal(value: float) -> bytes:
    """Return a floating-point number that a server reads as exactly this one."""
    text = repr(value)
    return (text if "e" in text else f"{text}e0").encode()

"""JSON documents of row images as SQL expressions that make the same document again.

Its text alone would lose types that JSON does not have: unsigned integers, decimals, dates, bytes;
and a server reads a floating-point number of a text less exactly than one of a statement. Documents
with any of these are built by functions, all others from their text.
"""

from typing import Final

from mtsd.binlog.column_type import ColumnType
from mtsd.binlog.json_binary import (
    DOUBLE,
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
from mtsd.target import literals

_TYPED: Final = frozenset({UINT16, UINT32, UINT64, DOUBLE, OPAQUE})
_CASTS: Final = {
    ColumnType.DATE.value: b"DATE",
    ColumnType.TIME.value: b"TIME(6)",
    ColumnType.DATETIME.value: b"DATETIME(6)",
    ColumnType.TIMESTAMP.value: b"DATETIME(6)",
}


def json_literal(raw: bytes) -> bytes:
    """Return an expression for a document in binary form; BinlogError if it is damaged."""
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
    if kind in _TYPED:
        return b"CAST(%b AS UNSIGNED)" % text.encode()
    return text.encode()


def _opaque(document: JsonDocument, at: int) -> bytes:
    kind = document.raw[at]
    start, end = document.sized(at + 1)
    raw = document.raw[start:end]
    # One that has not counted these bytes yet.
    text = JsonDocument(document.raw).scalar(OPAQUE, at)
    if kind == ColumnType.NEWDECIMAL.value:
        return text.encode()
    if kind in _CASTS:
        return b"CAST('%b' AS %b)" % (text.strip('"').encode(), _CASTS[kind])
    if kind == ColumnType.STRING.value:
        return b"CAST(%b AS BINARY(%d))" % (literals.blob(raw), len(raw))
    return literals.blob(raw)


def double_literal(value: float) -> bytes:
    """Return a floating-point number that a server reads as exactly this one."""
    text = repr(value)
    return (text if "e" in text else f"{text}e0").encode()

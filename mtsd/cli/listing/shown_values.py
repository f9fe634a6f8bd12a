"""The values of rows as they are listed: text for people, or JSON.

What the binary log does not tell enough about, and what is no value of its type, is listed as bytes
with a note: a listing is for looking at trouble.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from math import isfinite
from typing import Final, TypeAlias

from mtsd.binlog.bytes.character_sets import BINARY, text_decoder
from mtsd.binlog.bytes.packed_decimal import packed_size, unpack_decimal
from mtsd.binlog.events.mariadb_compressed import uncompressed_value
from mtsd.binlog.values.column_format import ColumnFormat
from mtsd.binlog.values.column_type import ColumnType
from mtsd.binlog.values.column_values import Convert, Value, converter
from mtsd.binlog.values.json_binary import json_text
from mtsd.binlog.values.json_diff import JsonOperation, parse_json_diffs
from mtsd.cli.output import json_of, printable
from mtsd.model.errors import BinlogError, NotSupportedError
from mtsd.model.step import UserVar, UserVarType

_T = ColumnType
_INTEGERS: Final = frozenset({_T.TINY, _T.SHORT, _T.INT24, _T.LONG, _T.LONGLONG})
_TEXTS: Final = frozenset({_T.STRING, _T.VARCHAR, _T.VAR_STRING, _T.BLOB})
_SINGLE: Final = struct.Struct("<f")
LONGEST: Final = 1000
"""Characters of a value or of a statement that are listed for people."""


@dataclass(frozen=True, slots=True)
class Document:
    """A JSON document, as text."""

    text: str


@dataclass(frozen=True, slots=True)
class DocumentChange:
    """One change of a partial JSON update; `value` is JSON text, empty for a removal."""

    operation: str
    path: str
    value: str


@dataclass(frozen=True, slots=True)
class DocumentChanges:
    """A partial update of a JSON document, which itself is not in the event."""

    changes: tuple[DocumentChange, ...]


@dataclass(frozen=True, slots=True)
class Unsure:
    """Bytes whose value is not known, and why; `text` is what they are if they are UTF-8."""

    raw: bytes
    note: str
    text: str | None = None


Shown: TypeAlias = int | float | str | bytes | Decimal | Document | DocumentChanges | Unsure | None
"""A value of a row; None is NULL."""
Show: TypeAlias = Callable[[bytes], Shown]
"""From the bytes of a value, which is not NULL; it raises nothing."""


def show_of(column: ColumnFormat) -> Show:
    """Return what makes values of a column's bytes."""
    if column.compressed:
        return partial(_uncompressed, show_of(replace(column, compressed=False)))
    kind = column.type
    if kind in _INTEGERS and column.unsigned is None:
        return _integer
    if kind in _TEXTS and column.collation is None:
        return _text
    if kind in {_T.ENUM, _T.SET} and (not column.members or column.collation is None):
        return _number
    if kind is _T.FLOAT:
        return _single
    try:
        convert = converter(column)
    except NotSupportedError as error:
        return partial(Unsure, note=_without(column, error))
    return partial(_document if kind is _T.JSON else _converted, convert, column)


def changes_of_document(raw: bytes) -> Shown:
    """Return the changes of a partial JSON update."""
    try:
        return DocumentChanges(
            tuple(
                DocumentChange(
                    diff.operation.name.lower(),
                    diff.path,
                    "" if diff.operation is JsonOperation.REMOVE else json_text(diff.value),
                )
                for diff in parse_json_diffs(raw)
            )
        )
    except BinlogError as error:
        return Unsure(raw, str(error))


def value_of_variable(variable: UserVar) -> Shown:
    """Return the value of a user variable."""
    raw = variable.raw
    if raw is None:
        return None
    if variable.type is UserVarType.STRING and variable.collation == BINARY:
        return raw
    try:
        if variable.type is UserVarType.STRING:
            return text_decoder(variable.collation)(raw)
        if variable.type is not UserVarType.DECIMAL:
            return variable.number()
        if len(raw) < 3 or len(raw) - 2 != packed_size(raw[0], raw[1]):
            return Unsure(raw, "not a DECIMAL")
        return unpack_decimal(raw[2:], raw[0], raw[1])
    except (BinlogError, NotSupportedError) as error:
        return Unsure(raw, str(error))


def as_text(value: Shown) -> str:
    """Return a value for people, on one line; what is long is cut off, with its length."""
    match value:
        case None:
            return "NULL"
        case str():
            return _quoted(value)
        case bytes():
            return _hex(value)
        case Document(text):
            return _cut(text)
        case DocumentChanges(changes):
            text = ", ".join(map(_change, changes))
            return f"partial update ({_cut(text)})"
        case Unsure(raw, note, text):
            why = printable(note) if text is None else f"as UTF-8: {_quoted(text)}"
            return f"{_hex(raw)} ({why})"
        case Decimal():
            return f"{value:f}"
        case _:
            return repr(value)


def as_json(value: Shown) -> str:
    """Return a value as JSON text.

    DECIMAL is a number with all its digits; bytes are {"hex": …}, with a "note" if their value is
    not known; a partial update of a document is {"changes": …}.
    """
    match value:
        case Document(text):
            return text
        case DocumentChanges(changes):
            return f'{{"changes": [{", ".join(map(_json_change, changes))}]}}'
        case bytes():
            return f'{{"hex": "{value.hex()}"}}'
        case Unsure(raw, note, text):
            known = {"hex": raw.hex(), "note": note}
            return json_of(known if text is None else known | {"utf8": text})
        case Decimal():
            return f"{value:f}"
        case _:
            return json_of(value)


def named(name: str) -> str:
    """Return a name as it is listed: in backquotes if it contains anything special."""
    plain = name.replace("_", "a").replace("$", "a").replace("@", "a")
    return name if plain.isalnum() else f"`{printable(name.replace('`', '``'))}`"


def _uncompressed(show: Show, raw: bytes) -> Shown:
    try:
        return show(uncompressed_value(raw))
    except BinlogError as error:
        return Unsure(raw, str(error))


def _converted(convert: Convert, column: ColumnFormat, raw: bytes) -> Shown:
    try:
        value: Value = convert(raw)
    except BinlogError as error:
        return Unsure(raw, _without(column, error))
    if isinstance(value, tuple):
        return changes_of_document(raw)
    if isinstance(value, float) and not isfinite(value):
        return Unsure(raw, "not a number of SQL")
    return value


def _document(convert: Convert, column: ColumnFormat, raw: bytes) -> Shown:
    value = _converted(convert, column, raw)
    return Document(value) if isinstance(value, str) else value


def _single(raw: bytes) -> Shown:
    """Return the shortest number that is the same single-precision one."""
    value: float = _SINGLE.unpack(raw)[0]
    if not isfinite(value):
        return Unsure(raw, "not a number of SQL")
    for digits in range(6, 9):
        shorter = float(f"{value:.{digits}g}")
        try:
            if _SINGLE.pack(shorter) == raw:
                return shorter
        except OverflowError:
            continue
    return float(f"{value:.9g}")


def _number(raw: bytes) -> Shown:
    return int.from_bytes(raw, "little")


def _integer(raw: bytes) -> Shown:
    """Return an integer that may be signed or not."""
    value = int.from_bytes(raw, "little")
    if raw[-1] < 0x80:
        return value
    signed = value - (1 << 8 * len(raw))
    return Unsure(raw, f"{signed}, or {value} if UNSIGNED: the log does not tell")


def _text(raw: bytes) -> Shown:
    """Return what may be text of any character set, or bytes."""
    note = "the log does not tell the character set"
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return Unsure(raw, note)
    return Unsure(raw, note, text)


def _without(column: ColumnFormat, error: BinlogError | NotSupportedError) -> str:
    """Return an error's text without the column that it begins with."""
    return str(error).removeprefix(f"{column.where}: ")


def _quoted(text: str) -> str:
    shown = printable(text[:LONGEST].replace("\\", "\\\\").replace("'", "\\'"))
    return _mark(f"'{shown}'", len(text), LONGEST, "characters")


def _hex(raw: bytes) -> str:
    return _mark(f"x'{raw[: LONGEST // 2].hex()}'", len(raw), LONGEST // 2, "bytes")


def _cut(text: str) -> str:
    return _mark(printable(text[:LONGEST]), len(text), LONGEST, "characters")


def _mark(shown: str, size: int, limit: int, unit: str) -> str:
    return shown if size <= limit else f"{shown}… ({size} {unit})"


def _change(change: DocumentChange) -> str:
    value = f" {change.value}" if change.value else ""
    return f"{change.operation} {change.path}{value}"


def _json_change(change: DocumentChange) -> str:
    value = f', "value": {change.value}' if change.value else ""
    return f'{{"operation": "{change.operation}", "path": {json_of(change.path)}{value}}}'

"""JSON documents as an array of their texts: documents of one shape at once.

Most documents of a column have the same keys and types, and differ in their values. So one of them
stands for all that have its shape (the same bytes but for sizes, offsets and values): its members
become columns, each turned into text at once, and these are joined between the keys. Documents that
have no company are decoded one by one (`mtsd.binlog.json_binary`, where the form is described).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from mtsd.binlog.column_format import ColumnFormat
from mtsd.binlog.json_binary import (
    DEEPEST,
    DOUBLE,
    INT16,
    LARGE_ARRAY,
    LARGE_OBJECT,
    LITERAL,
    LITERALS,
    STRING,
    UINT64,
    JsonDocument,
    is_inlined,
    json_text,
)
from mtsd.binlog.json_number import double_text
from mtsd.model.errors import BinlogError
from mtsd.spark.json_strings import quoted
from mtsd.spark.lockstep import Buffer, Places, Slots
from mtsd.spark.number_arrays import array_of
from mtsd.spark.text_arrays import binary_array, with_validity

_COMPANY: Final = 16
"""Documents of one shape that are worth it."""
_MOST_MISSES: Final = 4
"""Shapes in a row without company: then the others are taken one by one."""
_LARGEST_HEADER: Final = 4096
_EMPTY: Final = np.zeros(0, np.int64)


def json_array(buffer: Buffer, slots: Slots, column: ColumnFormat) -> pa.Array:
    """Return the documents' texts. BinlogError where one is cut off or not of its form."""
    count = len(slots)
    if not count:
        return pa.array([], pa.string())
    # NULLs have no bytes, as the null of a new column NOT NULL: both read as the text "null".
    full = np.flatnonzero(slots.sizes)
    try:
        documents = _Documents(buffer, slots.starts[full], slots.starts[full] + slots.sizes[full])
        found = documents.texts()
    except BinlogError as error:
        raise BinlogError(f"{column.where}: {error}") from error
    if len(full) < count:
        places = np.full(count, len(full), np.int32)
        places[full] = np.arange(len(full), dtype=np.int32)
        found = pa.concat_arrays([found, pa.array(["null"], pa.string())]).take(pa.array(places))
    return with_validity(found, slots.valid)


@dataclass(frozen=True, slots=True)
class _Values:
    """Values of one type, each of another document: where it begins, and whose it is."""

    kind: int
    at: Places
    rows: Places
    """By the number of the document."""

    def __getitem__(self, chosen: npt.NDArray[np.integer] | npt.NDArray[np.bool_]) -> "_Values":
        return _Values(self.kind, self.at[chosen], self.rows[chosen])


class _Documents:
    """Documents that are being read."""

    def __init__(self, buffer: Buffer, starts: Places, ends: Places) -> None:
        self._buffer = buffer
        self._starts = starts
        self._ends = ends
        self._left = ends - starts
        """Bytes that no value has claimed, as in `JsonDocument`."""

    def texts(self) -> pa.Array:
        kinds = self._buffer.data[self._starts]
        rows = np.arange(len(kinds))
        parts: list[tuple[Places, pa.Array]] = []
        for kind in np.unique(kinds).tolist():
            mine = np.flatnonzero(kinds == kind)
            parts.append((mine, self._values(_Values(kind, self._starts[mine] + 1, rows[mine]), 0)))
        return _assembled(parts, len(kinds))

    def _values(self, values: _Values, depth: int) -> pa.Array:
        """Return the texts of values of one type."""
        kind = values.kind
        if kind <= LARGE_ARRAY:
            return self._containers(values, depth)
        if kind == STRING:
            return self._strings(values)
        if kind == DOUBLE:
            self._within(values, values.at + 8)
            return _doubles(self._buffer.numbers("<u8", values.at).view("<f8"))
        if kind == LITERAL:
            return self._literals(values)
        if INT16 <= kind <= UINT64:
            size = 2 << ((kind - INT16) >> 1)
            self._within(values, values.at + size)
            return self._integers(values.at, size, signed=bool(kind & 1))
        return self._one_by_one(values)

    def _containers(self, values: _Values, depth: int) -> pa.Array:
        if depth > DEEPEST:
            raise BinlogError(f"JSON: more than {DEEPEST} levels")
        parts: list[tuple[Places, pa.Array]] = []
        remaining = np.arange(len(values.at))
        misses = 0
        while len(remaining) >= _COMPANY and misses < _MOST_MISSES:
            example = len(remaining) // 2
            shape = self._shape(values, int(remaining[example]))
            if shape is None:
                alike = np.zeros(len(remaining), np.bool_)
                alike[example] = True
            else:
                alike = shape.alike(self._buffer, values.at[remaining])
            members = remaining[alike]
            if shape is None or len(members) < _COMPANY:
                misses += 1
                # Another one stands for the rest in the next round.
                parts.append((members, self._alone(values[members])))
            else:
                misses = 0
                parts.append((members, self._of_shape(values[members], shape, depth)))
            remaining = remaining[~alike]
        if len(remaining):
            parts.append((remaining, self._alone(values[remaining])))
        return _assembled(parts, len(values.at))

    def _shape(self, values: _Values, example: int) -> "_Shape | None":
        """Return the shape of one object or array; None where it is too large to be common."""
        at, row = int(values.at[example]), int(values.rows[example])
        raw = self._buffer.raw[at : min(at + _LARGEST_HEADER, int(self._ends[row]))]
        try:
            return _Shape(values.kind, raw)
        except BinlogError:
            # Too large, or damaged, which is found where it is read by itself.
            return None

    def _of_shape(self, values: _Values, shape: "_Shape", depth: int) -> pa.Array:
        width = shape.width
        sizes = self._buffer.lengths(width, values.at + width)
        self._within(values, values.at + sizes)
        if (sizes < shape.size).any():
            raise BinlogError(f"JSON: an object or array of less than {shape.size} bytes")
        self._claim(values.rows, shape.size)
        if not shape.members:
            return pa.repeat(pa.scalar(shape.end, pa.string()), len(values.at))
        pieces: list[pa.Array | pa.Scalar] = []
        for before, kind, place in shape.members:
            pieces.append(pa.scalar(before, pa.string()))
            entry = values.at + place
            if is_inlined(kind, width):
                pieces.append(self._values(_Values(kind, entry, values.rows), depth + 1))
                continue
            found = values.at + self._buffer.lengths(width, entry)
            self._within(values, found)
            pieces.append(self._values(_Values(kind, found, values.rows), depth + 1))
        pieces.append(pa.scalar(shape.end, pa.string()))
        return pc.binary_join_element_wise(*pieces, "")

    def _strings(self, values: _Values) -> pa.Array:
        buffer = self._buffer
        first = buffer.data[values.at].astype(np.int64)
        starts = values.at + 1
        sizes = first & 0x7F
        more = first >= 0x80
        shift = 7
        while more.any():
            if shift > 28:
                raise BinlogError("JSON: a string without a length")
            byte = buffer.data[np.minimum(starts, buffer.size)].astype(np.int64)
            sizes = np.where(more, sizes | (byte & 0x7F) << shift, sizes)
            starts = starts + more
            more = more & (byte >= 0x80)
            shift += 7
        self._within(values, starts + sizes)
        self._claim(values.rows, starts + sizes - values.at)
        return quoted(binary_array(buffer, starts, sizes, None))

    def _literals(self, values: _Values) -> pa.Array:
        self._within(values, values.at + 1)
        found = self._buffer.data[values.at]
        if (found > 2).any():
            raise BinlogError("JSON: a literal that is neither null, true nor false")
        return pa.array(LITERALS, pa.string()).take(pa.array(found))

    def _integers(self, at: Places, size: int, *, signed: bool) -> pa.Array:
        found = self._buffer.numbers(f"<u{size}", at)
        kind = f"{'int' if signed else 'uint'}{8 * size}"
        return array_of(getattr(pa, kind)(), found.view(f"<{kind[0]}{size}"), None).cast(
            pa.string()
        )

    def _one_by_one(self, values: _Values) -> pa.Array:
        """Decode scalars of the other types, mostly dates and decimals."""
        texts = []
        for at, row in zip(values.at.tolist(), values.rows.tolist(), strict=True):
            document = JsonDocument(self._buffer.raw[at : int(self._ends[row])])
            texts.append(document.scalar(values.kind, 0))
        return pa.array(texts, pa.string())

    def _alone(self, values: _Values) -> pa.Array:
        """Decode objects and arrays that have no company."""
        raw = self._buffer.raw
        kind = bytes((values.kind,))
        texts = []
        for at, row in zip(values.at.tolist(), values.rows.tolist(), strict=True):
            texts.append(json_text(kind + raw[at : int(self._ends[row])]))
        return pa.array(texts, pa.string())

    def _within(self, values: _Values, ends: Places) -> None:
        if (ends > self._ends[values.rows]).any():
            raise BinlogError("JSON: a value passes the end of its document")

    def _claim(self, rows: Places, sizes: Places | int) -> None:
        self._left[rows] -= sizes
        if (self._left[rows] < 0).any():
            raise BinlogError("JSON: the values take more bytes than the document has")


class _Shape:
    """What objects or arrays have in common: their keys and the types of their members."""

    __slots__ = ("_words", "end", "members", "size", "width")

    def __init__(self, kind: int, raw: bytes) -> None:
        """`raw` begins with the number of elements. BinlogError where it ends too early."""
        self.width = width = 4 if kind & 1 else 2
        is_object = kind <= LARGE_OBJECT
        count = int.from_bytes(raw[:width], "little")
        keys = 2 * width
        values = keys + count * (width + 2) * is_object
        self.size = values + count * (1 + width)
        if self.size > len(raw):
            raise BinlogError("JSON: cut off")
        names = []
        for entry in range(keys, values, width + 2):
            offset = int.from_bytes(raw[entry : entry + width], "little")
            end = offset + int.from_bytes(raw[entry + width : entry + width + 2], "little")
            # Compared are the bytes from the first on: the keys have to be all of these.
            if offset != self.size or end > len(raw):
                raise BinlogError("JSON: keys that are not one behind the other")
            names.append(raw[offset:end])
            self.size = end
        mask = bytearray(b"\xff" * self.size)
        mask[width : 2 * width] = bytes(width)
        opening, self.end = ("{", "}") if is_object else ("[", "]")
        if not count:
            self.end = opening + self.end
        self.members: list[tuple[str, int, int]] = []
        """The text before each, its type, and where its value or offset stands."""
        for number in range(count):
            entry = values + number * (1 + width)
            mask[entry + 1 : entry + 1 + width] = bytes(width)
            before = opening if not number else ", "
            if is_object:
                before += f"{_quoted_key(names[number])}: "
            self.members.append((before, raw[entry], entry + 1))
        wanted = bytes(a & b for a, b in zip(raw, mask, strict=False))
        self._words: list[tuple[int, np.uint64, np.uint64]] = []
        for at in range(0, self.size, 8):
            bits = int.from_bytes(mask[at : at + 8], "little")
            if bits:
                word = int.from_bytes(wanted[at : at + 8], "little")
                self._words.append((at, np.uint64(bits), np.uint64(word)))

    def alike(self, buffer: Buffer, at: Places) -> npt.NDArray[np.bool_]:
        """Tell which of the objects or arrays at these places have this shape."""
        found = np.ones(len(at), np.bool_)
        last = buffer.size - self.size
        for place, mask, wanted in self._words:
            # What begins too near to the end has another shape; its words are read before it.
            words = buffer.numbers("<u8", np.minimum(at + place, buffer.size))
            found &= words & mask == wanted
        return found & (at <= last)


def _quoted_key(raw: bytes) -> str:
    (text,) = quoted(pa.array([raw], pa.binary())).to_pylist()
    return str(text)


def _doubles(numbers: npt.NDArray[np.float64]) -> pa.Array:
    return pa.array([double_text(number) for number in numbers.tolist()], pa.string())


def _assembled(parts: Sequence[tuple[Places, pa.Array]], count: int) -> pa.Array:
    """Return the arrays as one, each value at its place."""
    if len(parts) == 1:
        return parts[0][1]
    order = np.empty(count, np.int32)
    at = 0
    for places, _ in parts:
        order[places] = np.arange(at, at + len(places), dtype=np.int32)
        at += len(places)
    return pa.concat_arrays([found for _, found in parts]).take(pa.array(order))

"""JSON documents as an array of their texts, converting documents of the same shape together.

Most documents of a column have the same keys and types, and differ only in their values. So one of
them represents all those of its shape (the same bytes except for sizes, offsets and values): its
members become columns, each converted to text as a whole, which are then joined between the keys.
Documents of rare shapes are decoded one by one by `mtsd.binlog.values.json_binary`, which describes
the format.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from mtsd.binlog.values.column_format import ColumnFormat
from mtsd.binlog.values.json_binary import (
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
from mtsd.model.errors import BinlogError
from mtsd.spark.arrays.json_numbers import double_texts
from mtsd.spark.arrays.json_strings import escaped
from mtsd.spark.arrays.lockstep import Buffer, Bytes, Places, Slots
from mtsd.spark.arrays.number_arrays import array_of
from mtsd.spark.arrays.text_arrays import binary_array, with_validity

_COMPANY: Final = 16
"""The fewest documents of one shape that are worth converting together."""
_MAX_MISSES: Final = 4
"""After this many rare shapes in a row, the remaining documents are decoded one by one."""
_LARGEST_HEADER: Final = 4096

_Pieces: TypeAlias = list[str | pa.Array]
"""The parts of the texts, in order: a string that all have in common, or an array with one each."""


def json_array(buffer: Buffer, slots: Slots, column: ColumnFormat) -> pa.Array:
    """Return the documents' texts. Raises BinlogError if one is truncated or malformed."""
    count = len(slots)
    # Neither a NULL nor the JSON null of a new NOT NULL column has bytes; both get the text "null".
    full = np.flatnonzero(slots.sizes)
    starts = slots.starts[full]
    try:
        texts = _Documents(buffer, starts, starts + slots.sizes[full]).texts()
    except BinlogError as error:
        raise BinlogError(f"{column.where}: {error}") from error
    if len(full) < count:
        places = np.full(count, len(full), np.int32)
        places[full] = np.arange(len(full), dtype=np.int32)
        texts = pa.concat_arrays([texts, pa.array(["null"], pa.string())]).take(pa.array(places))
    return with_validity(texts, slots.valid)


@dataclass(frozen=True, slots=True)
class _Values:
    """Values of one type, each from a different document: its start, and the document's end.

    `rows` contains the indexes of these documents.
    """

    kind: int
    at: Places
    ends: Places
    rows: Places

    def chosen(self, places: Places) -> "_Values":
        return _Values(self.kind, self.at[places], self.ends[places], self.rows[places])

    def within(self, ends: Places) -> None:
        """Raise BinlogError if a value extends past the end of its document."""
        if (ends > self.ends).any():
            raise BinlogError("JSON: a value passes the end of its document")


class _Documents:
    """The documents being converted."""

    def __init__(self, buffer: Buffer, starts: Places, ends: Places) -> None:
        self._buffer = buffer
        self._starts = starts
        self._ends = ends
        self._left = ends - starts
        """Bytes not yet claimed by any value, as in `JsonDocument`."""

    def texts(self) -> pa.Array:
        """Return the text of every document."""
        kinds = self._buffer.data[self._starts]
        parts: list[tuple[Places, pa.Array]] = []
        for kind in np.flatnonzero(np.bincount(kinds)).tolist():
            rows = np.flatnonzero(kinds == kind)
            values = _Values(kind, self._starts[rows] + 1, self._ends[rows], rows)
            parts.append((rows, _joined(self._pieces(values, 0), len(rows))))
        return _assembled(parts, len(kinds))

    def _pieces(self, values: _Values, depth: int) -> _Pieces:
        """Return the texts of values of one type, as pieces."""
        kind = values.kind
        at = values.at
        if kind <= LARGE_ARRAY:
            return self._containers(values, depth)
        if kind == STRING:
            return ['"', self._strings(values), '"']
        if kind == DOUBLE:
            values.within(at + 8)
            return [double_texts(self._buffer.numbers("<u8", at).view("<f8"))]
        if kind == LITERAL:
            values.within(at + 1)
            return [_literals(self._buffer.data[at])]
        if INT16 <= kind <= UINT64:
            size = _size_of(kind)
            values.within(at + size)
            return [_integers(self._buffer.numbers(f"<u{size}", at), kind)]
        return [self._one_by_one(values)]

    def _containers(self, values: _Values, depth: int) -> _Pieces:
        if depth > DEEPEST:
            raise BinlogError(f"JSON: more than {DEEPEST} levels")
        count = len(values.at)
        parts: list[tuple[Places, pa.Array]] = []
        remaining = np.arange(count)
        misses = 0
        while len(remaining) >= _COMPANY and misses < _MAX_MISSES:
            example = len(remaining) // 2
            shape = self._shape(values, int(remaining[example]))
            if shape is None:
                misses += 1
                parts.append((remaining[[example]], self._alone(values, remaining[[example]])))
                remaining = np.delete(remaining, example)
                continue
            places = values.at if len(remaining) == count else values.at[remaining]
            heads = shape.heads(self._buffer, places)
            alike = shape.alike(heads, self._buffer, places)
            if len(remaining) == count and alike.all():
                return self._of_shape(values, shape, heads, depth)
            members = remaining[alike]
            remaining = remaining[~alike]
            if len(members) < _COMPANY:
                # The next round takes another document as the example.
                misses += 1
                parts.append((members, self._alone(values, members)))
            else:
                misses = 0
                pieces = self._of_shape(values.chosen(members), shape, heads[alike], depth)
                parts.append((members, _joined(pieces, len(members))))
        if len(remaining):
            parts.append((remaining, self._alone(values, remaining)))
        return [_assembled(parts, count)]

    def _shape(self, values: _Values, example: int) -> "_Shape | None":
        """Return the shape of one object or array; None if it is too large to be common."""
        at = int(values.at[example])
        raw = self._buffer.raw[at : min(at + _LARGEST_HEADER, int(values.ends[example]))]
        try:
            return _Shape(values.kind, raw)
        except BinlogError:
            # Too large or damaged; decoding it on its own reports damage.
            return None

    def _of_shape(self, values: _Values, shape: "_Shape", heads: Bytes, depth: int) -> _Pieces:
        width = shape.width
        sizes = _field(heads, width, f"<u{width}").astype(np.int64)
        values.within(values.at + sizes)
        if (sizes < shape.size).any():
            raise BinlogError(f"JSON: an object or array of less than {shape.size} bytes")
        self._claim(values, shape.size)
        pieces: _Pieces = []
        for before, kind, place in shape.members:
            pieces.append(before)
            if is_inlined(kind, width):
                if kind == LITERAL:
                    pieces.append(_literals(heads[:, place]))
                else:
                    pieces.append(_integers(_field(heads, place, f"<u{_size_of(kind)}"), kind))
                continue
            at = values.at + _field(heads, place, f"<u{width}")
            values.within(at)
            pieces += self._pieces(_Values(kind, at, values.ends, values.rows), depth + 1)
        pieces.append(shape.end)
        return pieces

    def _strings(self, values: _Values) -> pa.Array:
        buffer = self._buffer
        sizes = buffer.data[values.at].astype(np.int64)
        starts = values.at + 1
        more = sizes >= 0x80
        shift = 0
        if more.any():
            sizes &= 0x7F
        while more.any():
            shift += 7
            if shift > 28:
                raise BinlogError("JSON: a string without a length")
            byte = buffer.data[np.minimum(starts, buffer.size)].astype(np.int64)
            sizes = np.where(more, sizes | (byte & 0x7F) << shift, sizes)
            starts = starts + more
            more = more & (byte >= 0x80)
        ends = starts + sizes
        values.within(ends)
        self._claim(values, ends - values.at)
        return escaped(binary_array(buffer, starts, sizes, None))

    def _one_by_one(self, values: _Values) -> pa.Array:
        """Decode scalars of the remaining types, mostly dates and decimals."""
        texts = []
        for at, end in zip(values.at.tolist(), values.ends.tolist(), strict=True):
            texts.append(JsonDocument(self._buffer.raw[at:end]).scalar(values.kind, 0))
        return pa.array(texts, pa.string())

    def _alone(self, values: _Values, members: Places) -> pa.Array:
        """Decode objects and arrays of rare shapes."""
        raw = self._buffer.raw
        kind = bytes((values.kind,))
        places = zip(values.at[members].tolist(), values.ends[members].tolist(), strict=True)
        return pa.array([json_text(kind + raw[at:end]) for at, end in places], pa.string())

    def _claim(self, values: _Values, sizes: Places | int) -> None:
        if len(values.rows) == len(self._left):
            self._left -= sizes
            left = self._left
        else:
            left = self._left[values.rows] - sizes
            self._left[values.rows] = left
        if (left < 0).any():
            raise BinlogError("JSON: the values take more bytes than the document has")


class _Shape:
    """What objects or arrays have in common: their keys and the types of their members."""

    __slots__ = ("_mask", "_padded", "_wanted", "end", "members", "size", "width")

    def __init__(self, kind: int, raw: bytes) -> None:
        """`raw` begins with the number of elements. Raises BinlogError if it is truncated."""
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
            # Shapes are compared byte by byte, so there must be no gaps between the keys.
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
        """The text before each member, its type, and where its value or offset is stored."""
        for number in range(count):
            entry = values + number * (1 + width)
            mask[entry + 1 : entry + 1 + width] = bytes(width)
            before = opening if not number else ", "
            if is_object:
                before += f"{_quoted(names[number])}: "
            self.members.append((before, raw[entry], entry + 1))
        self._padded = (self.size + 7) & ~7
        self._mask = np.frombuffer(bytes(mask).ljust(self._padded, b"\0"), np.uint64)
        wanted = np.frombuffer(raw[: self.size].ljust(self._padded, b"\0"), np.uint64)
        self._wanted = wanted & self._mask

    def heads(self, buffer: Buffer, at: Places) -> Bytes:
        """Return the first bytes of each object or array at these places, as many as the shape."""
        # A value too close to the end cannot have this shape, so what is read for it is irrelevant.
        last = max(len(buffer.raw) - self._padded, 0)
        return buffer.heads(self._padded, np.minimum(at, last))

    def alike(self, heads: Bytes, buffer: Buffer, at: Places) -> npt.NDArray[np.bool_]:
        """Return which of them have this shape."""
        words = heads.view(np.uint64)
        found = at + self.size <= buffer.size
        for place in np.flatnonzero(self._mask).tolist():
            found &= words[:, place] & self._mask[place] == self._wanted[place]
        return found


def _field(heads: Bytes, place: int, kind: str) -> npt.NDArray[np.unsignedinteger]:
    """Return the number at one place in every head."""
    return np.ndarray((len(heads),), kind, heads, place, (heads.strides[0],))


def _size_of(kind: int) -> int:
    """Return the size of an integer type in bytes."""
    return 2 << ((kind - INT16) >> 1)


def _integers(numbers: npt.NDArray[np.unsignedinteger], kind: int) -> pa.Array:
    name = f"{'int' if kind & 1 else 'uint'}{8 * _size_of(kind)}"
    values = np.ascontiguousarray(numbers).view(name)
    return array_of(getattr(pa, name)(), values, None).cast(pa.string())


def _literals(codes: Bytes) -> pa.Array:
    if (codes > 2).any():
        raise BinlogError("JSON: a literal that is neither null, true nor false")
    return pa.array(LITERALS, pa.string()).take(pa.array(np.ascontiguousarray(codes)))


def _quoted(raw: bytes) -> str:
    (text,) = escaped(pa.array([raw], pa.binary())).to_pylist()
    return f'"{text}"'


def _joined(pieces: _Pieces, count: int) -> pa.Array:
    """Return the texts made of these pieces."""
    merged: list[pa.Array | pa.Scalar] = []
    literal = ""
    for piece in pieces:
        if isinstance(piece, str):
            literal += piece
            continue
        if literal:
            merged.append(pa.scalar(literal, pa.string()))
            literal = ""
        merged.append(piece)
    if literal:
        merged.append(pa.scalar(literal, pa.string()))
    if len(merged) == 1:
        (only,) = merged
        return only if isinstance(only, pa.Array) else pa.repeat(only, count)
    return pc.binary_join_element_wise(*merged, "")


def _assembled(parts: Sequence[tuple[Places, pa.Array]], count: int) -> pa.Array:
    """Return the arrays as one, with each value in its place."""
    if len(parts) == 1:
        return parts[0][1]
    if not parts:
        return pa.array([], pa.string())
    order = np.empty(count, np.int32)
    at = 0
    for places, _ in parts:
        order[places] = np.arange(at, at + len(places), dtype=np.int32)
        at += len(places)
    return pa.concat_arrays([found for _, found in parts]).take(pa.array(order))

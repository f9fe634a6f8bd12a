"""Columns of text and bytes as Arrow arrays, all values at once."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from mtsd.binlog.bytes.character_sets import (
    BINARY,
    character_set,
    single_byte_table,
    text_decoder,
)
from mtsd.binlog.values.column_format import ColumnFormat
from mtsd.binlog.values.column_values import member_names, set_text
from mtsd.model.errors import BinlogError
from mtsd.spark.arrays.lockstep import Buffer, Bytes, Flags, Places, Slots
from mtsd.spark.arrays.number_arrays import little_endian, offsets_of_sizes, validity

_UTF8 = frozenset({"utf8mb4", "utf8mb3"})


def binary_array(buffer: Buffer, starts: Places, sizes: Places, valid: Flags | None) -> pa.Array:
    """Return byte strings that are in order in the buffer and do not overlap."""
    count = len(starts)
    # The values and the gaps between them form one array over the whole buffer.
    offsets = np.empty(2 * count + 1, np.int32)
    offsets[0:-1:2] = starts
    offsets[1::2] = starts + sizes
    offsets[-1] = offsets[-2] if count else 0
    between = pa.Array.from_buffers(
        pa.binary(), 2 * count, [None, pa.py_buffer(offsets), pa.py_buffer(buffer.raw)]
    )
    taken = between.take(pa.array(np.arange(0, 2 * count, 2, dtype=np.int32)))
    return with_validity(taken, valid)


def with_validity(texts: pa.Array, valid: Flags | None) -> pa.Array:
    """Return an array without NULLs with this validity instead."""
    if valid is None:
        return texts
    return pa.Array.from_buffers(
        texts.type, len(texts), [validity(valid), *texts.buffers()[1:]], offset=texts.offset
    )


def text_array(buffer: Buffer, slots: Slots, column: ColumnFormat) -> pa.Array:
    """Return the values of a text column. BinlogError if one is invalid in its character set."""
    collation = column.collation or BINARY
    name = character_set(collation)
    encoded = binary_array(buffer, slots.starts, slots.sizes, slots.valid)
    if name in _UTF8:
        return checked(encoded, column.where)
    data = contents(encoded)
    table = single_byte_table(name)
    if table:
        ascii_alike = table[:128].isascii() and table[:128] == "".join(map(chr, range(128)))
        if ascii_alike and not (data > 0x7F).any():
            return encoded.view(pa.string())
        return _single_byte(encoded, data, table)
    decode = text_decoder(collation)
    try:
        # Character sets that are no longer a server's default are decoded value by value.
        texts = [None if raw is None else decode(raw) for raw in encoded.to_pylist()]
    except BinlogError as error:
        raise BinlogError(f"{column.where}: {error}") from error
    return pa.array(texts, pa.string())


def checked(texts: pa.Array, where: str) -> pa.Array:
    """Return bytes as text; raises BinlogError if they are not UTF-8."""
    try:
        return texts.cast(pa.string())
    except pa.ArrowInvalid as error:
        raise BinlogError(f"{where}: a value is not UTF-8") from error


def contents(texts: pa.Array) -> Bytes:
    """Return the bytes of all values, concatenated."""
    data = texts.buffers()[2]
    if data is None:
        return np.zeros(0, np.uint8)
    ends = offsets_of(texts)
    return np.frombuffer(data, np.uint8)[int(ends[0]) : int(ends[-1])]


def offsets_of(texts: pa.Array) -> npt.NDArray[np.int32]:
    """Return where the values begin, and where the last one ends."""
    if not len(texts):
        return np.zeros(1, np.int32)
    offsets = np.frombuffer(texts.buffers()[1], np.int32)
    return offsets[texts.offset : texts.offset + len(texts) + 1]


def _single_byte(texts: pa.Array, data: Bytes, table: str) -> pa.Array:
    encoded = [character.encode() for character in table]
    widths = np.array([len(one) for one in encoded], np.int64)
    ends = offsets_of_sizes(widths[data])
    offsets = offsets_of(texts)
    places = (offsets - offsets[0]).astype(np.int64)
    new = ends[places]
    text = data.tobytes().decode("latin-1").translate(dict(enumerate(table)))
    buffers = [texts.buffers()[0], pa.py_buffer(new), pa.py_buffer(text.encode())]
    return pa.Array.from_buffers(pa.string(), len(texts), buffers)


def padded_array(buffer: Buffer, slots: Slots, size: int) -> pa.Array:
    """Return BINARY values with their trailing zeros, which are not logged."""
    if not (slots.sizes < size).any():
        return binary_array(buffer, slots.starts, slots.sizes, slots.valid)
    places = np.arange(size)
    kept = places < slots.sizes[:, None]
    wide = np.where(kept, buffer.data[np.minimum(slots.starts[:, None] + places, buffer.size)], 0)
    offsets = np.arange(0, size * (len(slots.starts) + 1), size, dtype=np.int32)
    data = np.ascontiguousarray(wide, np.uint8)
    buffers = [validity(slots.valid), pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(slots.starts), buffers)


def enum_array(buffer: Buffer, slots: Slots, column: ColumnFormat) -> pa.Array:
    """Return ENUM values by name. Raises BinlogError for a number without a member."""
    numbers = little_endian(buffer, slots).astype(np.int32)
    if slots.valid is not None:
        numbers = np.where(slots.valid, numbers, 0)
    names = ["", *member_names(column)]
    if len(numbers) and int(numbers.max()) >= len(names):
        raise BinlogError(f"{column.where}: member {numbers.max()} of {len(names) - 1}")
    indices = pa.array(numbers, mask=None if slots.valid is None else ~slots.valid)
    return pa.array(names, pa.string()).take(indices)


def set_array(buffer: Buffer, slots: Slots, column: ColumnFormat) -> pa.Array:
    """Return SET values as comma-separated members. Raises BinlogError for an unknown member."""
    bits = little_endian(buffer, slots)
    if slots.valid is not None:
        bits = np.where(slots.valid, bits, bits.dtype.type(0))
    names = member_names(column)
    different, places = np.unique(bits, return_inverse=True)
    texts = []
    for value in different.tolist():
        if value >> len(names):
            raise BinlogError(f"{column.where}: members {value:#x} of {len(names)}")
        texts.append(set_text(names, value))
    indices = pa.array(places, mask=None if slots.valid is None else ~slots.valid)
    return pa.array(texts, pa.string()).take(indices)


def vector_array(buffer: Buffer, slots: Slots, column: ColumnFormat) -> pa.Array:
    """Return VECTOR values as lists of 32-bit floats. BinlogError if one has a partial number."""
    if (slots.sizes & 3).any():
        raise BinlogError(f"{column.where}: a vector that does not end with a number")
    raw = binary_array(buffer, slots.starts, slots.sizes, None)
    offsets = ((offsets_of(raw) - offsets_of(raw)[0]) // 4).astype(np.int32)
    numbers = np.frombuffer(contents(raw).tobytes(), "<f4")
    return pa.Array.from_buffers(
        pa.list_(pa.float32()),
        len(raw),
        [validity(slots.valid), pa.py_buffer(offsets)],
        children=[pa.array(numbers, pa.float32())],
    )

"""Columns of numbers as Arrow arrays, all values at once."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from mtsd.binlog.bytes.packed_decimal import groups
from mtsd.binlog.values.column_format import ColumnFormat
from mtsd.model.errors import BinlogError, NotSupportedError
from mtsd.spark.arrays.lockstep import Buffer, Flags, Places, Slots

Unsigned = npt.NDArray[np.unsignedinteger]
Integers = npt.NDArray[np.int64]

WIDEST_DECIMAL: Final = 38
"""Digits of the widest decimal that both Spark and Arrow support."""
_LITTLE: Final = {1: "u1", 2: "<u2", 3: "<u4", 4: "<u4", 8: "<u8"}


def validity(valid: Flags | None) -> pa.Buffer | None:
    """Return Arrow's bitmap of the values that are not NULL; None if all are."""
    if valid is None:
        return None
    return pa.py_buffer(np.packbits(valid, bitorder="little"))


def array_of(kind: pa.DataType, values: npt.NDArray[Any], valid: Flags | None) -> pa.Array:
    """Return an array of fixed-size values that are already in Arrow's format."""
    count = len(values)
    # Slices of a wider array are copied.
    buffers = [validity(valid), pa.py_buffer(np.ascontiguousarray(values))]
    return pa.Array.from_buffers(kind, count, buffers)


def little_endian(buffer: Buffer, slots: Slots) -> Unsigned:
    """Return unsigned integers of the slots' size, which may be 3 bytes."""
    size = slots.size
    numbers = buffer.numbers(_LITTLE[size], slots.starts)
    return numbers & np.uint32(0xFFFFFF) if size == 3 else numbers


def big_endian(buffer: Buffer, starts: Places, size: int) -> npt.NDArray[np.uint64]:
    """Return unsigned integers of 0 to 8 bytes."""
    if not size:
        return np.zeros(len(starts), np.uint64)
    if size == 1:
        return buffer.data[starts].astype(np.uint64)
    if size == 2:
        return buffer.numbers(">u2", starts).astype(np.uint64)
    if size <= 4:
        return buffer.numbers(">u4", starts).astype(np.uint64) >> np.uint64(8 * (4 - size))
    return buffer.numbers(">u8", starts).astype(np.uint64) >> np.uint64(8 * (8 - size))


def integer_array(buffer: Buffer, slots: Slots, kind: pa.DataType, *, unsigned: bool) -> pa.Array:
    """Return integers as `kind`, which must be wide enough: int64, or a decimal of 20 digits."""
    raw = little_endian(buffer, slots)
    size = slots.size
    if pa.types.is_decimal(kind):
        return unsigned_decimals(raw, slots.valid)
    if unsigned:
        return array_of(kind, raw.astype(kind.to_pandas_dtype()), slots.valid)
    signed = (raw << np.uint32(8)).view(np.int32) >> 8 if size == 3 else raw.view(f"<i{size}")
    return array_of(kind, signed.astype(kind.to_pandas_dtype(), copy=False), slots.valid)


def unsigned_decimals(numbers: Unsigned, valid: Flags | None) -> pa.Array:
    """Return integers of up to 64 bits as DECIMAL(20,0)."""
    words = np.zeros((len(numbers), 2), np.uint64)
    words[:, 0] = numbers
    return array_of(pa.decimal128(20, 0), words, valid)


def bit_array(buffer: Buffer, slots: Slots, kind: pa.DataType) -> pa.Array:
    """Return BIT values as int64, or as a decimal of 20 digits if they have 64 bits."""
    numbers = big_endian(buffer, slots.starts, slots.size)
    if pa.types.is_decimal(kind):
        return unsigned_decimals(numbers, slots.valid)
    return array_of(kind, numbers.view(np.int64), slots.valid)


def real_array(buffer: Buffer, slots: Slots, kind: pa.DataType) -> pa.Array:
    """Return FLOAT or DOUBLE values."""
    size = slots.size
    bits = buffer.numbers(f"<u{size}", slots.starts)
    return array_of(kind, bits.view(f"<f{size}"), slots.valid)


def year_array(buffer: Buffer, slots: Slots, kind: pa.DataType) -> pa.Array:
    """Return YEAR values."""
    years = buffer.data[slots.starts].astype(np.int16)
    return array_of(kind, np.where(years == 0, years, years + 1900).astype(np.int16), slots.valid)


def decimal_groups(
    buffer: Buffer, slots: Slots, column: ColumnFormat
) -> tuple[list[tuple[npt.NDArray[np.uint64], int]], Flags]:
    """Return a DECIMAL's groups of up to 9 digits, the digits in each, and which are negative.

    Raises BinlogError if a group is too large for its digits. The groups of a NULL are 0.
    """
    negative: Flags = buffer.data[slots.starts] < 0x80
    parts: list[tuple[npt.NDArray[np.uint64], int]] = []
    at = slots.starts
    for size, digits in groups(column.digits, column.scale):
        group = big_endian(buffer, at, size)
        if not parts:
            group = group ^ np.uint64(0x80 << 8 * (size - 1))
        mask = np.uint64((1 << 8 * size) - 1)
        group = np.where(negative, group ^ mask, group)
        if slots.valid is not None:
            group = np.where(slots.valid, group, np.uint64(0))
        if (group >= np.uint64(10**digits)).any():
            raise BinlogError(f"{column.where}: no DECIMAL({column.digits},{column.scale})")
        parts.append((group, digits))
        at = at + size
    return parts, negative


def decimal_array(buffer: Buffer, slots: Slots, column: ColumnFormat) -> pa.Array:
    """Return DECIMAL values of up to WIDEST_DECIMAL digits. Raises BinlogError."""
    groups, negative = decimal_groups(buffer, slots, column)
    kind = pa.decimal128(column.digits, column.scale)
    words = np.zeros((len(negative), 2), np.uint64)
    if column.digits <= 18:
        low = np.zeros(len(negative), np.uint64)
        for group, digits in groups:
            low = low * np.uint64(10**digits) + group
        signed = np.where(negative, -low.view(np.int64), low.view(np.int64))
        words[:, 0] = signed.view(np.uint64)
        words[:, 1] = (signed >> 63).view(np.uint64)
        return array_of(kind, words, slots.valid)
    # Four limbs of 32 bits: a limb times 10^9 plus the carry fits into 64 bits.
    limbs = [np.zeros(len(negative), np.uint64) for _ in range(4)]
    for group, digits in groups:
        carry = group
        for place, limb in enumerate(limbs):
            product = limb * np.uint64(10**digits) + carry
            limbs[place] = product & np.uint64(0xFFFFFFFF)
            carry = product >> np.uint64(32)
    low = limbs[0] | limbs[1] << np.uint64(32)
    high = limbs[2] | limbs[3] << np.uint64(32)
    words[:, 0] = np.where(negative, ~low + np.uint64(1), low)
    words[:, 1] = np.where(negative, ~high + (low == 0), high)
    return array_of(kind, words, slots.valid)


def decimal_text_array(buffer: Buffer, slots: Slots, column: ColumnFormat) -> pa.Array:
    """Return DECIMAL values as text with all their fractional digits. Raises BinlogError."""
    groups, negative = decimal_groups(buffer, slots, column)
    digits = np.concatenate([_digits(group, count) for group, count in groups], axis=1)
    count, width = digits.shape
    before = width - column.scale
    point = int(column.scale > 0)
    written = np.empty((count, 1 + width + point), np.uint8)
    written[:, 0] = ord("-")
    written[:, 1 : 1 + before] = digits[:, :before] + 48
    if point:
        written[:, 1 + before] = ord(".")
        written[:, 2 + before :] = digits[:, before:] + 48
    kept = np.ones(written.shape, np.bool_)
    kept[:, 0] = negative
    # Drops leading zeros, except the one before the decimal point.
    kept[:, 1:before] = np.logical_or.accumulate(digits[:, : before - 1] != 0, axis=1)
    if not before:
        written = np.insert(written, 1, ord("0"), axis=1)
        kept = np.insert(kept, 1, True, axis=1)
    if slots.valid is not None:
        kept &= slots.valid[:, None]
    return texts_of(written[kept], kept.sum(axis=1), slots.valid)


def _digits(group: npt.NDArray[np.uint64], count: int) -> npt.NDArray[np.uint8]:
    powers = np.array([10**place for place in range(count - 1, -1, -1)], np.uint64)
    return (group[:, None] // powers % np.uint64(10)).astype(np.uint8)


def texts_of(
    data: npt.NDArray[np.uint8], sizes: npt.NDArray[np.int64], valid: Flags | None = None
) -> pa.Array:
    """Return the texts of these sizes that are stored back to back in `data`, which is UTF-8."""
    offsets = offsets_of_sizes(sizes)
    buffers = [validity(valid), pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.Array.from_buffers(pa.string(), len(sizes), buffers)


def offsets_of_sizes(sizes: npt.NDArray[np.integer]) -> npt.NDArray[np.int32]:
    """Return where values of these sizes begin, and where the last one ends.

    Raises NotSupportedError for more than an Arrow array holds; only a single event can have that.
    """
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    if offsets[-1] > _MAX_BYTES:
        raise NotSupportedError(f"{offsets[-1]} bytes of text in one column of a row event")
    return offsets.astype(np.int32)


_MAX_BYTES: Final = (1 << 31) - 1

"""Dates and times as Arrow arrays, all values at once: typed, or as the text a SELECT shows."""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from mtsd.binlog.values.column_format import ColumnFormat
from mtsd.binlog.values.column_type import ColumnType
from mtsd.model.errors import BinlogError, NotSupportedError
from mtsd.spark.arrays.lockstep import Buffer, Flags, Slots
from mtsd.spark.arrays.number_arrays import array_of, big_endian, little_endian, texts_of

Integers = npt.NDArray[np.int64]
_T = ColumnType

MICROSECONDS: Final = 1_000_000
_DAY: Final = 86_400
_NONE: Final = np.zeros(0, np.int64)
_NO_SIGNS: Final = np.zeros(0, np.bool_)
_MONTHS: Final = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])


class _Parts(NamedTuple):
    """The parts of dates and times; those that a type does not have are empty.

    `fraction` is in units of its last digit.
    """

    year: Integers = _NONE
    month: Integers = _NONE
    day: Integers = _NONE
    hours: Integers = _NONE
    minutes: Integers = _NONE
    seconds: Integers = _NONE
    fraction: Integers = _NONE
    negative: Flags = _NO_SIGNS


def typed_array(
    buffer: Buffer, slots: Slots, column: ColumnFormat, kind: pa.DataType, *, nulls: bool
) -> pa.Array:
    """Return values as `kind`: date32, timestamp("us") with UTC or without, duration("us").

    A date that is not in the calendar, such as 0000-00-00, becomes NULL with `nulls`, and raises
    NotSupportedError without. Raises BinlogError if a value is invalid for its type.
    """
    valid = slots.valid
    if column.type in {_T.TIMESTAMP, _T.TIMESTAMP2}:
        seconds, fraction = _instants(buffer, slots, column)
        valid = _without(seconds != 0, valid, column, nulls=nulls)
        return array_of(kind, seconds * MICROSECONDS + fraction, valid)
    parts = _parts(buffer, slots, column)
    _check(parts, valid, column)
    fraction = _microseconds(parts.fraction, column.digits, len(slots))
    if column.type in {_T.TIME, _T.TIME2}:
        total = _clock(parts) * MICROSECONDS + fraction
        return array_of(kind, np.where(parts.negative, -total, total), valid)
    days, there = _days(parts)
    valid = _without(there, valid, column, nulls=nulls)
    if column.type in {_T.DATE, _T.NEWDATE}:
        return array_of(kind, days.astype(np.int32), valid)
    return array_of(kind, (days * _DAY + _clock(parts)) * MICROSECONDS + fraction, valid)


def shown_array(buffer: Buffer, slots: Slots, column: ColumnFormat) -> pa.Array:
    """Return values as text (see `temporal`). Raises BinlogError if one is invalid."""
    if column.type in {_T.TIMESTAMP, _T.TIMESTAMP2}:
        parts = _utc(*_instants(buffer, slots, column), column.digits)
    else:
        parts = _parts(buffer, slots, column)
        _check(parts, slots.valid, column)
    return _text(parts, column.digits, slots.valid, len(slots))


def _instants(buffer: Buffer, slots: Slots, column: ColumnFormat) -> tuple[Integers, Integers]:
    """Return seconds since 1970 and microseconds."""
    if column.type is _T.TIMESTAMP:
        seconds = little_endian(buffer, slots).astype(np.int64)
        return seconds, np.zeros(len(seconds), np.int64)
    seconds = big_endian(buffer, slots.starts, 4).astype(np.int64)
    fraction = _fraction(buffer, slots, 4, column)
    _check(_Parts(fraction=fraction), slots.valid, column)
    return seconds, _microseconds(fraction, column.digits, len(slots))


def _parts(buffer: Buffer, slots: Slots, column: ColumnFormat) -> _Parts:
    starts = slots.starts
    match column.type:
        case _T.DATE | _T.NEWDATE:
            bits = little_endian(buffer, slots).astype(np.int64)
            return _Parts(bits >> 9, bits >> 5 & 15, bits & 31)
        case _T.DATETIME2:
            bits = big_endian(buffer, starts, 5).astype(np.int64) - (1 << 39)
            month = bits >> 22
            return _Parts(
                np.where(bits < 0, 10_000, month // 13), month % 13, bits >> 17 & 31,
                bits >> 12 & 31, bits >> 6 & 63, bits & 63,
                _fraction(buffer, slots, 5, column),
            )  # fmt: skip
        case _T.TIME2:
            size = slots.size
            whole = big_endian(buffer, starts, size).astype(np.int64) - (1 << 8 * size - 1)
            bits = np.abs(whole)
            fraction = bits & (1 << 8 * (size - 3)) - 1
            bits >>= 8 * (size - 3)
            if column.digits & 1:
                fraction = fraction // 10
            return _Parts(
                hours=bits >> 12 & 0x3FF, minutes=bits >> 6 & 63, seconds=bits & 63,
                fraction=fraction, negative=whole < 0,
            )  # fmt: skip
        case _T.TIME:
            raw = little_endian(buffer, slots).astype(np.int64)
            number = np.where(raw >= 1 << 23, raw - (1 << 24), raw)
            clock = np.abs(number)
            return _Parts(
                hours=clock // 10_000, minutes=clock // 100 % 100, seconds=clock % 100,
                negative=number < 0,
            )  # fmt: skip
        case _:
            number = little_endian(buffer, slots).astype(np.int64)
            date, clock = number // MICROSECONDS, number % MICROSECONDS
            return _Parts(
                np.where(number < 0, 10_000, date // 10_000), date // 100 % 100, date % 100,
                clock // 10_000, clock // 100 % 100, clock % 100,
            )  # fmt: skip


def _fraction(buffer: Buffer, slots: Slots, at: int, column: ColumnFormat) -> Integers:
    if not column.digits:
        return _NONE
    found = big_endian(buffer, slots.starts + at, (column.digits + 1) // 2).astype(np.int64)
    # An odd number of digits is stored with a trailing 0.
    return found // 10 if column.digits & 1 else found


def _microseconds(fraction: Integers, digits: int, count: int) -> Integers:
    return fraction * 10 ** (6 - digits) if digits else np.zeros(count, np.int64)


def _clock(parts: _Parts) -> Integers:
    return (parts.hours * 60 + parts.minutes) * 60 + parts.seconds


def _check(parts: _Parts, valid: Flags | None, column: ColumnFormat) -> None:
    most_hours = 838 if len(parts.negative) else 23
    for values, most in (
        (parts.year, 9999),
        (parts.month, 12),
        (parts.day, 31),
        (parts.hours, most_hours),
        (parts.minutes, 59),
        (parts.seconds, 59),
        (parts.fraction, 10**column.digits - 1),
    ):
        wrong = values > most
        if valid is not None and len(wrong):
            wrong &= valid
        if wrong.any():
            raise BinlogError(f"{column.where}: a value that is no {column.type.name}")


def _days(parts: _Parts) -> tuple[Integers, Flags]:
    """Return days since 1970, and which are in the calendar."""
    year, month, day = parts.year, np.minimum(parts.month, 12), parts.day
    leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    last = _MONTHS[month] + (leap & (month == 2))
    # The calendars of Python and Spark begin with the year 1.
    there = (month > 0) & (day > 0) & (day <= last) & (year > 0)
    # Years begin in March here, so that the leap day is the last day of its year.
    shifted = year - (month <= 2)
    era = shifted // 400
    of_era = shifted - era * 400
    of_year = (153 * (month + np.where(month > 2, -3, 9)) + 2) // 5 + day - 1
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468, there


def _utc(seconds: Integers, microseconds: Integers, digits: int) -> _Parts:
    days, clock = seconds // _DAY, seconds % _DAY
    shifted = days + 719_468
    era = shifted // 146_097
    of_era = shifted - era * 146_097
    year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    month = (5 * of_year + 2) // 153
    day = of_year - (153 * month + 2) // 5 + 1
    month = month + np.where(month < 10, 3, -9)
    zero = seconds == 0
    return _Parts(
        np.where(zero, 0, year + era * 400 + (month <= 2)),
        np.where(zero, 0, month),
        np.where(zero, 0, day),
        clock // 3600,
        clock // 60 % 60,
        clock % 60,
        microseconds // 10 ** (6 - digits) if digits else _NONE,
    )


def _without(
    there: Flags, valid: Flags | None, column: ColumnFormat, *, nulls: bool
) -> Flags | None:
    absent = ~there if valid is None else ~there & valid
    if not absent.any():
        return valid
    if not nulls:
        raise NotSupportedError(
            f"{column.where}: 0000-00-00 or another date that is not in the calendar; read it as"
            " NULL or as text"
        )
    return there if valid is None else there & valid


def _text(parts: _Parts, digits: int, valid: Flags | None, count: int) -> pa.Array:
    """Write all parts side by side, then drop those that a value does not have."""
    columns: list[tuple[Integers, int, str]] = []
    signed = bool(len(parts.negative))
    dated = bool(len(parts.year))
    if dated:
        columns += [(parts.year, 4, ""), (parts.month, 2, "-"), (parts.day, 2, "-")]
    if len(parts.hours):
        columns += [
            (parts.hours, 3 if signed else 2, " " if dated else ""),
            (parts.minutes, 2, ":"),
            (parts.seconds, 2, ":"),
        ]
    if digits:
        columns.append((parts.fraction, digits, "."))
    width = sum(size + len(before) for _, size, before in columns)
    written = np.empty((count, width + signed), np.uint8)
    at = int(signed)
    for values, size, before in columns:
        if before:
            written[:, at] = ord(before)
            at += 1
        rest = values
        for place in range(size - 1, -1, -1):
            written[:, at + place] = rest % 10 + 48
            rest = rest // 10
        at += size
    kept = np.ones(written.shape, np.bool_)
    if signed:
        written[:, 0] = ord("-")
        kept[:, 0] = parts.negative
        kept[:, 1] = parts.hours >= 100
    if valid is not None:
        kept &= valid[:, None]
    return texts_of(written[kept], kept.sum(axis=1), valid)

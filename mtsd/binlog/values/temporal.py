"""Dates and times of row images and of JSON, as a SELECT shows them.

Text keeps what no other type does: zero dates and days that are not in the calendar, times of more
than a day and negative ones, and the digits of a fraction. TIMESTAMP is in UTC.

Integers are little-endian in the formats before 5.6.4 and in DATE, big-endian in the others
(MySQL documentation, "Date and Time Data Type Representation"). A fraction of 1 or 2 digits takes
1 byte, of 3 or 4 digits 2 bytes, else 3.
"""

from datetime import UTC, datetime, timedelta
from typing import Final

from mtsd.model.errors import BinlogError

ZERO_DATETIME: Final = "0000-00-00 00:00:00"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DATETIME2: Final = 1 << 39
_TIME2: Final = 1 << 23


def date_text(raw: bytes) -> str:
    """Decode a DATE: 5 bits of the day, 4 of the month, 15 of the year, little-endian."""
    bits = int.from_bytes(raw, "little")
    return _date(bits >> 9, bits >> 5 & 15, bits & 31)


def year_value(raw: bytes) -> int:
    """Decode a YEAR: since 1900; 0 is the year 0000."""
    return raw[0] + 1900 if raw[0] else 0


def time_text(raw: bytes) -> str:
    """Decode a TIME of the format before 5.6.4: hours, minutes and seconds as decimal digits."""
    number = int.from_bytes(raw, "little", signed=True)
    rest, seconds = divmod(abs(number), 100)
    hours, minutes = divmod(rest, 100)
    return _time(number < 0, hours, minutes, seconds, "")


def datetime_text(raw: bytes) -> str:
    """Decode a DATETIME of the format before 5.6.4: its parts as decimal digits."""
    rest, seconds = divmod(int.from_bytes(raw, "little"), 100)
    rest, minutes = divmod(rest, 100)
    rest, hours = divmod(rest, 100)
    rest, day = divmod(rest, 100)
    year, month = divmod(rest, 100)
    return f"{_date(year, month, day)} {_clock(hours, minutes, seconds)}"


def timestamp_text(raw: bytes) -> str:
    """Decode a TIMESTAMP of the format before 5.6.4: seconds since 1970."""
    return _instant(int.from_bytes(raw, "little"), "")


def timestamp2_text(raw: bytes, digits: int) -> str:
    """Decode a TIMESTAMP: seconds since 1970, then the fraction."""
    fraction = int.from_bytes(raw[4:], "big")
    return _instant(int.from_bytes(raw[:4], "big"), _fraction(fraction, digits))


def datetime2_text(raw: bytes, digits: int) -> str:
    """Decode a DATETIME: 1 bit sign, 17 year * 13 + month, 5 day, 5 hour, 6 minute, 6 second."""
    bits = int.from_bytes(raw[:5], "big") - _DATETIME2
    if bits < 0:
        raise BinlogError(f"{raw.hex()} is no DATETIME: it is negative")
    fraction = _fraction(int.from_bytes(raw[5:], "big"), digits)
    return _moment(bits, fraction)


def time2_text(raw: bytes, digits: int) -> str:
    """Decode a TIME: 1 bit sign, 1 unused, 10 hours, 6 minutes, 6 seconds, then the fraction.

    The whole, with its fraction, is offset by the sign bit, so negative ones borrow from it.
    """
    size = len(raw) - 3
    number = int.from_bytes(raw, "big") - (_TIME2 << 8 * size)
    bits = abs(number)
    fraction = _fraction(bits & (1 << 8 * size) - 1, digits)
    bits >>= 8 * size
    return _time(number < 0, bits >> 12 & 0x3FF, bits >> 6 & 63, bits & 63, fraction)


def packed_datetime_text(packed: int) -> str:
    """Decode a DATETIME or TIMESTAMP of a JSON document: a DATETIME and 24 bits of µs."""
    if packed < 0:
        raise BinlogError(f"{packed} is no DATETIME: it is negative")
    return _moment(packed >> 24, _fraction(packed & 0xFFFFFF, 6))


def packed_date_text(packed: int) -> str:
    """Decode a DATE of a JSON document, which is as a DATETIME at midnight."""
    return packed_datetime_text(packed)[:10]


def packed_time_text(packed: int) -> str:
    """Decode a TIME of a JSON document: a TIME and 24 bits of µs."""
    bits = abs(packed)
    fraction = _fraction(bits & 0xFFFFFF, 6)
    bits >>= 24
    return _time(packed < 0, bits >> 12 & 0x3FF, bits >> 6 & 63, bits & 63, fraction)


def _moment(bits: int, fraction: str) -> str:
    month, day = bits >> 22, bits >> 17 & 31
    date = _date(month // 13, month % 13, day)
    return f"{date} {_clock(bits >> 12 & 31, bits >> 6 & 63, bits & 63)}{fraction}"


def _instant(seconds: int, fraction: str) -> str:
    if seconds == 0:
        # No instant of a TIMESTAMP has this second.
        return ZERO_DATETIME + fraction
    moment = _EPOCH + timedelta(seconds=seconds)
    return f"{moment:%Y-%m-%d %H:%M:%S}{fraction}"


def _fraction(number: int, digits: int) -> str:
    if not digits:
        return ""
    # An odd number of digits is stored with a 0 behind it.
    text = f"{number:0{digits + digits % 2}d}"
    if len(text) > digits + digits % 2:
        raise BinlogError(f"{number} is no fraction of a second of {digits} digits")
    return "." + text[:digits]


def _date(year: int, month: int, day: int) -> str:
    if year > 9999 or month > 12 or day > 31:
        raise BinlogError(f"there is no date of year {year}, month {month}, day {day}")
    return f"{year:04d}-{month:02d}-{day:02d}"


def _clock(hours: int, minutes: int, seconds: int) -> str:
    if hours > 23 or minutes > 59 or seconds > 59:
        raise BinlogError(f"there is no time of day {hours}:{minutes}:{seconds}")
    return f"{hours:02d}:{minutes:02d}:{seconds:02d}"


def _time(negative: bool, hours: int, minutes: int, seconds: int, fraction: str) -> str:
    if hours > 838 or minutes > 59 or seconds > 59:
        raise BinlogError(f"there is no time {hours}:{minutes}:{seconds}")
    return f"{'-' if negative else ''}{hours:02d}:{minutes:02d}:{seconds:02d}{fraction}"

"""Literals that are written without a value in between are those of the decoded values."""

from collections.abc import Callable
from random import Random

import pytest

from mtsd.apply.sql.row_literals import DecimalLiterals, MomentLiterals
from mtsd.binlog.bytes.packed_decimal import packed_size, unpack_decimal
from mtsd.binlog.values.temporal import datetime2_text, timestamp2_text
from mtsd.model.errors import BinlogError


def made(make: Callable[[bytes], bytes], raw: bytes) -> bytes | str:
    """Return the literal, or what is wrong."""
    try:
        return make(raw)
    except BinlogError as error:
        return str(error)


def test_decimals() -> None:
    chance = Random(1)
    for _ in range(6000):
        digits = chance.randint(1, 65)
        scale = chance.randint(0, min(digits, 38))
        size = packed_size(digits, scale)
        some = bytes(chance.choice((0, 1, 5, 0x7F, 0x80, 0xFF)) for _ in range(size))
        raw = chance.choice((chance.randbytes(size), some, b"\x80" + bytes(size - 1)))

        def decoded(raw: bytes, digits: int = digits, scale: int = scale) -> bytes:
            return f"{unpack_decimal(raw, digits, scale):f}".encode()

        assert made(DecimalLiterals(digits, scale).of, raw) == made(decoded, raw)


@pytest.mark.parametrize("digits", range(7))
def test_moments(digits: int) -> None:
    chance = Random(digits)
    moments, instants = MomentLiterals(digits), MomentLiterals(digits)
    size = (digits + 1) // 2
    for _ in range(1500):
        behind = chance.choice((bytes(size), chance.randbytes(size)))
        # Mostly of few days: those are remembered.
        first = chance.choice((b"\x99\xb8\xc4", b"\x80\0\0", chance.randbytes(3)))
        raw = first + chance.randbytes(2) + behind
        found = made(moments.of_datetime, raw)
        assert found == made(lambda raw: b"'%b'" % datetime2_text(raw, digits).encode(), raw)
        raw = chance.choice((bytes(4), b"\x60\0" + chance.randbytes(2), chance.randbytes(4)))
        raw += behind
        found = made(instants.of_timestamp, raw)
        assert found == made(lambda raw: b"'%b'" % timestamp2_text(raw, digits).encode(), raw)

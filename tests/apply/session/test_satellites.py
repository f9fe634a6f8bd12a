"""The SQL for what a statement needs of its session besides its session state."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtsd.apply.session.satellites import (
    Collation,
    after_statement,
    before_statement,
    needs_collations,
)
from mtsd.model.errors import BinlogError, ServerError
from mtsd.model.step import Intvar, IntvarKind, Rand, Satellite, UserVar, UserVarType

COLLATIONS = {8: Collation(b"latin1_swedish_ci", b"latin1"), 63: Collation(b"binary", b"binary")}


def text(*satellites: Satellite) -> bytes:
    return before_statement(satellites, COLLATIONS)


def variable(kind: UserVarType, raw: bytes | None, *, unsigned: bool = False) -> UserVar:
    return UserVar(b"v", kind, 8, raw, unsigned)


def value(kind: UserVarType, raw: bytes, *, unsigned: bool = False) -> bytes:
    sql = text(variable(kind, raw, unsigned=unsigned))
    return sql.removeprefix(b"SET @`v`=").removesuffix(b",@@session.last_insert_id=0")


def test_session_values() -> None:
    assert text() == b"SET @@session.last_insert_id=0"
    largest = (1 << 64) - 1
    assert text(
        Intvar(IntvarKind.LAST_INSERT_ID, largest),
        Intvar(IntvarKind.INSERT_ID, largest),
        Rand(1, 2),
    ) == (
        b"SET @@session.last_insert_id=18446744073709551615,"
        b"@@session.insert_id=18446744073709551615,@@session.rand_seed1=1,@@session.rand_seed2=2"
    )


def test_each_type_is_kept() -> None:
    minus_five = (-5).to_bytes(8, "little", signed=True)
    assert value(UserVarType.INT, minus_five) == b"CAST(-5 AS SIGNED)"
    assert value(UserVarType.INT, b"\xff" * 8, unsigned=True) == (
        b"CAST(18446744073709551615 AS UNSIGNED)"
    )
    assert value(UserVarType.REAL, struct.pack("<d", 1.0)) == b"1.0000000000000000e+00"
    assert value(UserVarType.DECIMAL, b"\x05\x02\x80\x7b\x2d") == b"123.45"
    assert value(UserVarType.DECIMAL, b"\x03\x00\x80\x7b") == b"123."
    assert value(UserVarType.STRING, b"'\xe9") == b"_latin1 X'27e9' COLLATE `latin1_swedish_ci`"
    assert text(variable(UserVarType.STRING, None)).startswith(b"SET @`v`=X'',@`v`=NULL,")


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_comes_back_exactly(number: float) -> None:
    written = value(UserVarType.REAL, struct.pack("<d", number))
    assert b"e" in written
    assert struct.pack("<d", float(written)) == struct.pack("<d", number)


def test_names_are_quoted_and_values_forgotten() -> None:
    odd = UserVar(b"a`b", UserVarType.INT, 8, bytes(8), unsigned=False)
    assert text(odd).startswith(b"SET @`a``b`=CAST(0 AS SIGNED)")
    assert after_statement([odd, odd, Rand(1, 2)]) == b"SET @`a``b`=X'',@`a``b`=NULL"
    assert after_statement([Rand(1, 2)]) == b""


def test_what_the_target_does_not_know_or_nobody_has_written() -> None:
    unknown = UserVar(b"v", UserVarType.STRING, 999, b"x", unsigned=False)
    assert needs_collations([unknown])
    assert not needs_collations([variable(UserVarType.STRING, None), Rand(1, 2)])
    with pytest.raises(ServerError, match=r"no collation with id 999, which user variable @v"):
        text(unknown)
    for raw in (b"", b"\x05\x02", b"\x05\x02\x80\x7b", b"\x00\x00"):
        with pytest.raises(BinlogError):
            text(variable(UserVarType.DECIMAL, raw))

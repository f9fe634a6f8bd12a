import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtsd.binlog.bytes.cursor import Cursor
from mtsd.model.errors import BinlogError
from tests.binlog.building import net_int, varlen


def cursor(data: bytes) -> Cursor:
    return Cursor(data, 0, "test")


@given(st.integers(0, (1 << 64) - 1))
def test_length_encoded_integers(number: int) -> None:
    reading = cursor(net_int(number))
    assert reading.net_int("number") == number
    reading.finish()


@given(st.integers(0, (1 << 64) - 1))
def test_unsigned_integers_of_the_serialization_library(number: int) -> None:
    reading = cursor(varlen(number))
    assert reading.varlen_uint("number") == number
    reading.finish()


@pytest.mark.parametrize(
    ("encoded", "unsigned", "signed"),
    [
        # The four examples of the library's own documentation.
        ("fb ff 07", 65535, None),
        ("f3 ff 0f", None, 65535),
        ("eb ff 0f", None, None),
        ("fb ff 0f", None, -65536),
        ("00", 0, 0),
        ("ff ff ff ff ff ff ff ff ff", (1 << 64) - 1, -(1 << 63)),
    ],
)
def test_examples_of_the_serialization_library(
    encoded: str, unsigned: int | None, signed: int | None
) -> None:
    data = bytes.fromhex(encoded)
    if unsigned is not None:
        assert cursor(data).varlen_uint("number") == unsigned
    if signed is not None:
        assert cursor(data).varlen_int("number") == signed


@pytest.mark.parametrize(
    "data", [b"", b"\xfc\x01", b"\xfd\x01\x02", b"\xfe\0\0\0", b"\xfb", b"\xff"]
)
def test_cut_off_or_impossible_length_encoded_integers(data: bytes) -> None:
    with pytest.raises(BinlogError, match="test: "):
        cursor(data).net_int("number")


def test_nothing_is_read_past_the_end() -> None:
    reading = Cursor(b"abcdef", 1, "test", 4)
    with pytest.raises(BinlogError, match="name of 1000000000000 bytes at 1 exceeds the end 4"):
        reading.take(10**12, "name")
    with pytest.raises(BinlogError, match="name of 4 bytes"):
        reading.skip(4, "name")
    assert reading.take(3, "name") == b"bcd"
    reading.finish()


def test_leftovers_are_refused() -> None:
    with pytest.raises(BinlogError, match="3 unexpected bytes at its end"):
        cursor(b"abc").finish()


def test_text_that_is_none_is_refused() -> None:
    with pytest.raises(BinlogError, match="is not UTF-8"):
        cursor(b"\xff\xfe").text(2, "name")

import struct

import pytest

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.events.satellites import parse_intvar, parse_rand, parse_user_var
from mtsd.model.errors import BinlogError
from mtsd.model.step import Intvar, IntvarKind, Rand, UserVar, UserVarType
from tests.binlog.building import event
from tests.binlog.recording import Recording


def test_real_user_variables(recording: Recording) -> None:
    found = {variable.name: variable for variable in recording.decoded(UserVar)}
    assert set(found) == {b"n", b"i", b"u", b"r", b"d", b"s"}
    assert found[b"n"].raw is None
    assert (found[b"i"].type, found[b"i"].number()) == (UserVarType.INT, -5)
    assert (found[b"u"].unsigned, found[b"u"].number()) == (True, (1 << 64) - 1)
    assert (found[b"r"].type, found[b"r"].number()) == (UserVarType.REAL, 1.5)
    # Precision 3, scale 2; 1 and 25 packed, the sign's bit flipped.
    assert (found[b"d"].type, found[b"d"].raw) == (UserVarType.DECIMAL, b"\x03\x02\x81\x19")
    assert (found[b"s"].type, found[b"s"].raw, found[b"s"].number()) == (
        UserVarType.STRING,
        "ä".encode("latin1"),
        None,
    )
    ((latin1,),) = recording.server.sql(
        "SELECT ID FROM information_schema.COLLATIONS WHERE COLLATION_NAME = 'latin1_swedish_ci'"
    )
    assert found[b"s"].collation == latin1


def test_real_session_values(recording: Recording) -> None:
    found = recording.decoded(Intvar)
    assert Intvar(IntvarKind.INSERT_ID, 1) in found
    assert Intvar(IntvarKind.LAST_INSERT_ID, 1) in found
    (seeds,) = recording.decoded(Rand)
    assert 0 < seeds.seed1 < 1 << 30
    assert 0 < seeds.seed2 < 1 << 30


def test_intvar_and_rand_by_hand() -> None:
    assert parse_intvar(event(EventType.INTVAR_EVENT, b"\2" + b"\xff" * 8)) == Intvar(
        IntvarKind.INSERT_ID, (1 << 64) - 1
    )
    assert parse_rand(event(EventType.RAND_EVENT, struct.pack("<QQ", 5, 6))) == Rand(5, 6)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"\0" + bytes(8), "unknown kind 0"),
        (b"\3" + bytes(8), "unknown kind 3"),
        (b"\1" + bytes(7), "value of 8 bytes"),
        (b"\1" + bytes(9), "1 unexpected bytes"),
    ],
)
def test_what_intvar_refuses(body: bytes, message: str) -> None:
    with pytest.raises(BinlogError, match=message):
        parse_intvar(event(EventType.INTVAR_EVENT, body))


@pytest.mark.parametrize("size", [0, 15, 17])
def test_what_rand_refuses(size: int) -> None:
    with pytest.raises(BinlogError, match="Rand event"):
        parse_rand(event(EventType.RAND_EVENT, bytes(size)))


NUMBER = b"\1\0\0\0v\0\2\x3f\0\0\0\x08\0\0\0" + bytes(8)

# SET @g = POINT(1, 2), of a MariaDB 10.11.
POINT = bytes.fromhex(
    "01000000670000" "3f000000" "19000000" "000000000101000000000000000000f03f0000000000000040"
    "0205" "706f696e74"
)  # fmt: skip


def test_a_geometry_of_a_mariadb() -> None:
    found = parse_user_var(event(EventType.USER_VAR_EVENT, POINT))
    assert (found.name, found.geometry, found.raw) == (b"g", "point", POINT[15:40])


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"\xff\xff\xff\xffv", "name of 4294967295 bytes"),
        (b"\1\0\0\0v", "NULL flag of 1 bytes"),
        (NUMBER[:6] + b"\3" + NUMBER[7:], "unknown type 3"),
        (NUMBER[:-1], "value of 8 bytes"),
        (NUMBER[:11] + b"\4\0\0\0abcd", "a number of 4 bytes instead of 8"),
        (NUMBER + b"\2", "unknown flags 0x2"),
        (NUMBER + b"\1\0", "1 unexpected bytes"),
        (NUMBER + b"\2\5point", "unknown flags 0x2"),
        (POINT[:-1] + b"x", "unknown type b'poinx' of the value of @b'g'"),
        (POINT[:-1], "type's name of 5 bytes"),
        (POINT + b"\0", "1 unexpected bytes"),
    ],
)
def test_what_user_var_refuses(body: bytes, message: str) -> None:
    with pytest.raises(BinlogError, match=message):
        parse_user_var(event(EventType.USER_VAR_EVENT, body))

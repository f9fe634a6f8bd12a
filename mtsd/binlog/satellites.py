"""Intvar, Rand and User_var events: what a statement after them takes from its session.

Bodies, little-endian. Intvar: kind u8, value u64. Rand: two seeds u64. User_var: length of the
name u32, name, is NULL u8; unless NULL: type u8, collation u32, length of the value u32, value,
and perhaps flags u8 (1: unsigned) (MySQL documentation, `mysql::binlog::event::Intvar_event`,
`Rand_event`, `User_var_event`).
"""

import enum
import struct
from dataclasses import dataclass

from mtsd.binlog.cursor import Cursor
from mtsd.binlog.header import HEADER_SIZE
from mtsd.model.errors import BinlogError

_DOUBLE = struct.Struct("<d")
_UNSIGNED = 0x1


class IntvarKind(enum.IntEnum):
    """Which session value an Intvar event sets."""

    LAST_INSERT_ID = 1
    """What LAST_INSERT_ID() returns."""
    INSERT_ID = 2
    """The first value that AUTO_INCREMENT gives."""


@dataclass(frozen=True, slots=True)
class Intvar:
    """A session value for the next statement."""

    kind: IntvarKind
    value: int


@dataclass(frozen=True, slots=True)
class Rand:
    """The seeds of RAND() for the next statement."""

    seed1: int
    seed2: int


class UserVarType(enum.IntEnum):
    """The type of a user variable's value."""

    STRING = 0
    REAL = 1
    INT = 2
    DECIMAL = 4


@dataclass(frozen=True, slots=True)
class UserVar:
    """A user variable that the next statement reads.

    `raw` holds the value as it was written, None for NULL: bytes of the collation's character
    set, a double, an integer of 8 bytes, or precision u8, scale u8 and a packed decimal.
    """

    name: bytes
    type: UserVarType
    collation: int
    raw: bytes | None
    unsigned: bool

    def number(self) -> int | float | None:
        """Return the value of a REAL or INT variable, None for NULL and the other types."""
        if self.raw is None:
            return None
        if self.type is UserVarType.REAL:
            value: float = _DOUBLE.unpack(self.raw)[0]
            return value
        if self.type is UserVarType.INT:
            return int.from_bytes(self.raw, "little", signed=not self.unsigned)
        return None


def parse_intvar(event: bytes) -> Intvar:
    """Decode an Intvar event; BinlogError where it is cut off or of an unknown kind."""
    cursor = Cursor(event, HEADER_SIZE, "Intvar event")
    kind = cursor.uint(1, "kind")
    value = cursor.uint(8, "value")
    cursor.finish()
    try:
        return Intvar(IntvarKind(kind), value)
    except ValueError:
        raise BinlogError(f"Intvar event: kind {kind} is not known") from None


def parse_rand(event: bytes) -> Rand:
    """Decode a Rand event; BinlogError where its body is not 16 bytes."""
    cursor = Cursor(event, HEADER_SIZE, "Rand event")
    rand = Rand(cursor.uint(8, "first seed"), cursor.uint(8, "second seed"))
    cursor.finish()
    return rand


def parse_user_var(event: bytes) -> UserVar:
    """Decode a User_var event; BinlogError where it is cut off, or its type is unknown."""
    what = "User_var event"
    cursor = Cursor(event, HEADER_SIZE, what)
    name = cursor.take(cursor.uint(4, "length of the name"), "name")
    if cursor.uint(1, "NULL flag"):
        # Older servers write type and collation of a NULL too; they mean nothing.
        return UserVar(name, UserVarType.STRING, 0, None, unsigned=False)
    number = cursor.uint(1, "type")
    try:
        kind = UserVarType(number)
    except ValueError:
        raise BinlogError(f"{what}: type {number} is not known") from None
    collation = cursor.uint(4, "collation")
    raw = cursor.take(cursor.uint(4, "length of the value"), "value")
    if kind in {UserVarType.REAL, UserVarType.INT} and len(raw) != 8:
        raise BinlogError(f"{what}: a value of {len(raw)} bytes, 8 make a number")
    flags = cursor.uint(1, "flags") if cursor.left() else 0
    if flags & ~_UNSIGNED:
        raise BinlogError(f"{what}: flags {flags:#x} are not known")
    cursor.finish()
    return UserVar(name, kind, collation, raw, bool(flags & _UNSIGNED))

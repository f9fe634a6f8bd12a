"""Intvar, Rand and User_var events: what the statement after them needs from its session.

Bodies, little-endian. Intvar: kind u8, value u64. Rand: two seeds u64. User_var: name length
u32, name, is NULL u8; unless NULL: type u8, collation u32, value length u32, value,
and perhaps flags u8 (1: unsigned) (MySQL documentation, `mysql::binlog::event::Intvar_event`,
`Rand_event`, `User_var_event`). Where the flags would be, MariaDB has a 2 for a geometry, and the
name of its type after its length u8 (as logged by 10.11 and 11.8).
"""

from struct import Struct

from mtsd.binlog.bytes.cursor import Cursor
from mtsd.binlog.bytes.header import HEADER_SIZE
from mtsd.model.errors import BinlogError
from mtsd.model.step import Intvar, IntvarKind, Rand, UserVar, UserVarType

_INTVAR = Struct("<BQ")
_INTVAR_KINDS = {kind.value: kind for kind in IntvarKind}
_UNSIGNED = 0x1
_TYPE_NAME = 0x2
_GEOMETRIES = frozenset({
    b"geometry", b"point", b"linestring", b"polygon", b"multipoint", b"multilinestring",
    b"multipolygon", b"geometrycollection",
})  # fmt: skip


def parse_intvar(event: bytes) -> Intvar:
    """Decode an Intvar event; raises BinlogError if it is truncated or of an unknown kind."""
    if len(event) == HEADER_SIZE + _INTVAR.size:
        number: int
        found: int
        number, found = _INTVAR.unpack_from(event, HEADER_SIZE)
        known = _INTVAR_KINDS.get(number)
        if known is not None:
            return Intvar(known, found)
    # This says what is wrong.
    cursor = Cursor(event, HEADER_SIZE, "Intvar event")
    kind = cursor.uint(1, "kind")
    value = cursor.uint(8, "value")
    cursor.finish()
    try:
        return Intvar(IntvarKind(kind), value)
    except ValueError:
        raise BinlogError(f"Intvar event: unknown kind {kind}") from None


def parse_rand(event: bytes) -> Rand:
    """Decode a Rand event; raises BinlogError if its body is not 16 bytes."""
    cursor = Cursor(event, HEADER_SIZE, "Rand event")
    rand = Rand(cursor.uint(8, "first seed"), cursor.uint(8, "second seed"))
    cursor.finish()
    return rand


def parse_user_var(event: bytes) -> UserVar:
    """Decode a User_var event; raises BinlogError if it is truncated, or its type is unknown."""
    what = "User_var event"
    cursor = Cursor(event, HEADER_SIZE, what)
    name = cursor.take(cursor.uint(4, "name length"), "name")
    if cursor.uint(1, "NULL flag"):
        # Older servers write type and collation of a NULL too; they are meaningless.
        return UserVar(name, UserVarType.STRING, 0, None, unsigned=False)
    number = cursor.uint(1, "type")
    try:
        kind = UserVarType(number)
    except ValueError:
        raise BinlogError(f"{what}: unknown type {number}") from None
    collation = cursor.uint(4, "collation")
    raw = cursor.take(cursor.uint(4, "value length"), "value")
    if kind in {UserVarType.REAL, UserVarType.INT} and len(raw) != 8:
        raise BinlogError(f"{what}: a number of {len(raw)} bytes instead of 8")
    flags = cursor.uint(1, "flags") if cursor.left() else 0
    if flags == _TYPE_NAME and kind is UserVarType.STRING:
        geometry = cursor.take(cursor.uint(1, "length of the type's name"), "type's name")
        cursor.finish()
        if geometry not in _GEOMETRIES:
            raise BinlogError(f"{what}: unknown type {geometry[:80]!r} of the value of @{name!r}")
        return UserVar(name, kind, collation, raw, unsigned=False, geometry=geometry.decode())
    if flags & ~_UNSIGNED:
        raise BinlogError(f"{what}: unknown flags {flags:#x}")
    cursor.finish()
    return UserVar(name, kind, collation, raw, bool(flags & _UNSIGNED))

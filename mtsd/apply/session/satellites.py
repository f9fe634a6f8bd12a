"""The SQL that gives a session what Intvar, Rand and User_var events hold for the next statement.

Each value is written so that the variable gets the type and the collation that it had on the
source: a statement such as CREATE TABLE … SELECT @v depends on them.
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from mtsd.apply.sql.literals import blob
from mtsd.binlog.bytes.packed_decimal import packed_size, unpack_decimal
from mtsd.binlog.sql.quoting import of_bytes, quoted
from mtsd.model.error_numbers import ER
from mtsd.model.errors import BinlogError, ServerError
from mtsd.model.step import Intvar, IntvarKind, Rand, Satellite, Statement, UserVar, UserVarType

_DOUBLE = struct.Struct("<d")
_INTVARS = {
    IntvarKind.LAST_INSERT_ID: b"@@session.last_insert_id=%d",
    IntvarKind.INSERT_ID: b"@@session.insert_id=%d",
}
_NO_LAST_INSERT_ID = b"@@session.last_insert_id=0"


@dataclass(frozen=True, slots=True)
class Collation:
    """A collation of the target and its character set, by name."""

    name: bytes
    character_set: bytes


def before_statement(
    satellites: Sequence[Satellite],
    collations: Mapping[int, Collation],
    *,
    finds_null: bool = True,
) -> bytes:
    """Return the statement to run before a statement, in the session's pinned state.

    It is a SET, in a block if a MariaDB has variables that are geometries; b"" if nothing is to be
    set. With `finds_null`, LAST_INSERT_ID() becomes 0 if no event sets it: see the function of that
    name. Raises ServerError if the target lacks a collation of `satellites`, BinlogError.
    """
    sets = [_assignment(each, place, collations) for place, each in enumerate(satellites)]
    given = any(
        isinstance(each, Intvar) and each.kind is IntvarKind.LAST_INSERT_ID for each in satellites
    )
    if finds_null and not given:
        sets.append(_NO_LAST_INSERT_ID)
    if not sets:
        return b""
    statement = b"SET " + b",".join(sets)
    # Functions return no POINT and the like of any SRID; what a block declares has its type.
    declared = b"".join(
        b"DECLARE g%d %b DEFAULT %b;" % (place, each.geometry.encode(), blob(each.raw or b""))
        for place, each in enumerate(satellites)
        if is_geometry(each)
    )
    return b"BEGIN NOT ATOMIC %b%b;END" % (declared, statement) if declared else statement


def finds_null(statement: Statement) -> bool:
    """Return whether a comparison with NULL may find a row by LAST_INSERT_ID(): sql_auto_is_null.

    For `WHERE id IS NULL` a source logs LAST_INSERT_ID() only if it is not 0, while the target's is
    what an earlier statement has left. Whatever else uses it, in a routine too, is logged with
    it, also if it is 0 (seen with MySQL 9.7 and MariaDB 11.8).
    """
    return statement.query.context.auto_is_null is not False


def is_geometry(satellite: Satellite) -> TypeGuard[UserVar]:
    """Return whether this is a variable of a MariaDB whose value is a geometry."""
    return isinstance(satellite, UserVar) and bool(satellite.geometry)


def after_statement(satellites: Sequence[Satellite]) -> bytes:
    """Return the SET statement that forgets the values of user variables; b"" if there are none.

    INSERT_ID cannot be unset. It is used up by the statement; if that failed earlier, what
    generates a value next brings an INSERT_ID of its own.
    """
    names = dict.fromkeys(each.name for each in satellites if isinstance(each, UserVar))
    return b"SET " + b",".join(map(_null, names)) if names else b""


def needs_collations(satellites: Sequence[Satellite]) -> bool:
    """Return whether `before_statement` looks up collations."""
    return any(
        isinstance(each, UserVar) and each.type is UserVarType.STRING and each.raw is not None
        for each in satellites
    )


def _assignment(satellite: Satellite, place: int, collations: Mapping[int, Collation]) -> bytes:
    match satellite:
        case Intvar():
            return _INTVARS[satellite.kind] % satellite.value
        case Rand():
            return b"@@session.rand_seed1=%d,@@session.rand_seed2=%d" % (
                satellite.seed1,
                satellite.seed2,
            )
    if satellite.raw is None:
        return _null(satellite.name)
    if satellite.geometry:
        return b"%b=g%d" % (_quoted(satellite.name), place)
    return b"%b=%b" % (_quoted(satellite.name), _value(satellite, satellite.raw, collations))


def _value(variable: UserVar, raw: bytes, collations: Mapping[int, Collation]) -> bytes:
    match variable.type:
        case UserVarType.INT:
            kind = b"UNSIGNED" if variable.unsigned else b"SIGNED"
            return b"CAST(%d AS %b)" % (variable.number() or 0, kind)
        case UserVarType.REAL:
            # The 17 digits that make it the same double again. Without an exponent it would be
            # a DECIMAL.
            return b"%.16e" % _DOUBLE.unpack(raw)[0]
        case UserVarType.DECIMAL:
            return _decimal(variable.name, raw)
        case UserVarType.STRING:
            collation = collations.get(variable.collation)
            if collation is None:
                raise ServerError(
                    ER.UNKNOWN_COLLATION,
                    "HY000",
                    f"the target has no collation with id {variable.collation}, which user"
                    f" variable @{variable.name.decode('utf-8', 'replace')} of the statement has",
                )
            return b"_%b %b COLLATE `%b`" % (collation.character_set, blob(raw), collation.name)


def _decimal(name: bytes, raw: bytes) -> bytes:
    if len(raw) < 3 or len(raw) - 2 != packed_size(raw[0], raw[1]):
        raise BinlogError(f"User_var event: @{name!r} is no DECIMAL: {raw.hex()}")
    text = f"{unpack_decimal(raw[2:], raw[0], raw[1]):f}"
    # Without a point it would be an integer.
    return (text if "." in text else text + ".").encode()


def _null(name: bytes) -> bytes:
    """Return the assignment of NULL to a variable as a replica has it: of type BINARY.

    A NULL by itself would leave the variable's former type.
    """
    return b"%b=X'',%b=NULL" % (_quoted(name), _quoted(name))


def _quoted(name: bytes) -> bytes:
    return b"@" + quoted(of_bytes(name), None)

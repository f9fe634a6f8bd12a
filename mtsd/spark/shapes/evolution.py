"""How the columns of a table evolve (option `evolve`), and what one DataFrame makes of it.

ALTER TABLE                   rows before it        rows after it
ADD COLUMN c INT              c is NULL             c
DROP COLUMN c                 c                     c is NULL
MODIFY a BIGINT (from INT)    a as BIGINT           a
RENAME COLUMN a TO b          an error that names both: nobody can say what b was before
"""

from collections.abc import Iterable, Mapping
from typing import Final

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_type

from mtsd.binlog.sql.words import Words
from mtsd.model.step import QueryEvent
from mtsd.spark.options.options import OptionError

_DIGITS: Final = {1: 3, 2: 5, 4: 10, 8: 19}
"""The decimal digits of an integer, by its size in bytes."""
_MAX_DIGITS: Final = 38
_EXACT_IN_DOUBLE: Final = 4
"""The size of the largest integers that a DOUBLE can hold without loss."""
_NO_COLUMNS: Final = frozenset({b"INDEX", b"KEY", b"CONSTRAINT", b"TO", b"AS"})
"""What else a RENAME in an ALTER TABLE may be of."""


def united(definitions: Iterable[Mapping[str, pa.DataType]]) -> dict[str, pa.DataType]:
    """Return the columns of all definitions, oldest first, each of a type that holds all values.

    Names that differ only in case are the same, unless one definition has both. Raises OptionError,
    which shows both types, if there is no such type.
    """
    types: dict[str, pa.DataType] = {}
    for definition in definitions:
        for given, kind in definition.items():
            alike = [
                name
                for name in types
                if name not in definition and name.casefold() == given.casefold()
            ]
            name = alike[0] if given not in types and len(alike) == 1 else given
            type_of_both = wider(types.get(name, kind), kind)
            if type_of_both is None:
                raise OptionError(
                    f"column `{name}` was {shown_type(types[name])} and is {shown_type(kind)} now,"
                    " and no type holds both: give its type by .schema(…), leave it out by option"
                    " 'columns', or read what is before and after the statement each on its own"
                )
            types[name] = type_of_both
    return types


def wider(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """Return a type that holds the values of both without loss; None if there is none."""
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    for this, that in ((one, other), (other, one)):
        if pa.types.is_string(this) and (_is_exact(that) or pa.types.is_floating(that)):
            return this
        if pa.types.is_floating(this) and (
            pa.types.is_floating(that)
            or (pa.types.is_integer(that) and that.byte_width <= _EXACT_IN_DOUBLE)
        ):
            return pa.float64()
        if this == pa.timestamp("us") and pa.types.is_date(that):
            return this
    if pa.types.is_integer(one) and pa.types.is_integer(other):
        return max(one, other, key=lambda kind: kind.byte_width)
    if _is_exact(one) and _is_exact(other):
        (whole, scale), (more, digits) = _whole_and_scale(one), _whole_and_scale(other)
        scale = max(scale, digits)
        precision = max(whole, more) + scale
        return pa.decimal128(precision, scale) if precision <= _MAX_DIGITS else None
    return None


def may_become(kind: pa.DataType, asked: pa.DataType) -> bool:
    """Tell whether values of one type can be converted to another, range permitting."""
    whole = pa.types.is_integer
    exact = pa.types.is_decimal
    return bool(
        kind == asked
        or (whole(kind) and (whole(asked) or exact(asked)))
        or (exact(kind) and exact(asked))
        or (exact(kind) and kind.scale == 0 and whole(asked))
        or (pa.types.is_list(kind) and pa.types.is_list(asked))
        or wider(kind, asked) == asked
    )


def shown_type(kind: pa.DataType) -> str:
    """Return a type as Spark writes it: bigint, decimal(20,0)."""
    return str(from_arrow_type(kind).simpleString())


def renamed(query: QueryEvent) -> list[tuple[str, str]]:
    """Return the former and the present names of the columns that an ALTER TABLE renames."""
    words = Words(query.text)
    if words.word() != b"ALTER":
        return []
    renames: list[tuple[str, str]] = []
    for token in words.outer_words():
        if token.text == b"RENAME" and not any(map(words.at_word, _NO_COLUMNS)):
            if not words.at_word(b"COLUMN"):
                continue
            words.take_words(b"COLUMN", b"IF", b"EXISTS")
            _, before = words.take_name()
            words.take_words(b"TO")
            renames.append((before, words.take_name()[1]))
        elif token.text == b"CHANGE":
            words.take_words(b"COLUMN", b"IF", b"EXISTS")
            _, before = words.take_name()
            renames.append((before, words.take_name()[1]))
    return [(before, after) for before, after in renames if before.casefold() != after.casefold()]


def _is_exact(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_decimal(kind))


def _whole_and_scale(kind: pa.DataType) -> tuple[int, int]:
    if pa.types.is_decimal(kind):
        return kind.precision - kind.scale, kind.scale
    return _DIGITS[kind.byte_width], 0

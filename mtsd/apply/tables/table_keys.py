"""Which keys of a table's rows tell what they depend on, and where only the whole table does.

What must be in order are changes that have a key of the target in common: its unique keys are what
conflicts, its foreign keys what is missing or in the way, whatever the source has. A key counts
only if equal values of it can be recognized by the bytes in the source's row events. If one of a
table's keys does not, all changes of the table are in order.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from mtsd.apply.tables.column_fit import ColumnShape, Fit, fit, shapes_of_event
from mtsd.apply.tables.key_definitions import (
    DefinedColumn,
    ForeignKey,
    TableName,
    UniqueKeys,
    UniquePart,
)
from mtsd.apply.tables.table_columns import TableColumn
from mtsd.binlog.bytes.character_sets import character_set
from mtsd.binlog.events.table_map import TableMap
from mtsd.binlog.values.column_format import ColumnFormat, column_formats
from mtsd.binlog.values.column_type import ColumnType
from mtsd.binlog.values.row_keys import Equality, KeyPart, RowKey
from mtsd.model.errors import NotSupportedError

WITH_KEYS: Final = frozenset({"innodb", "myisam", "aria"})
"""Storage engines whose tables have keys as InnoDB has them."""
BY_THEMSELVES: Final = WITH_KEYS | {"memory", "heap", "csv", "archive", "blackhole", "rocksdb"}
"""Storage engines whose tables have rows of their own: not those of other tables or servers."""

_DOCUMENT: Final = "FTS_DOC_ID"
"""MySQL manual, "InnoDB Full-Text Document ID and FTS_DOC_ID Column"."""
_T = ColumnType
_BY_BYTES: Final = frozenset({
    _T.TINY, _T.SHORT, _T.INT24, _T.LONG, _T.LONGLONG, _T.YEAR, _T.DATE, _T.TIME2, _T.DATETIME2,
    _T.TIMESTAMP2, _T.NEWDECIMAL, _T.BIT,
})  # fmt: skip
_NUMBERED: Final = frozenset({_T.ENUM, _T.SET})
_BY_NUMBER: Final = frozenset({_T.FLOAT, _T.DOUBLE})
_TEXTS: Final = frozenset({_T.STRING, _T.VARCHAR, _T.BLOB})
_LETTERS: Final = frozenset({
    "ascii_general_ci", "latin1_general_ci", "latin1_general_cs", "latin1_swedish_ci",
    "latin1_swedish_nopad_ci",
    *(
        f"{charset}_{name}"
        for charset in ("utf8", "utf8mb3", "utf8mb4")
        for name in (
            "general_ci", "general_nopad_ci", "unicode_ci", "unicode_nopad_ci", "unicode_520_ci",
            "unicode_520_nopad_ci",
        )
    ),
    "utf8mb4_0900_ai_ci", "utf8mb4_0900_as_ci", "utf8mb4_0900_as_cs",
    *(
        f"{charset}_uca1400_{pad}{name}"
        for charset in ("utf8mb3", "utf8mb4")
        for pad in ("", "nopad_")
        for name in ("ai_ci", "as_ci", "ai_cs", "as_cs")
    ),
})  # fmt: skip
"""Collations in which printable ASCII is equal only if it differs in nothing but case and spaces at
its end. Those of some languages know more, as "ccs" = "cscs" in Hungarian."""


@dataclass(frozen=True, slots=True)
class ByRow:
    """A table whose rows tell what they depend on, by `keys`; `formats` are the source's."""

    formats: tuple[ColumnFormat, ...]
    keys: tuple[RowKey, ...]


@dataclass(frozen=True, slots=True)
class AsWhole:
    """A table of which any two changes may conflict; `reason` says why."""

    reason: str


@dataclass(frozen=True, slots=True)
class _Part:
    """A column of a key: its place from 0, how its values compare, and what their bytes are."""

    place: int
    equality: Equality
    shape: ColumnShape
    charset: str
    nullable: bool


def keys_of(
    table: TableMap,
    name: TableName,
    tables: Mapping[TableName, UniqueKeys],
    foreign_keys: Sequence[ForeignKey],
    *,
    as_sql: bool,
) -> ByRow | AsWhole:
    """Decide by which keys rows of a table map depend on others.

    `name` is the table's among the `tables` of the target, and `foreign_keys` are those of it and
    to it. With `as_sql`, the target gets values rather than the bytes of the row events. Raises
    BinlogError.
    """
    unique = tables.get(name)
    if unique is None:
        return AsWhole("the target does not have it, or hides it")
    reason = why_whole(unique) or _foreign_reason(tables, foreign_keys)
    if reason:
        return AsWhole(reason)
    try:
        formats = column_formats(table)
        shapes = shapes_of_event(table)
        if len(formats) != len(unique.columns):
            counts = f"{len(formats)} columns on the source, {len(unique.columns)} on the target"
            return AsWhole(counts)
        if unique.columns[0].column.generated_key and not table.has_generated_key:
            return AsWhole("its columns are those after a primary key that the target has added")
        keys = tuple(_keys(name, unique, foreign_keys))
        for place in sorted({part.column for key in keys for part in key.parts}):
            column = unique.columns[place].column
            reason = _why_other(formats[place], shapes[place], column, as_sql=as_sql)
            if reason:
                return AsWhole(reason)
    except NotSupportedError as error:
        return AsWhole(str(error))
    return ByRow(formats, keys)


def why_whole(unique: UniqueKeys) -> str:
    """Return why a table's own keys do not tell what its rows depend on; "" if they do."""
    if unique.engine not in WITH_KEYS:
        return f"its storage engine is {unique.engine}"
    if unique.versioned:
        return "it has system versioning"
    if unique.overlaps:
        return "a key of it is about periods that overlap"
    if any(each.column.name == _DOCUMENT for each in unique.columns):
        return "it has a column of document ids, which InnoDB accepts in growing order only"
    for key in unique.unique:
        if not _parts(unique, key):
            named = ", ".join(part.column or "an expression" for part in key)
            return f"values of its unique key ({named}) may be equal unnoticed"
    if _identity(unique) is None:
        return "it has neither a primary key nor a unique one without NULL"
    return ""


def _foreign_reason(
    tables: Mapping[TableName, UniqueKeys], foreign_keys: Sequence[ForeignKey]
) -> str:
    """Return why foreign keys do not tell which row refers to which; "" if they do."""
    for foreign in foreign_keys:
        child, parent = tables.get(foreign.table), tables.get(foreign.parent)
        mine = _parts(child, _whole_columns(foreign.columns)) if child else None
        others = _parts(parent, _whole_columns(foreign.parent_columns)) if parent else None
        if not mine or not others or list(map(_compared, mine)) != list(map(_compared, others)):
            one, other = (".".join(each) for each in (foreign.table, foreign.parent))
            return f"rows of {one} may refer to rows of {other} unnoticed"
    return ""


def _compared(part: _Part) -> tuple[Equality, ColumnType, int, int, str]:
    """Return what a column must have in common with another to have the same bytes.

    Of texts, the sizes may differ.
    """
    shape = part.shape
    if shape.type in _TEXTS:
        return part.equality, ColumnType.VARCHAR, 0, 0, part.charset
    return part.equality, shape.type, shape.size, shape.scale, ""


def _keys(
    name: TableName, unique: UniqueKeys, foreign_keys: Sequence[ForeignKey]
) -> Iterator[RowKey]:
    identity = _identity(unique)
    for key in unique.unique:
        number = hash(("unique", name, key))
        yield RowKey(number, _key_parts(unique, key), always=key is identity)
    referred: dict[tuple[str, ...], list[ForeignKey]] = {}
    for foreign in foreign_keys:
        if foreign.parent == name:
            referred.setdefault(foreign.parent_columns, []).append(foreign)
    for columns, by in referred.items():
        yield RowKey(
            _referred(name, columns),
            _key_parts(unique, _whole_columns(columns)),
            cascades_deletes=any(each.cascades_deletes for each in by),
            cascades_updates=any(each.cascades_updates for each in by),
        )
    for foreign in foreign_keys:
        if foreign.table == name:
            yield RowKey(
                _referred(foreign.parent, foreign.parent_columns),
                _key_parts(unique, _whole_columns(foreign.columns)),
                # The row changes with its parent, so each change of it has to be in order.
                always=foreign.cascades_deletes or foreign.cascades_updates,
                refers=True,
            )


def _referred(parent: TableName, columns: tuple[str, ...]) -> int:
    return hash(("referred", parent, tuple(column.lower() for column in columns)))


def _whole_columns(columns: Sequence[str]) -> tuple[UniquePart, ...]:
    return tuple(map(UniquePart, columns))


def _key_parts(unique: UniqueKeys, key: Sequence[UniquePart]) -> tuple[KeyPart, ...]:
    return tuple(
        KeyPart(part.place, part.equality, part.nullable, of.characters)
        for part, of in zip(_parts(unique, key) or (), key, strict=True)
    )


def _identity(unique: UniqueKeys) -> tuple[UniquePart, ...] | None:
    """Return the first unique key without NULL: every row has a value of it."""
    for key in unique.unique:
        parts = _parts(unique, key)
        if parts and not any(part.nullable for part in parts):
            return key
    return None


def _parts(unique: UniqueKeys, key: Sequence[UniquePart]) -> list[_Part] | None:
    """Return a key's columns; None if equal values may have bytes that tell nothing."""
    places = {each.column.name.lower(): place for place, each in enumerate(unique.columns)}
    parts = []
    for part in key:
        place = places.get(part.column.lower())
        if place is None:
            return None
        column = unique.columns[place]
        shape = column.column.shape
        equality = _equality(column)
        if shape is None or equality is None or column.generated:
            return None
        charset = column.column.collation.partition("_")[0]
        parts.append(_Part(place, equality, shape, charset, column.nullable))
    return parts or None


def _equality(column: DefinedColumn) -> Equality | None:
    shape, collation = column.column.shape, column.column.collation
    if shape is None or shape.array:
        return None
    if shape.type in _BY_BYTES | _NUMBERED:
        return Equality.BYTES
    if shape.type in _BY_NUMBER:
        return Equality.NUMBERS
    if shape.type not in _TEXTS:
        return None
    if collation in {"", "binary"} or collation.endswith("_bin"):
        return Equality.PADDED
    return Equality.LETTERS if letters_only(collation) else None


def letters_only(collation: str) -> bool:
    """Return whether printable ASCII is equal in a collation only as `Equality.LETTERS` says."""
    return collation in _LETTERS


def _why_other(column: ColumnFormat, here: ColumnShape, there: TableColumn, *, as_sql: bool) -> str:
    """Return why the bytes of a source's column do not tell the values that the target gets."""
    shape = there.shape
    if column.name and column.name.lower() != there.name.lower():
        return f"{column.where} is {there.name!r} on the target"
    if shape is None or here.type is not shape.type or fit(here, shape) is not Fit.EXACT:
        return f"{column.where} is {here} on the source, {there.text} on the target"
    if column.compressed:
        return f"{column.where} is compressed"
    if not as_sql:
        return ""
    if here.type in _NUMBERED:
        return f"{column.where} has members, which the target may number otherwise"
    if column.collation is None or not there.collation:
        return ""
    charsets = character_set(column.collation), there.collation.partition("_")[0]
    one, other = (name.replace("utf8mb3", "utf8") for name in charsets)
    return "" if one == other else f"{column.where} is {one} on the source, {other} on the target"


def families_of(foreign_keys: Iterable[ForeignKey]) -> dict[TableName, frozenset[TableName]]:
    """Return all tables that foreign keys join to each table, itself among them."""
    joined: dict[TableName, frozenset[TableName]] = {}
    for foreign in foreign_keys:
        both = joined.get(foreign.table, frozenset({foreign.table}))
        both |= joined.get(foreign.parent, frozenset({foreign.parent}))
        joined |= dict.fromkeys(both, both)
    return joined

"""How the rows of a source's table are written to the target's: names, types and keys.

Columns correspond by name if the source logs names (binlog_row_metadata = FULL), else by position,
as they do in the server's own replica. A table whose columns do not fit is refused before anything
is written: SQL would convert values that a row event would not.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from mtsd.apply.sql import literals
from mtsd.apply.sql.row_literals import (
    MakeLiteral,
    is_text,
    json_as_text,
    literal_maker,
    text_as_json,
    with_offset,
)
from mtsd.apply.tables.column_fit import INTEGERS, ColumnShape, Fit, fit_as_sql, shapes_of_event
from mtsd.apply.tables.table_columns import TableColumn, without_generated_key
from mtsd.binlog.bytes.character_sets import BINARY, character_set
from mtsd.binlog.events.table_map import TableMap
from mtsd.binlog.values.column_format import HASH, ColumnFormat, column_formats, is_hidden
from mtsd.binlog.values.column_type import ColumnType
from mtsd.catalog.definition import loaded_definition
from mtsd.model.outcome.reason import Reason, Refused, refuse

NO_TABLE = Reason("table {table} does not exist on the target", "create it there")
TRIGGERS = Reason(
    "table {table} has triggers on the target ({triggers}), which would fire again for rows that"
    " the source's have changed already",
    'drop them there, or set [target] apply_mode = "binlog", except while what consistency ='
    ' "eventual" has left is repaired, which takes SQL',
)
VERSIONED = Reason(
    "table {table} has system versioning on the target: the source, a MariaDB, may log the history"
    " of its rows, which no statement can write there",
    'drop system versioning there, or set [target] apply_mode = "binlog"',
)
MISSING = Reason(
    "table {table} has no column {column} on the target, which has {count} columns",
    "give it the source's definition (ALTER TABLE on the target)",
)
MISFIT = Reason(
    "column {column} of table {table} is {source} on the source and {target} on the target",
    "give it the source's type (ALTER TABLE on the target)",
)


@dataclass(frozen=True, slots=True)
class TargetTable:
    """What the target's information schema says about a table; no columns: it does not exist."""

    columns: tuple[TableColumn, ...]
    keys: tuple[tuple[str, ...], ...]
    """Unique keys of whole columns that cannot be NULL, the primary key first."""
    triggers: tuple[str, ...]
    versioned: bool = False
    """It has system versioning, and may have columns that are not in `columns`."""
    hashed: int = 0
    """How many of its unique keys a MariaDB keeps by a hidden column each, see `_hidden`."""
    unique: tuple[tuple[str, ...], ...] = ()
    """The columns of all its unique keys, in the order of `keys`; "" is an expression."""
    cascades: bool = False
    """Foreign keys of other tables change their rows with its own."""
    indexed: bool = True
    """It has an index, of whatever kind."""
    parents: tuple[tuple[str, str], ...] = ()
    """Database and name of the tables that its foreign keys refer to."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What stands before and after a literal, so that only the same value is equal.

    If it is `bare`, the literal is without the introducer of its character set.
    """

    before: bytes
    after: bytes = b""
    bare: bool = False


@dataclass(frozen=True, slots=True)
class LayoutColumn:
    """A column of the source: how it is written on the target.

    `name` is quoted. A column is not `written` if the target generates it. `compares` is how it is
    compared with a literal where no key finds the row. Not every one finds its literals `in_rows`,
    that is in a list such as (a, b) IN ((1, 2), (3, 4)).
    """

    name: bytes
    make: MakeLiteral
    written: bool
    compares: Comparison
    in_rows: bool = False
    json_as_text: bool = False
    """It holds JSON documents of the source as text."""
    zoned: bool = False
    """It is a TIMESTAMP whose literals have an offset: it is compared `at_instant`."""
    hidden: bool = False
    """No statement can name it, see `_hidden`."""
    in_cases: bool = False
    """A CASE leaves its literals as they are."""


@dataclass(frozen=True, slots=True)
class TableLayout:
    """A table; columns are in the order of the source's row images, and keys are indexes of them.

    `name` is quoted, and `label` is for messages. `kept` are columns, quoted, that the target
    changes by itself in an UPDATE that does not set them. `takes_time` says that it has columns of
    its own besides, which may have the time of an INSERT as their default.
    """

    name: bytes
    label: str
    formats: tuple[ColumnFormat, ...]
    columns: tuple[LayoutColumn, ...]
    keys: tuple[tuple[int, ...], ...]
    kept: tuple[bytes, ...] = ()
    takes_time: bool = False
    computed: bool = False
    """The target computes something from its rows: see `mtsd.apply.tables.computed_tables`."""
    zoned: bool = False
    """Its TIMESTAMPs are written alike in every time zone of the session."""
    others: tuple[int, ...] | None = None
    """Columns of its unique keys besides the first of `keys`; None where not all that a change of a
    row meets is known, so that its rows keep their order."""
    cascades: bool = False
    """Foreign keys of other tables change their rows with its own."""
    parents: tuple[bytes, ...] = ()
    """The tables, quoted, that its foreign keys refer to."""
    heap: bool = False
    """It has no index: a search reads all of it, and rows that are the same can be told apart by
    nobody."""


def at_instant(name: bytes, literal: bytes) -> bytes:
    """Return the condition that a column is the TIMESTAMP of a literal with an offset.

    A server compares what the session's clocks show, which is the same twice when they are put
    back. An index is used for what they show; only then, for everything within a day of it.
    """
    if literal.startswith(b"'0000"):
        return b"%b=%b" % (name, literal)
    instant = b"TIMESTAMPDIFF(MICROSECOND,'1970-01-01',%b')" % literal.partition(b"+")[0]
    shown = b"CAST(%b AS DATETIME(6))" % literal
    around = b"INTERVAL UNIX_TIMESTAMP(%b)*1000000<>%b DAY" % (shown, instant)
    return b"(%b BETWEEN %b-%b AND %b+%b AND UNIX_TIMESTAMP(%b)*1000000=%b)" % (
        name, shown, around, shown, around, name, instant,
    )  # fmt: skip


def layout_of(
    table: TableMap, found: TargetTable, *, computed: bool = False, zoned: bool = False
) -> TableLayout | Refused:
    """Decide how a table's rows are written: see `TableLayout` for `computed` and `zoned`.

    Raises BinlogError, NotSupportedError.
    """
    label = f"{table.database}.{table.table}"
    if not found.columns:
        return refuse(NO_TABLE, table=label)
    if found.triggers:
        return refuse(TRIGGERS, table=label, triggers=", ".join(found.triggers))
    if found.versioned and table.mariadb:
        return refuse(VERSIONED, table=label)
    formats = column_formats(table, for_rows=False)
    shapes = shapes_of_event(table)
    by_name = {column.name.lower(): column for column in found.columns}
    in_order = without_generated_key(found.columns, in_events=table.has_generated_key)
    matched: list[TableColumn] = []
    hidden = _hidden(table, formats, found, len(in_order))
    for index, column in enumerate(formats):
        if index in hidden:
            matched.append(hidden[index])
            continue
        if column.name:
            there = by_name.get(column.name.lower())
        else:
            there = in_order[index] if index < len(in_order) else None
        if there is None:
            name = repr(column.name) if column.name else str(index + 1)
            count = len(in_order)
            return refuse(MISSING, table=label, column=name, count=count)
        if there.shape is None or fit_as_sql(shapes[index], there.shape) not in _SAFE:
            return refuse(
                MISFIT, table=label, column=repr(there.name), source=shapes[index],
                target=there.text,
            )  # fmt: skip
        matched.append(there)
    declared = loaded_definition(
        table.database,
        table.table,
        [
            (there.name, *_as_logged(form.type, there))
            for form, there in zip(formats, matched, strict=True)
        ],
    ).declared(table)
    formats = column_formats(table, declared)
    place = {there.name.lower(): index for index, there in enumerate(matched)}
    keys = tuple(
        tuple(place[name.lower()] for name in key)
        for key in found.keys
        if all(
            name.lower() in place and formats[place[name.lower()]].type is not ColumnType.SET
            for name in key
        )
    )
    quoted = literals.quoted(table.database) + b"." + literals.quoted(table.table)
    columns = tuple(
        replace(_column(there, column, zoned=zoned), hidden=index in hidden)
        for index, (there, column) in enumerate(zip(matched, formats, strict=True))
    )
    kept = [each.name for each in found.columns if "ON UPDATE" in each.extra.upper()]
    takes_time = any(
        each not in matched and _is_written(each) and "AUTO_INCREMENT" not in each.extra.upper()
        for each in found.columns
    )
    return TableLayout(
        quoted,
        label,
        formats,
        columns,
        keys,
        tuple(map(literals.quoted, kept)),
        takes_time,
        computed,
        zoned,
        _others(found, keys, place, formats),
        found.cascades,
        tuple(
            literals.quoted(schema) + b"." + literals.quoted(name) for schema, name in found.parents
        ),
        not (found.indexed or found.versioned),
    )


def _others(
    found: TargetTable,
    keys: Sequence[tuple[int, ...]],
    place: Mapping[str, int],
    formats: Sequence[ColumnFormat],
) -> tuple[int, ...] | None:
    """Return the `others` of a layout; `place` is where its columns are, by name."""
    if not keys or found.versioned:
        # History has each change.
        return None
    unique = [tuple(place.get(name.lower(), -1) for name in key) for key in found.unique]
    columns = {index for key in unique for index in key}
    if -1 in columns or keys[0] not in unique:
        return None
    if any(sum(formats[index].type in _MOMENTS for index in key) > 1 for key in unique):
        # It may be about periods, which are equal where they overlap.
        return None
    unique.remove(keys[0])
    return tuple(sorted({index for key in unique for index in key}))


def _hidden(
    table: TableMap, formats: Sequence[ColumnFormat], found: TargetTable, visible: int
) -> dict[int, TableColumn]:
    """Return the source's columns, by index, of which each has the hash of a unique key.

    A MariaDB adds them at the end for keys that are too long for an index, as those of a whole TEXT
    are, and logs their values; the target computes its own, if it needs any. Without names they are
    known by the keys that the target has.
    """
    if not table.mariadb:
        return {}
    named = [index for index, each in enumerate(formats) if is_hidden(table, each)]
    unnamed = [index for index, each in enumerate(formats) if index >= visible and not each.name]
    indexes = named or (unnamed if len(unnamed) == found.hashed else [])
    if any(formats[index].type is not ColumnType.LONGLONG for index in indexes):
        return {}
    return {
        index: TableColumn(
            f"{HASH}{number}", "bigint(20) unsigned", ColumnShape(ColumnType.LONGLONG, 8), "",
            "VIRTUAL GENERATED",
        )
        for number, index in enumerate(indexes, start=1)
    }  # fmt: skip


_SAFE = frozenset({Fit.EXACT, Fit.NON_LOSSY})
_TIMESTAMPS = frozenset({ColumnType.TIMESTAMP, ColumnType.TIMESTAMP2})
_IN_CASES = frozenset(ColumnType) - {ColumnType.JSON, ColumnType.GEOMETRY, ColumnType.VECTOR}
_MOMENTS = _TIMESTAMPS | {ColumnType.DATE, ColumnType.DATETIME, ColumnType.DATETIME2}


def _column(there: TableColumn, column: ColumnFormat, *, zoned: bool) -> LayoutColumn:
    is_json = there.shape is not None and there.shape.type is ColumnType.JSON
    name = literals.quoted(there.name)
    written = _is_written(there)
    as_text = column.type is ColumnType.JSON and not is_json
    if as_text:
        return LayoutColumn(
            name,
            json_as_text,
            written,
            Comparison(b"JSON_EQUALS(%b," % name, b")"),
            json_as_text=as_text,
        )
    make = literal_maker(column)
    if is_json and column.type is not ColumnType.JSON:
        return LayoutColumn(name, text_as_json(make), written, Comparison(name + b"="))
    if zoned and column.type in _TIMESTAMPS:
        compares = Comparison(name + b"=")
        return LayoutColumn(name, with_offset(make), written, compares, zoned=True)
    in_rows = _finds_in_rows(there, column)
    in_cases = column.type in _IN_CASES and there.text.partition("(")[0] not in _LOGGED_AS_BYTES
    return LayoutColumn(name, make, written, _compared(name, column), in_rows, in_cases=in_cases)


def _is_written(there: TableColumn) -> bool:
    return "GENERATED" not in there.extra.upper().replace("DEFAULT_GENERATED", "")


def _finds_in_rows(there: TableColumn, column: ColumnFormat) -> bool:
    """Return whether a column is equal to the same values in a list of rows as by itself.

    There, MySQL compares an ENUM as text, and MariaDB a text without regard to its character set.
    """
    if column.type in {ColumnType.ENUM, ColumnType.SET}:
        return False
    here = character_set(column.collation or BINARY)
    return here == (there.collation.partition("_")[0] or "binary")


def _compared(name: bytes, column: ColumnFormat) -> Comparison:
    if is_text(column):
        text = character_set(column.collation or BINARY).encode()
        return Comparison(b"CAST(CONVERT(%b USING %b) AS BINARY)=" % (name, text), bare=True)
    if column.type in {ColumnType.GEOMETRY, ColumnType.VECTOR}:
        return Comparison(b"UNHEX(HEX(%b))=" % name)
    if column.type is ColumnType.SET:
        # Otherwise a SET of 64 members is compared as a number with a sign.
        return Comparison(b"CAST(%b AS UNSIGNED)=" % name)
    return Comparison(name + b"=")


def _as_logged(kind: ColumnType, there: TableColumn) -> tuple[str, str]:
    """Return type and character set of a target's column, as if it had the source's type."""
    text, collation = there.text, there.collation.partition("_")[0]
    shape = there.shape
    if shape is None or (shape.type is kind and text.partition("(")[0] not in _LOGGED_AS_BYTES):
        return text, collation
    if kind in INTEGERS:
        return INTEGERS[kind] + (" unsigned" if "unsigned" in text else ""), ""
    if kind in _STRINGS:
        if shape.type is ColumnType.JSON:
            return _STRINGS[kind][0], "utf8mb4"
        return _STRINGS[kind][not collation], collation
    return "", ""


_LOGGED_AS_BYTES = frozenset({"inet4", "inet6", "uuid"})
_STRINGS = {
    ColumnType.STRING: ("char", "binary"),
    ColumnType.VARCHAR: ("varchar", "varbinary"),
    ColumnType.BLOB: ("longtext", "longblob"),
}
"""What text and bytes of a type are called."""

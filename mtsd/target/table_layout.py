"""How the rows of a source's table are written to the target's: names, types and keys.

Columns correspond by name if the source logs names (binlog_row_metadata = FULL), else by position,
as they do in the server's own replica. A table whose columns do not fit is refused before anything
is written: SQL would convert values that a row event would not.
"""

from dataclasses import dataclass

from mtsd.binlog.character_sets import BINARY, character_set
from mtsd.binlog.column_format import ColumnFormat, column_formats
from mtsd.binlog.column_type import ColumnType
from mtsd.binlog.table_map import TableMap
from mtsd.catalog.definition import loaded_definition
from mtsd.model.reason import Reason, Refused, refuse
from mtsd.target import literals
from mtsd.target.column_fit import Fit, fit, shapes_of_event
from mtsd.target.row_literals import MakeLiteral, is_text, literal_maker
from mtsd.target.table_columns import TableColumn, without_generated_key

NO_TABLE = Reason("table {table} does not exist on the target", "create it there")
TRIGGERS = Reason(
    "table {table} has triggers on the target ({triggers}), which would fire again for rows that"
    " the source's have changed already",
    'drop them there, or set [target] apply_mode = "binlog"',
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
class FoundTable:
    """What the target's information schema says about a table; no columns: it does not exist."""

    columns: tuple[TableColumn, ...]
    keys: tuple[tuple[str, ...], ...]
    """Unique keys of whole columns that cannot be NULL, the primary key first."""
    triggers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LayoutColumn:
    """A column of the source: how it is written on the target.

    `name` is quoted. A column is not `written` if the target generates it.
    """

    name: bytes
    make: MakeLiteral
    written: bool
    exactly: bytes
    """What is equal only for values with the same bytes, if the column itself is not; else b""."""


@dataclass(frozen=True, slots=True)
class TableLayout:
    """A table; columns are in the order of the source's row images, and keys are indexes of them.

    `name` is quoted, and `label` is for messages. `kept` are columns, quoted, that the target
    changes by itself in an UPDATE that does not set them.
    """

    name: bytes
    label: str
    formats: tuple[ColumnFormat, ...]
    columns: tuple[LayoutColumn, ...]
    keys: tuple[tuple[int, ...], ...]
    kept: tuple[bytes, ...] = ()


def layout_of(table: TableMap, found: FoundTable) -> TableLayout | Refused:
    """Decide how a table's rows are written. Raises BinlogError, NotSupportedError."""
    label = f"{table.database}.{table.table}"
    if not found.columns:
        return refuse(NO_TABLE, table=label)
    if found.triggers:
        return refuse(TRIGGERS, table=label, triggers=", ".join(found.triggers))
    formats = column_formats(table)
    shapes = shapes_of_event(table)
    by_name = {column.name.lower(): column for column in found.columns}
    in_order = without_generated_key(found.columns, len(formats))
    matched: list[TableColumn] = []
    for index, column in enumerate(formats):
        if column.name:
            there = by_name.get(column.name.lower())
        else:
            there = in_order[index] if index < len(in_order) else None
        if there is None:
            name = repr(column.name) if column.name else str(index + 1)
            count = len(in_order)
            return refuse(MISSING, table=label, column=name, count=count)
        if there.shape is None or fit(shapes[index], there.shape) not in _SAFE:
            return refuse(
                MISFIT, table=label, column=repr(there.name), source=shapes[index],
                target=there.text,
            )  # fmt: skip
        matched.append(there)
    told = loaded_definition(
        table.database,
        table.table,
        [(there.name, there.text, there.collation.partition("_")[0]) for there in matched],
    ).told(table)
    formats = column_formats(table, told)
    place = {there.name.lower(): index for index, there in enumerate(matched)}
    keys = tuple(
        tuple(place[name.lower()] for name in key)
        for key in found.keys
        if all(
            name.lower() in place and formats[place[name.lower()]].type is not ColumnType.SET
            for name in key
        )
    )
    quoted = _quoted(table.database) + b"." + _quoted(table.table)
    columns = tuple(
        LayoutColumn(
            _quoted(there.name),
            literal_maker(column),
            "GENERATED" not in there.extra.upper().replace("DEFAULT_GENERATED", ""),
            _exactly(_quoted(there.name), column),
        )
        for there, column in zip(matched, formats, strict=True)
    )
    kept = [each.name for each in found.columns if "ON UPDATE" in each.extra.upper()]
    return TableLayout(quoted, label, formats, columns, keys, tuple(map(_quoted, kept)))


_SAFE = frozenset({Fit.EXACT, Fit.NON_LOSSY})


def _exactly(name: bytes, column: ColumnFormat) -> bytes:
    if is_text(column):
        text = character_set(column.collation or BINARY).encode()
        return b"CAST(CONVERT(%b USING %b) AS BINARY)" % (name, text)
    if column.type in {ColumnType.GEOMETRY, ColumnType.VECTOR}:
        return b"UNHEX(HEX(%b))" % name
    if column.type is ColumnType.SET:
        # Otherwise a SET of 64 members is compared as a number with a sign.
        return b"CAST(%b AS UNSIGNED)" % name
    return b""


def _quoted(name: str) -> bytes:
    return literals.shown_name(name).encode("utf-8", "surrogateescape")

"""One row in words, for the message about a group that cannot be applied: which one it is.

A row is named by the values of its key on the target. Without a key all of its columns have been
compared, and of those only numbers and times are shown: a message goes to logs, where the contents
of a table have no business.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from mtsd.apply.rows.image_reading import columns_present
from mtsd.apply.tables.table_layout import TargetTable, layout_of
from mtsd.binlog.events.rows import DELETES, INSERTS, parse_rows_header
from mtsd.binlog.events.table_map import TableMap
from mtsd.binlog.values.column_format import ColumnFormat, column_formats
from mtsd.binlog.values.column_type import ColumnType
from mtsd.binlog.values.column_values import converter
from mtsd.binlog.values.row_image import ImageDecoder
from mtsd.model.errors import BinlogError, NotSupportedError
from mtsd.model.outcome.reason import Refused

_T = ColumnType
_PLAIN: Final = frozenset({
    _T.TINY, _T.SHORT, _T.INT24, _T.LONG, _T.LONGLONG, _T.YEAR, _T.BIT, _T.NEWDECIMAL, _T.FLOAT,
    _T.DOUBLE, _T.DATE, _T.NEWDATE, _T.TIME, _T.TIME2, _T.DATETIME, _T.DATETIME2, _T.TIMESTAMP,
    _T.TIMESTAMP2,
})  # fmt: skip
_LONGEST_VALUE: Final = 64
"""Characters of a text, or bytes."""
_MAX_COLUMNS: Final = 16


def row_in_words(table: TableMap, target_table: TargetTable, event: bytes) -> str:
    """Return what an event of one row does to which row, in one line: "delete from a.t, id = 7".

    Raises BinlogError.
    """
    formats, keys = _described(table, target_table)
    header = parse_rows_header(event)
    size = (header.width + 7) >> 3
    present = columns_present(event[header.bitmaps_at : header.bitmaps_at + size], header.width)
    key = next((key for key in keys if set(key).issubset(present)), None)
    shown = key if key is not None else present[:_MAX_COLUMNS]
    # The values stay bytes at first: one that cannot be read must not hide the others.
    decoder = ImageDecoder(formats, present, [bytes] * len(formats))
    image, _ = decoder.read(event, header.rows_at)
    raw = dict(zip(image.columns, image.values, strict=True))
    values = ", ".join(
        f"{_name(formats, index)} = {_shown(formats[index], raw[index], of_key=key is not None)}"
        for index in shown
    )
    if event[4] in INSERTS:
        does = "insert into"
    else:
        does = "delete from" if event[4] in DELETES else "update of"
    without = "" if key is not None else ", which has no key to find it by"
    return f"{does} {table.database}.{table.table}{without}, {values}"


def _described(
    table: TableMap, target_table: TargetTable
) -> tuple[Sequence[ColumnFormat], Sequence[tuple[int, ...]]]:
    """Return the columns' formats, and the keys that find a row, by columns."""
    layout = None
    with suppress(NotSupportedError):
        # What prevents rows from being written as SQL does not prevent them from being read.
        layout = layout_of(table, replace(target_table, triggers=(), versioned=False))
    if layout is None or isinstance(layout, Refused):
        return column_formats(table), ()
    return layout.formats, layout.keys


def _name(formats: Sequence[ColumnFormat], index: int) -> str:
    return formats[index].name or f"@{index + 1}"


def _shown(column: ColumnFormat, raw: object, *, of_key: bool) -> str:
    if not isinstance(raw, bytes):
        return "NULL"
    if not of_key and column.type not in _PLAIN:
        return f"({len(raw)} bytes)"
    try:
        value = converter(column)(raw)
    except (BinlogError, NotSupportedError):
        value = raw
    if isinstance(value, str):
        text = repr(value[:_LONGEST_VALUE])
    elif isinstance(value, bytes):
        text = f"x'{value[:_LONGEST_VALUE].hex()}'"
    else:
        return f"{value}"
    return text if len(value) <= _LONGEST_VALUE else f"{text}… ({len(value)} in all)"

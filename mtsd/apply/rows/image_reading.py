"""Row images for SQL: the columns that are wanted, as literals."""

from collections.abc import Sequence
from typing import Final

from mtsd.apply.tables.table_layout import TableLayout
from mtsd.binlog.bytes.cursor import Cursor
from mtsd.binlog.events.rows import without_a_column
from mtsd.binlog.values.column_type import ColumnType
from mtsd.binlog.values.column_values import Convert
from mtsd.binlog.values.json_diff import parse_json_diffs
from mtsd.binlog.values.row_image import ImageDecoder, RowImage

_PARTIAL_JSON: Final = 1
NULL: Final = b"NULL"


def require_progress(start: int, at: int, end: int) -> None:
    """Raise BinlogError if a row image, of an event with `end` bytes, is empty."""
    if at == start:
        raise without_a_column(end - at)


def columns_present(bitmap: bytes, width: int) -> list[int]:
    """Return the indexes of the columns in a bitmap."""
    bits = int.from_bytes(bitmap, "little")
    return [index for index in range(width) if bits >> index & 1]


def shown(layout: TableLayout, present: Sequence[int]) -> list[int]:
    """Return the indexes of those columns that a statement can name."""
    return [index for index in present if not layout.columns[index].hidden]


def key_of(layout: TableLayout, present: Sequence[int]) -> tuple[int, ...] | None:
    """Return the first key whose columns are all present."""
    return next((key for key in layout.keys if set(key).issubset(present)), None)


def decoder_of(
    layout: TableLayout, present: Sequence[int], wanted: Sequence[int], partial: int = 0
) -> ImageDecoder:
    """Return what makes literals of the `wanted` columns of images with those `present`.

    `partial` has a bit for each JSON column of which the image has only what has changed.
    """
    converters = converters_of(layout, wanted)
    if partial:
        for place, index in enumerate(_json_columns(layout)):
            if partial >> place & 1:
                converters[index] = parse_json_diffs
    return ImageDecoder(layout.formats, present, converters)


def converters_of(layout: TableLayout, wanted: Sequence[int]) -> list[Convert | None]:
    """Return what makes literals of the `wanted` columns, None for the others."""
    those = frozenset(wanted)
    return [column.make if index in those else None for index, column in enumerate(layout.columns)]


def _json_columns(layout: TableLayout) -> list[int]:
    return [index for index, column in enumerate(layout.formats) if column.type is ColumnType.JSON]


def partial_image(
    event: bytes, at: int, layout: TableLayout, present: Sequence[int], written: Sequence[int]
) -> tuple[RowImage, int]:
    """Return an image after a partial update that begins at `at`, and where it ends."""
    cursor = Cursor(event, at, "row event")
    bits = 0
    if cursor.net_int("options of an image") & _PARTIAL_JSON:
        bits = cursor.uint((len(_json_columns(layout)) + 7) >> 3, "partial bits")
    return decoder_of(layout, present, written, bits).read(event, cursor.at)


def in_key_order(image: RowImage, key: Sequence[int]) -> RowImage:
    """Return only the columns of a key, in its order."""
    by_index = dict(zip(image.columns, image.values, strict=True))
    return RowImage(tuple(key), tuple(by_index[index] for index in key))


def literals_of(image: RowImage) -> list[bytes]:
    """Return the values as they stand in a statement."""
    return [NULL if value is None else literal(value) for value in image.values]


def literal(value: object) -> bytes:
    """Return a value that `decoder_of` has made, and that is not NULL."""
    if not isinstance(value, bytes):
        raise TypeError(f"not a literal: {value!r}")
    return value

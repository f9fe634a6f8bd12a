"""The primary keys of rows, as JSON objects of the key's columns: {"id":7}."""

from collections.abc import Sequence

import pyarrow as pa

from mtsd.binlog.events.table_map import TableMap
from mtsd.binlog.values.table_metadata import parse_optional_metadata
from mtsd.spark.arrays.json_rows import json_rows
from mtsd.spark.arrays.row_batches import ImageColumns, RowBatches


def primary_key(table: TableMap) -> tuple[int, ...]:
    """Return the columns of a table's primary key; none if the binary log does not name them."""
    found = parse_optional_metadata(table)
    return tuple(column for column, _ in found.primary_key or ()) if found.names else ()


def completed(before: ImageColumns | None, after: ImageColumns | None) -> ImageColumns | None:
    """Return an image after a change, with what only the image before it has, which is the same.

    Sources with binlog_row_image = MINIMAL or NOBLOB leave out what has not changed.
    """
    if before is None or after is None:
        return after
    more = [place for place, column in enumerate(before.columns) if column not in after.columns]
    if not more:
        return after
    return ImageColumns(
        (*after.columns, *(before.columns[place] for place in more)),
        (*after.arrays, *(before.arrays[place] for place in more)),
    )


def key_texts(decoder: RowBatches, image: ImageColumns | None, count: int) -> pa.Array:
    """Return the keys of `count` rows; NULLs if the key or a part of it is not known."""
    if image is None or not decoder.key:
        return pa.nulls(count, pa.string())
    arrays = _of_columns(image, decoder.key)
    if arrays is None:
        return pa.nulls(count, pa.string())
    return json_rows(decoder, ImageColumns(decoder.key, arrays), count)


def _of_columns(image: ImageColumns, columns: Sequence[int]) -> tuple[pa.Array, ...] | None:
    there = dict(zip(image.columns, image.arrays, strict=True))
    found = [there[column] for column in columns if column in there]
    return tuple(found) if len(found) == len(columns) else None

"""Turns partial JSON updates into ordinary ones, so that they can be read in lockstep with others.

They are rare, so each is read on its own; the diffs are applied to the before image's document.
"""

from collections.abc import Collection, Sequence
from typing import Final

from mtsd.binlog.bytes.cursor import Cursor
from mtsd.binlog.values.column_format import ColumnFormat, json_columns
from mtsd.binlog.values.column_values import Value
from mtsd.binlog.values.json_binary import json_text
from mtsd.binlog.values.json_diff import changed_json, parse_json_diffs
from mtsd.binlog.values.row_image import ImageDecoder
from mtsd.model.errors import BinlogError, NotSupportedError

_PARTIAL_JSON: Final = 1


class PartialUpdates:
    """Rewrites the images that belong to one table map and one pair of bitmaps.

    `before` and `after` are the columns of the images, `wanted` the columns that are needed.
    """

    def __init__(
        self,
        formats: Sequence[ColumnFormat],
        before: Sequence[int],
        after: Sequence[int],
        wanted: Collection[int],
    ) -> None:
        raw = [bytes] * len(formats)
        self._formats = formats
        self._before = ImageDecoder(formats, before, raw)
        self._after = ImageDecoder(formats, after, raw)
        self._json = json_columns(formats)
        self._wanted = wanted

    def rewritten(self, event: bytes, at: int) -> bytes:
        """Return the event, whose rows begin at `at`, with full documents in the after images.

        They are text instead of binary JSON, and empty if the column is not wanted. Raises
        BinlogError if the event is damaged, NotSupportedError if it lacks the document before.
        """
        parts = [event[:at]]
        while at < len(event):
            start = at
            before, at = self._before.read(event, at)
            parts.append(event[start:at])
            cursor = Cursor(event, at, "row event")
            partial = 0
            if cursor.net_int("options of an image") & _PARTIAL_JSON:
                partial = cursor.uint((len(self._json) + 7) >> 3, "partial bits")
            at = cursor.at
            nulls = event[at : at + ((len(self._after.columns) + 7) >> 3)]
            after, at = self._after.read(event, at)
            parts.append(nulls)
            documents = dict(zip(before.columns, before.values, strict=True))
            for index, value in zip(after.columns, after.values, strict=True):
                if isinstance(value, bytes):
                    parts.append(self._value(index, value, documents, partial))
        return b"".join(parts)

    def _value(self, index: int, raw: bytes, before: dict[int, Value], partial: int) -> bytes:
        column = self._formats[index]
        if index in self._json:
            raw = self._text(index, raw, before, partial).encode() if index in self._wanted else b""
        return len(raw).to_bytes(column.prefix, "little") + raw if column.prefix else raw

    def _text(self, index: int, raw: bytes, before: dict[int, Value], partial: int) -> str:
        column = self._formats[index]
        try:
            if not partial >> self._json.index(index) & 1:
                return json_text(raw)
            document = before.get(index)
            if isinstance(document, bytes):
                return changed_json(document, parse_json_diffs(raw))
        except BinlogError as error:
            raise BinlogError(f"{column.where}: {error}") from error
        raise NotSupportedError(
            f"{column.where}: a partial update, and the document before it is not logged: that"
            " needs binlog_row_image = FULL, or no binlog_row_value_options, on the source"
        )

"""Texts as JSON strings, many at once, escaped as a server does."""

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mtsd.model.errors import BinlogError, NotSupportedError
from mtsd.spark.arrays.text_arrays import contents

_ESCAPES: Final = {
    **{byte: f"\\u{byte:04x}" for byte in range(0x20)},
    0x08: "\\b",
    0x09: "\\t",
    0x0A: "\\n",
    0x0C: "\\f",
    0x0D: "\\r",
    0x22: '\\"',
    0x5C: "\\\\",
}
_SPACE: Final = 0x20
_QUOTE: Final = 0x22
_BACKSLASH: Final = 0x5C
_NEEDS: Final = np.zeros(256, np.bool_)
_NEEDS[list(_ESCAPES)] = True
_PIECE: Final = 1 << 20
_MOST: Final = (1 << 31) - 2
"""The most bytes that an array of Arrow's type string can hold."""


class TextTooLargeError(NotSupportedError):
    """A text has more bytes than Arrow's type string can hold."""

    def __init__(self) -> None:
        super().__init__("a text of JSON is larger than 2 GB, which Spark has no place for")


def escaped(found: pa.Array) -> pa.Array:
    """Return UTF-8 bytes as texts escaped for JSON, without the quotes.

    Raises BinlogError if they are not UTF-8, TextTooLargeError if they become too large.
    """
    try:
        texts = found.cast(pa.string())
    except pa.ArrowInvalid as error:
        raise BinlogError("JSON: a string is not UTF-8") from error
    data = contents(texts)
    # Three comparisons are faster than a table lookup.
    if not ((data < _SPACE) | (data == _QUOTE) | (data == _BACKSLASH)).any():
        return texts
    # In pieces, because bincount uses eight bytes of memory per byte counted.
    counts = np.zeros(256, np.int64)
    for at in range(0, len(data), _PIECE):
        counts += np.bincount(data[at : at + _PIECE], minlength=256)
    there = np.flatnonzero(counts * _NEEDS)
    more = sum(int(counts[byte]) * (len(_ESCAPES[byte]) - 1) for byte in there.tolist())
    if len(data) + more > _MOST:
        # Arrow's replacement does not detect the overflow.
        raise TextTooLargeError
    # The backslash goes first, so that those added by other escapes are not doubled.
    for byte in sorted(there.tolist(), key=lambda byte: byte != _BACKSLASH):
        texts = pc.replace_substring(texts, chr(byte), _ESCAPES[byte])
    return texts

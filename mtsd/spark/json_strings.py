"""Texts as strings of JSON, many at once: escaped as a server does."""

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mtsd.model.errors import BinlogError
from mtsd.spark.text_arrays import contents

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


def escaped(found: pa.Array) -> pa.Array:
    """Return bytes in UTF-8 as texts with what JSON wants escaped, without the quotes.

    BinlogError where they are not UTF-8.
    """
    try:
        texts = found.cast(pa.string())
    except pa.ArrowInvalid as error:
        raise BinlogError("JSON: a string is not UTF-8") from error
    data = contents(texts)
    # Three comparisons are faster than one look at a table.
    if not ((data < _SPACE) | (data == _QUOTE) | (data == _BACKSLASH)).any():
        return texts
    there = np.flatnonzero(np.bincount(data, minlength=256) * _NEEDS)
    # The backslash goes first: those of the others must stay single.
    for byte in sorted(there.tolist(), key=lambda byte: byte != _BACKSLASH):
        texts = pc.replace_substring(texts, chr(byte), _ESCAPES[byte])
    return texts

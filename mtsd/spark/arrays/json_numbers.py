"""The texts of floating-point numbers in JSON documents, many at once.

Most have few digits after the decimal point. If a number equals an integer below 10^15 divided by
a power of ten, it is the double nearest to that fraction, whose digits are therefore the shortest
that identify it.
"""

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from mtsd.binlog.values.json_number import double_text
from mtsd.spark.arrays.number_arrays import array_of

_MAX_SCALE: Final = 5
_MOST: Final = 10.0**15
_LEAST: Final = 1e-4
"""Smaller numbers have more zeros after the decimal point than the digits that are tried."""


def double_texts(numbers: npt.NDArray[np.float64]) -> pa.Array:
    """Return the texts. Raises BinlogError for what is not a JSON number."""
    count = len(numbers)
    magnitudes = np.abs(numbers)
    scales = np.full(count, -1, np.int8)
    scaled = np.zeros(count, np.int64)
    remaining = np.flatnonzero((magnitudes >= _LEAST) & (magnitudes < _MOST))
    for scale in range(_MAX_SCALE + 1):
        if not len(remaining):
            break
        power = 10.0**scale
        here = numbers[remaining]
        rounded = np.rint(here * power)
        exact = (np.abs(rounded) < _MOST) & (rounded / power == here)
        hits = remaining[exact]
        scales[hits] = scale
        scaled[hits] = rounded[exact].astype(np.int64)
        remaining = remaining[~exact]
    parts: list[pa.Array] = []
    order = np.empty(count, np.int32)
    at = 0
    for scale in range(-1, _MAX_SCALE + 1):
        members = np.flatnonzero(scales == scale)
        if not len(members):
            continue
        order[members] = np.arange(at, at + len(members), dtype=np.int32)
        at += len(members)
        if scale < 0:
            texts = [double_text(number) for number in numbers[members].tolist()]
            parts.append(pa.array(texts, pa.string()))
        else:
            parts.append(_fractions(scaled[members], scale))
    if not parts:
        return pa.array([], pa.string())
    if len(parts) == 1:
        return parts[0]
    return pa.concat_arrays(parts).take(pa.array(order))


def _fractions(scaled: npt.NDArray[np.int64], scale: int) -> pa.Array:
    if not scale:
        whole = array_of(pa.int64(), scaled, None).cast(pa.string())
        return pc.binary_join_element_wise(whole, pa.scalar(".0"), "")
    words = np.empty((len(scaled), 2), np.int64)
    words[:, 0] = scaled
    words[:, 1] = scaled >> 63
    return array_of(pa.decimal128(18, scale), words, None).cast(pa.string())

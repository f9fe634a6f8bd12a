"""Texts that become too large for one Arrow array."""

import numpy as np
import pyarrow as pa
import pytest

from mtsd.spark.arrays.json_strings import TextTooLargeError, escaped
from mtsd.spark.shapes.row_columns import in_order


@pytest.mark.long
def test_what_escapes_make_too_large_is_refused() -> None:
    # Six bytes for each one; Arrow's own replacement would return an array of negative size.
    with pytest.raises(TextTooLargeError, match="larger than 2 GB"):
        escaped(pa.array([b"\x01" * 360_000_000], pa.binary()))


def test_escapes_are_counted_over_all_texts() -> None:
    texts = pa.array([b'"', b"\\\n" * 2_000_000, None, b"x\x1f"], pa.binary())
    assert escaped(texts).to_pylist() == ['\\"', "\\\\\\n" * 2_000_000, None, "x\\u001f"]


@pytest.mark.long
def test_batches_that_do_not_fit_into_one_keep_their_order() -> None:
    large = [pa.record_batch({"a": [letter * 1_200_000_000, letter]}) for letter in "xy"]
    keys = [(np.array([0, 3]), np.array([0, 0])), (np.array([1, 2]), np.array([0, 0]))]
    found = [
        (str(text)[0], len(str(text)))
        for batch in in_order(large, keys)
        for text in batch.column(0).to_pylist()
    ]
    assert found == [("x", 1_200_000_000), ("y", 1_200_000_000), ("y", 1), ("x", 1)]

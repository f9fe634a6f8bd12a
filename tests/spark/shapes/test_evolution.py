"""Columns of several definitions become those of one DataFrame."""

import pyarrow as pa
import pytest

from mtsd.spark.options.options import OptionError
from mtsd.spark.shapes.evolution import may_become, renamed, united, wider
from tests.catalog.queries import query


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (pa.int8(), pa.int16(), pa.int16()),
        (pa.int64(), pa.decimal128(20, 0), pa.decimal128(20, 0)),
        (pa.int32(), pa.decimal128(8, 2), pa.decimal128(12, 2)),
        (pa.decimal128(10, 2), pa.decimal128(8, 4), pa.decimal128(12, 4)),
        (pa.decimal128(38, 10), pa.decimal128(38, 0), None),
        (pa.float32(), pa.float64(), pa.float64()),
        (pa.int32(), pa.float32(), pa.float64()),
        (pa.int64(), pa.float64(), None),
        (pa.decimal128(20, 0), pa.string(), pa.string()),
        (pa.date32(), pa.timestamp("us"), pa.timestamp("us")),
        (pa.timestamp("us"), pa.timestamp("us", "UTC"), None),
        (pa.string(), pa.binary(), None),
        (pa.null(), pa.binary(), pa.binary()),
    ],
)
def test_a_type_that_holds_both(
    one: pa.DataType, other: pa.DataType, both: pa.DataType | None
) -> None:
    assert wider(one, other) == wider(other, one) == both
    if both is not None and pa.null() not in (one, other):
        assert may_become(one, both)
        assert may_become(other, both)


def test_columns_of_all_definitions() -> None:
    text, number = pa.string(), pa.int32()
    assert united([
        {"id": number, "a": number, "gone": text},
        {"id": pa.int64(), "A": text},
        {"new": text, "id": pa.int16()},
    ]) == {"id": pa.int64(), "a": text, "gone": text, "new": text}  # fmt: skip
    with pytest.raises(OptionError, match="column `a` was string and is binary now"):
        united([{"a": text}, {"a": pa.binary()}])


@pytest.mark.parametrize(
    ("statement", "names"),
    [
        ("ALTER TABLE t RENAME COLUMN a TO b, ADD d INT, RENAME INDEX i TO j", [("a", "b")]),
        ("alter table d.t change column `a` `b c` int after d, change x y text", [
            ("a", "b c"), ("x", "y"),
        ]),
        ("ALTER TABLE t CHANGE COLUMN IF EXISTS a b INT", [("a", "b")]),
        ("ALTER TABLE t CHANGE a A BIGINT, MODIFY b INT COMMENT 'CHANGE c d'", []),
        ("ALTER TABLE t RENAME TO u", []),
        ("ALTER TABLE t RENAME u", []),
        ("ALTER TABLE t ADD COLUMN (`change` INT, `rename` INT)", []),
    ],
)  # fmt: skip
def test_names_of_a_renamed_column(statement: str, names: list[tuple[str, str]]) -> None:
    assert renamed(query(statement, "d")) == names

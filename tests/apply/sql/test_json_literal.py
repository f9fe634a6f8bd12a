"""Documents with values that no expression makes are refused."""

import pytest

from mtsd.apply.sql.json_literal import json_literal
from mtsd.binlog.values.column_type import ColumnType
from mtsd.model.errors import BinlogError, NotSupportedError

OPAQUE = 15


@pytest.mark.parametrize(
    ("kind", "size", "named"),
    [
        # Documents of older servers have the first two.
        (ColumnType.VAR_STRING, 3, "3 bytes of the column type VAR_STRING"),
        (ColumnType.YEAR, 4, "YEAR"),
        (ColumnType.GEOMETRY, 25, "GEOMETRY"),
        (ColumnType.BIT, 9, "BIT"),
        (ColumnType.BIT, 0, "BIT"),
        (99, 1, "the column type 99"),
    ],
)
def test_what_no_expression_makes(kind: int, size: int, named: str) -> None:
    with pytest.raises(NotSupportedError, match=named):
        json_literal(bytes((OPAQUE, kind, size)) + bytes(size))


@pytest.mark.parametrize("kind", [ColumnType.NEWDECIMAL, ColumnType.TIMESTAMP, ColumnType.DATE])
def test_damage(kind: int) -> None:
    with pytest.raises(BinlogError, match="JSON: 0000 is no d"):
        json_literal(bytes((OPAQUE, kind, 2, 0, 0)))

"""What is wrong with options is said by name, all of it at once."""

import pytest

from mtsd.model.position import Position
from mtsd.spark.column_arrays import Dates
from mtsd.spark.options import OptionError, Options, parse_options


def test_all_options() -> None:
    assert parse_options({"PATH": "/x"}) == Options("/x")
    assert parse_options(
        {
            "path": "/x",
            "shape": "TABLE",
            "table": "`d`.t",
            "columns": "a, `b c`",
            "start": "binlog.000002:444",
            "end": "binlog.000007:9",
            "max_partition_bytes": "8m",
            "dates": "nulls",
            "ddl": "CREATE TABLE d.t (a INT)",
        }
    ) == Options(
        "/x",
        "table",
        ("d", "t"),
        ("a", "b c"),
        Position("binlog.000002", 444),
        Position("binlog.000007", 9),
        8 << 20,
        "CREATE TABLE d.t (a INT)",
        Dates.NULLS,
    )
    assert parse_options({"path": "/x", "start": "b.000001"}).start == Position("b.000001", 4)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"path": "/x", "nonsense": "1"}, "option 'nonsense' is unknown: there are columns, "),
        ({}, "option 'path' is missing"),
        ({"path": "/x", "shape": "rows"}, "'shape' is 'rows': it is one of events, groups,"),
        ({"path": "/x", "shape": "table"}, "shape 'table' needs the option 'table'"),
        ({"path": "/x", "table": "a.b"}, "option 'table' belongs to shape 'table'"),
        ({"path": "/x", "shape": "table", "table": "t"}, 'it is "database.table"'),
        ({"path": "/x", "columns": "a,,b"}, "a list of names"),
        ({"path": "/x", "columns": "a,a"}, "a name is there twice"),
        ({"path": "/x", "max_partition_bytes": "0"}, "it is a number of bytes"),
        ({"path": "/x", "max_partition_bytes": "many"}, "it is a number of bytes"),
        ({"path": "/x", "start": "f:x"}, "it is earliest, latest, FILE or FILE:POS"),
        ({"path": "/x", "end": "f"}, "it is FILE:POSITION"),
        ({"path": "/x", "dates": "lenient"}, "it is one of strict, nulls, text"),
        ({"nonsense": "1"}, "'nonsense' is unknown.*; option 'path' is missing"),
    ],
)
def test_what_is_wrong(given: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        parse_options(given)

import pytest

from mtsd.config import Earliest, FilePosition, GtidStart, Latest, Start
from mtsd.config.start import parse_start

UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("", None),
        ("earliest", Earliest()),
        ("latest", Latest()),
        ("mysql-bin.000012:4", FilePosition("mysql-bin.000012", 4)),
        ("b.1:18446744073709551615", FilePosition("b.1", 2**64 - 1)),
        (f"gtid:{UUID}:1-5", GtidStart(f"{UUID}:1-5")),
        (f"gtid:{UUID}:1-5:7:tag:1-3,{UUID}:9", GtidStart(f"{UUID}:1-5:7:tag:1-3,{UUID}:9")),
        (f"gtid: {UUID}:1,\n{UUID}:2", GtidStart(f"{UUID}:1,{UUID}:2")),
    ],
)
def test_the_four_forms(text: str, start: Start | None) -> None:
    assert parse_start(text) == start
    if start is not None:
        assert parse_start(str(start)) == start


@pytest.mark.parametrize(
    "text",
    [
        "EARLIEST",
        "binlog.000001",
        "binlog.000001:",
        ":4",
        "binlog.000001:0",
        "binlog.000001:3",
        "binlog.000001:18446744073709551616",
        "binlog.000001:-4",
        "dir/binlog.000001:4",
        "gtid:",
        "gtid:5",
        f"gtid:{UUID}",
        f"gtid:{UUID}:1-",
        f"gtid:{UUID}:1,",
        f"gtid:{UUID}:5-3",
        f"gtid:{UUID}:0",
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"form|GTID set|begins at"):
        parse_start(text)

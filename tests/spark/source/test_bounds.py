"""Places that a log does not have are named, with what it has."""

import pytest

from mtsd.model.position import Position
from mtsd.spark.options.options import OptionError
from mtsd.spark.source.bounds import check_read, check_stream

FILES = [("/f/b.000004", 900), ("/f/b.000005", 700), ("/f/b.000006", 0)]


@pytest.mark.parametrize(
    ("start", "end", "message"),
    [
        ("b.000003:4", "", "option 'start': there is no b.000003, there is b.000004 to b.000006"),
        ("", "b.000003:4", "option 'end': there is no b.000003"),
        ("b.000005:701", "", "option 'start' is b.000005:701, but b.000005 has 700 bytes"),
        ("", "b.000004:901", "option 'end' is b.000004:901, but b.000004 has 900 bytes"),
        ("b.000005:4", "b.000004:900", "'start' and 'end' leave nothing: b.000005:4 comes after b"),
    ],
)
def test_what_is_not_there(start: str, end: str, message: str) -> None:
    for check in (check_read, check_stream):
        with pytest.raises(OptionError, match=message):
            check(FILES, place(start), place(end))


def test_an_end_that_a_stream_may_reach() -> None:
    for end in ("b.000006:5", "b.000007:4"):
        check_stream(FILES, place("b.000004:4"), place(end))
        with pytest.raises(OptionError, match="option 'end'"):
            check_read(FILES, None, place(end))


def test_all_that_is_there() -> None:
    for start, end in (("", ""), ("b.000004:900", "b.000005:4"), ("b.000006:4", "b.000006:4")):
        check_read(FILES, place(start), place(end))


def place(text: str) -> Position | None:
    file, _, offset = text.rpartition(":")
    return Position(file, int(offset)) if text else None

"""What is long is read in another thread, and what is short where it is."""

import threading

import pytest

from mtsd.apply.session.aside import aside, drawn
from mtsd.binlog.sql.long_text import LONGEST_READ


async def test_by_size() -> None:
    here = threading.get_ident()
    assert await aside(LONGEST_READ, threading.get_ident) == here
    assert await aside(LONGEST_READ + 1, threading.get_ident) != here
    made = (threading.get_ident() for _ in range(3))
    assert [each async for each in drawn(1000, made)] == [here] * 3
    made = (threading.get_ident() for _ in range(3))
    found = [each async for each in drawn(1 << 30, made)]
    assert len(found) == 3
    assert here not in found


async def test_an_error_comes_after_what_was_made_before_it() -> None:
    made = drawn(1 << 30, (1 / n for n in (1, 2, 0, 3)))
    assert [await anext(made), await anext(made)] == [1.0, 0.5]
    with pytest.raises(ZeroDivisionError):
        await anext(made)

"""How often Python's cyclic garbage collector runs."""

import gc
from collections.abc import Iterator

import pytest

from mtsd.spark.shapes.garbage import collect_seldom


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


@pytest.mark.parametrize(("before", "after"), [(700, 10_000), (50_000, 50_000), (0, 0)])
def test_only_a_lower_threshold_is_changed(before: int, after: int) -> None:
    gc.set_threshold(before, 7, 3)
    collect_seldom()
    assert gc.get_threshold() == (after, 7, 3)

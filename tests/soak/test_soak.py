"""The short form: a leak of each transaction shows in seconds."""

from pathlib import Path

import pytest

from tests.soak.growth import Allowed, growth
from tests.soak.run import growths, soak


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        ([5.0] * 9, False),
        # A warm-up, and a peak.
        ([1.0, 2, 3, 9, 9, 9, 9, 30, 9], False),
        ([1.0, 2, 3, 4, 5, 6, 7, 8, 9], True),
        ([100.0] * 6 + [104.0] * 3, False),
        ([100.0] * 6 + [107.0] * 3, True),
    ],
)
def test_what_grows(samples: list[float], expected: bool) -> None:
    assert growth(samples, Allowed(0.05, 1)).is_too_much is expected


@pytest.mark.servers
def test_nothing_grows(tmp_path: Path) -> None:
    samples = list(soak(tmp_path, 8.0, 0.4, 150.0))
    assert samples[-1].groups > samples[0].groups
    found = growths(samples)
    assert not any(each.is_too_much for each in found.values()), (found, samples)

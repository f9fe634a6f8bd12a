"""The short form: a leak of each transaction shows in seconds."""

from pathlib import Path

import pytest

from tests.soak.growth import Allowed, growth
from tests.soak.run import Sample, growths, soak


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


def test_what_waits_to_be_applied_is_not_a_leak() -> None:
    def sample(memory: int, lag: float | None) -> Sample:
        return Sample(0.0, memory, 20, 13, 2, 5, 100, lag)

    up = [sample(80_000_000, 0.1)] * 9
    behind = [sample(120_000_000, 40.0), sample(120_000_000, None)] * 9
    assert not growths(up + behind)["memory"].is_too_much
    assert growths(up + [sample(120_000_000, 0.1)] * 9)["memory"].is_too_much
    with pytest.raises(ValueError, match="8 samples"):
        growths(up[1:] + behind)


@pytest.mark.servers
def test_nothing_grows(tmp_path: Path) -> None:
    samples = list(soak(tmp_path, 8.0, 0.4, 150.0))
    assert samples[-1].groups > samples[0].groups
    found = growths(samples)
    assert not any(each.is_too_much for each in found.values()), (found, samples)

"""A slice of `scripts/fuzz --hostile`."""

from pathlib import Path

import pytest

from tests.fuzz.hostile import Trial

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]


@pytest.mark.parametrize(
    ("seed", "seconds"),
    [
        # MySQL, both ends.
        pytest.param(8, 4.0),
        *(pytest.param(seed, 30.0, marks=pytest.mark.long) for seed in range(1, 8)),
    ],
)
def test_nothing_that_servers_answer(seed: int, seconds: float, tmp_path: Path) -> None:
    """It tries again, or stops with one line; and goes on where it was between honest servers."""
    trial = Trial(seed, tmp_path, endless=1)
    assert trial.run(seconds) == []
    assert sum(sum(each.done.values()) for each in trial.hostilities) > 0

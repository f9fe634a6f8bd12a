"""The commands of the benchmark that the pages name are ones that it takes."""

import re
import shlex
from pathlib import Path

import pytest

from benchmarks.arguments import arguments

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md"))]


def commands() -> set[str]:
    text = "\n".join(page.read_text("utf-8") for page in PAGES)
    # A placeholder in capitals stands for what a reader has.
    return {
        found.partition("[")[0]
        for found in re.findall(r"python -m benchmarks((?: [^`\n|;]*)?)(?=[`\n|;])", text)
    }


@pytest.mark.parametrize("words", sorted(commands()))
def test_what_the_pages_name(words: str) -> None:
    given = shlex.split(words, comments=True)
    assert arguments(given) is not None


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--repeat", "0"], "'0' is not a whole number from 1"),
        (["--rate", "nan"], "'nan' is not a number from"),
        (["--part", "lags"], "invalid choice: 'lags'"),
        (["--json", "/nowhere/figures.json"], "there is no folder /nowhere"),
    ],
)
def test_what_is_refused(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        arguments(words)
    assert told in capsys.readouterr().err

"""The commands of the benchmark that the pages name are ones that it takes."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.arguments import arguments
from benchmarks.scaling.__main__ import arguments as scaling
from tests.soak.__main__ import arguments as soak

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md"))]


def commands() -> set[tuple[str, ...]]:
    text = "\n".join(page.read_text("utf-8") for page in PAGES)
    found = re.findall(r"python -m benchmarks((?: [^`\n|;\[#]*)?)(?=[`\n|;\[#])", text)
    words = {tuple(shlex.split(each)) for each in found}
    # What is in capitals stands for a number that a reader has.
    return {each for each in words if not any(word.isalpha() and word.isupper() for word in each)}


@pytest.mark.parametrize("words", sorted(commands()), ids=" ".join)
def test_what_the_pages_name(words: tuple[str, ...]) -> None:
    assert arguments(words) is not None


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


@pytest.mark.parametrize(
    ("read", "words"),
    [
        (scaling, ["--record=x", "--workers", "-1"]),
        (scaling, ["--record=x", "--seconds", "nan"]),
        (soak, ["--minutes", "nan"]),
        (soak, ["--every", "0"]),
    ],
)
def test_what_the_others_refuse(
    read: Callable[[list[str]], object], words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        read(words)
    assert f"argument {words[-2]}: '{words[-1]}' is not a" in capsys.readouterr().err

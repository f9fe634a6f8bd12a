import re
from pathlib import Path

from mtsd.apply.session.obstacle import _FULL_NUMBERS
from mtsd.apply.session.retry import _TRANSIENT
from mtsd.wire.failure import BUSY
from mtsd.wire.refusal import (
    _LATER,
    _LOG_IN,
    _NO_PUBLIC_KEY,
    _OPTION,
    _READ_ONLY_MODE,
    _UNKNOWN_PLUGIN,
)

PAGE = Path(__file__).parents[2] / "docs" / "errors.md"


def numbers_under(heading: str) -> set[int]:
    text = PAGE.read_text(encoding="utf-8")
    (section,) = re.findall(rf"^## {heading}\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    cells = re.findall(r"^\| ([\d, ]+) \|", section, re.MULTILINE)
    return {int(number) for cell in cells for number in cell.split(",")}


def test_what_mtsd_repeats_and_waits_for_is_what_the_page_says() -> None:
    assert numbers_under("mtsd tries again by itself") == (
        _TRANSIENT | _FULL_NUMBERS | BUSY | {_OPTION, _READ_ONLY_MODE}
    )


def test_every_error_with_a_remedy_is_there() -> None:
    at_login = {*_LOG_IN, _UNKNOWN_PLUGIN, _NO_PUBLIC_KEY}
    assert numbers_under("At the login") == at_login
    headings = re.findall(r"^## (.*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert set[int]().union(*map(numbers_under, headings)) >= set(_LATER)

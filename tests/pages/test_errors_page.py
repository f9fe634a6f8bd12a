import re
from pathlib import Path

from mtsd.apply.session.retry import _TRANSIENT
from mtsd.model.error_numbers import ER, FULL_NUMBERS
from mtsd.wire.failure import BUSY
from mtsd.wire.refusal import _LATER, _LOG_IN, _OPTION

PAGE = Path(__file__).parents[2] / "docs" / "errors.md"


def numbers_under(heading: str) -> set[int]:
    text = PAGE.read_text(encoding="utf-8")
    (section,) = re.findall(rf"^## {heading}\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    cells = re.findall(r"^\| ([\d, ]+) \|", section, re.MULTILINE)
    return {int(number) for cell in cells for number in cell.split(",")}


def test_what_mtsd_repeats_and_waits_for_is_what_the_page_says() -> None:
    assert numbers_under("mtsd tries again by itself") == (
        _TRANSIENT | FULL_NUMBERS | BUSY | {_OPTION, ER.READ_ONLY_MODE}
    )


def test_every_error_with_a_remedy_is_there() -> None:
    at_login = {*_LOG_IN, ER.CR_AUTH_PLUGIN_CANNOT_LOAD, ER.CR_AUTH_PLUGIN_ERR}
    assert numbers_under("At the login") == at_login
    headings = re.findall(r"^## (.*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert set[int]().union(*map(numbers_under, headings)) >= set(_LATER)

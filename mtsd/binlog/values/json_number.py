"""The text of a JSON document's floating-point numbers: the fewest digits that keep the value."""

from math import isfinite
from typing import Final

from mtsd.model.errors import BinlogError

_SMALLEST: Final = 1e-4
_LARGEST: Final = 1e15


def double_text(number: float) -> str:
    """Return a number as a server shows it in a JSON document.

    Without an exponent from 1e-15 on to 15 digits before the point, and beyond these where there
    are digits behind it.
    """
    text = repr(number)
    magnitude = abs(number)
    if _SMALLEST <= magnitude < _LARGEST or not magnitude:
        return text
    if not isfinite(number):
        raise BinlogError(f"JSON: {text} is no number of a document")
    sign = "-" if number < 0 else ""
    mantissa, _, power = repr(magnitude).partition("e")
    whole, _, behind = mantissa.partition(".")
    behind = "" if behind == "0" else behind
    exponent = int(power or 0)
    if not power:
        # As Python writes it below 1e16.
        if behind:
            return text
        exponent = len(whole) - 1
        digits = whole.rstrip("0")
        whole, behind = digits[0], digits[1:]
    if -15 <= exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{whole}{behind}"
    return f"{sign}{whole}{'.' if behind else ''}{behind}e{exponent}"

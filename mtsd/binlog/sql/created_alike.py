"""Whether two statements create tables in which nothing differs as long as they are empty."""

import re
from typing import Final

from mtsd.model.step import Statement

_TABLE: Final = b"TABLE"
_MORE_THAN_COLUMNS: Final = re.compile(
    rb"\b(?:AUTO_INCREMENT|LIKE|SELECT|SERIAL|VALUES)\b|/\*!", re.IGNORECASE
)
"""What the table has from others, or what emptying it does not set back: its counter."""


def are_alike(first: Statement, second: Statement) -> bool:
    """Return whether two CREATE TABLE are the same by their text and what their session says.

    False where that does not tell: where the text refers to another table, whose definition may
    have changed, or the table has a counter.
    """
    one, other = first.query, second.query
    text = one.text.raw
    return (
        text == other.text.raw
        and one.database == other.database
        and one.context == other.context
        and not (first.satellites or second.satellites)
        and text.isascii()
        and text.upper().count(_TABLE) == 1
        and _MORE_THAN_COLUMNS.search(text) is None
    )

r"""Patterns of table rules: % is any text, _ any one character, and \ makes the next one ordinary.

As in LIKE (MySQL manual, "--replicate-wild-do-table"). Upper and lower case are different
characters.
"""

import enum
import re
from functools import cache
from typing import Final


class _Wild(enum.Enum):
    ANY = "%"
    ONE = "_"


_Piece = str | _Wild
_WILDS: Final = {wild.value: wild for wild in _Wild}


def _pieces(pattern: str) -> list[_Piece]:
    pieces: list[_Piece] = []
    at = 0
    while at < len(pattern):
        if pattern[at] == "\\" and at + 1 < len(pattern):
            at += 1
            pieces.append(pattern[at])
        else:
            pieces.append(_WILDS.get(pattern[at], pattern[at]))
        at += 1
    return pieces


@cache
def _expression(pattern: str) -> re.Pattern[str]:
    text = {_Wild.ANY: ".*", _Wild.ONE: "."}
    pieces = (
        text[piece] if isinstance(piece, _Wild) else re.escape(piece) for piece in _pieces(pattern)
    )
    return re.compile("".join(pieces), re.DOTALL)


def matches(pattern: str, name: str) -> bool:
    """Return whether a pattern describes the whole name."""
    return _expression(pattern).fullmatch(name) is not None


def escaped(name: str) -> str:
    """Return the pattern that describes this one name."""
    return "".join("\\" + each if each in "%_\\" else each for each in name)


def literal(pattern: str) -> str | None:
    """Return the only name that a pattern describes; None if there are others."""
    pieces = _pieces(pattern)
    if any(isinstance(piece, _Wild) for piece in pieces):
        return None
    return "".join(str(piece) for piece in pieces)


def is_everything(pattern: str) -> bool:
    """Return whether a pattern describes every name."""
    pieces = _pieces(pattern)
    return bool(pieces) and all(piece is _Wild.ANY for piece in pieces)


def overlap(one: str, other: str) -> bool:
    """Return whether there is a name that both patterns describe."""
    first, second = _pieces(one), _pieces(other)
    # By how many pieces are used up of each: whether the rest of both can describe the same text.
    row = [False] * (len(second) + 1)
    for at in range(len(first), -1, -1):
        below, row = row, [False] * (len(second) + 1)
        for to in range(len(second), -1, -1):
            mine = first[at] if at < len(first) else None
            its = second[to] if to < len(second) else None
            if mine is None and its is None:
                row[to] = True
            elif mine is _Wild.ANY:
                row[to] = below[to] or (its is not None and row[to + 1])
            elif its is _Wild.ANY:
                row[to] = row[to + 1] or (mine is not None and below[to])
            elif mine is not None and its is not None:
                same = mine is _Wild.ONE or its is _Wild.ONE or mine == its
                row[to] = same and below[to + 1]
    return row[0]

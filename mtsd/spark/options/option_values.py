"""The values of options: functions that parse one, or raise ValueError."""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from mtsd.model.position import FIRST_EVENT, Position
from mtsd.spark.arrays.column_arrays import Dates

SHAPES: Final = ("events", "groups", "changes", "table")
DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[ t]|$)", re.IGNORECASE)
"""How a time begins."""
_PLACES: Final = "it is earliest, latest, FILE, FILE:POSITION, gtid:SET or a time"
_END: Final = "it is latest or FILE:POSITION"
_EXACT: Final = "names are exact"
_BRACKETS: Final = re.compile(r"[\[\]()'\"]")
_WILD: Final = re.compile(r"[*%?]")
_QUOTED: Final = re.compile(r"`(?:[^`]|``)+`")


def shape(text: str) -> str:
    """Return the name of a shape."""
    if text.lower() not in SHAPES:
        raise ValueError(f"it is one of {', '.join(SHAPES)}")
    return text.lower()


def paths(text: str) -> tuple[str, ...]:
    """Return the paths of a JSON list."""
    try:
        document = json.loads(text)
    except ValueError:
        document = None
    if not (isinstance(document, list) and all(isinstance(one, str) and one for one in document)):
        raise ValueError('it is a JSON list of paths, as load(["a", "b"]) makes it')
    return tuple(document)


def table(text: str) -> tuple[str, str]:
    """Return a database and a table."""
    _check_exact(text, "for all tables of a database, use shape 'changes' with 'schemas'")
    parts = text.replace("`", "").split(".")
    if len(parts) != 2 or not all(parts):
        raise ValueError('it is "database.table"')
    return parts[0], parts[1]


def tables(text: str) -> tuple[tuple[str, str], ...]:
    """Return databases and tables."""
    _check_exact(text, "for all tables of a database, use 'schemas'")
    return tuple(table(name.strip()) for name in text.split(","))


def schemas(text: str) -> tuple[str, ...]:
    """Return the names of databases."""
    _check_exact(text, "leave the option out for all")
    if "." in _QUOTED.sub("", text):
        raise ValueError("these are databases, without tables: use 'tables' for database.table")
    return columns(text)


def _check_exact(text: str, instead: str) -> None:
    """Raise ValueError for names that look as if others were meant, unless they are in backticks.

    They would be those of no table, so that a read would have no rows, without an error.
    """
    plain = _QUOTED.sub("", text)
    if _BRACKETS.search(plain):
        raise ValueError("it is a text of names with commas between them, without other signs")
    if _WILD.search(plain):
        raise ValueError(f"{_EXACT}, and no pattern: {instead}")


def columns(text: str) -> tuple[str, ...]:
    """Return names."""
    names = tuple(name.strip().strip("`") for name in text.split(","))
    if not all(names):
        raise ValueError("it is a list of names with commas between them")
    if len(set(names)) < len(names):
        raise ValueError("a name is there twice")
    return names


def position(text: str) -> Position:
    """Return a place in a file, or the beginning of one."""
    file, colon, offset = text.rpartition(":")
    if not colon:
        return Position(text, FIRST_EVENT)
    if not offset.isdecimal() or not file:
        raise ValueError(_PLACES)
    return Position(file, int(offset))


def end(text: str) -> Position | None:
    """Return a place in a file; None for the end of the log."""
    if text.lower() == "latest":
        return None
    if DATE.match(text):
        raise ValueError(f"{_END}: the option 'until' takes a time")
    file, _, offset = text.rpartition(":")
    if not file or ":" in file or not offset.isdecimal():
        raise ValueError(_END)
    return Position(file, int(offset))


_UNITS: Final = {"k": 10, "m": 20, "g": 30}


def size(text: str) -> int:
    """Return a number of bytes."""
    digits = text.lower().removesuffix("b")
    shift = _UNITS.get(digits[-1:], 0)
    if shift:
        digits = digits[:-1]
    if not digits.strip().isdecimal() or not int(digits):
        raise ValueError("it is a number of bytes, such as 67108864 or 64m")
    return int(digits) << shift


def time(text: str) -> datetime:
    """Return a time, which is in UTC without an offset."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError("it is a time such as 2026-05-31 12:00:00+00:00") from None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def one_of(*allowed: str) -> Callable[[str], str]:
    """Return a function that takes only these."""

    def parse(text: str) -> str:
        if text.lower() not in allowed:
            raise ValueError(f"it is one of {', '.join(allowed)}")
        return text.lower()

    return parse


def dates(text: str) -> Dates:
    """Return how dates are treated that are not in the calendar."""
    try:
        return Dates[text.upper()]
    except KeyError:
        raise ValueError(f"it is one of {', '.join(one.name.lower() for one in Dates)}") from None

"""What a check says: one line, of a level, about a subject, with what to do."""

from dataclasses import dataclass
from enum import StrEnum

from mtsd.model.reason import Reason


class Level(StrEnum):
    """How bad it is. An error keeps mtsd from starting, or stops it sooner or later."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the answer. `id` names the kind of line and stays the same over versions.

    `remedy` is "" where there is nothing to do.
    """

    id: str
    level: Level
    subject: str
    found: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Template:
    """A kind of line; `subject`, `found` and `remedy` have their facts in braces."""

    level: Level
    subject: str
    found: str
    remedy: str = ""
    reason: Reason | None = None
    """Of what the daemon refuses with the same words."""


def ok(subject: str, found: str) -> Template:
    """Return the template of a line about what is as it should be."""
    return Template(Level.OK, subject, found)


def warning(subject: str, found: str, remedy: str) -> Template:
    """Return the template of a line about what may fail, or works worse than it could."""
    return Template(Level.WARNING, subject, found, remedy)


def error(subject: str, found: str, remedy: str) -> Template:
    """Return the template of a line about what fails."""
    return Template(Level.ERROR, subject, found, remedy)


def refusal(subject: str, reason: Reason) -> Template:
    """Return the template of a line about what the daemon refuses."""
    return Template(Level.ERROR, subject, reason.found, reason.remedy, reason)


SHOWN = 5
"""How many names a line lists before it only counts."""


def listed(names: list[str]) -> str:
    """Return names for a line: the first few of them, and how many more there are."""
    shown = ", ".join(names[:SHOWN])
    more = len(names) - SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def size(count: int) -> str:
    """Return a number of bytes for a line: "64 MiB", "1.5 GiB"."""
    amount = float(count)
    for unit in ("bytes", "KiB", "MiB"):
        if amount < 1024:
            return f"{amount:.4g} {unit}"
        amount /= 1024
    return f"{amount:.4g} GiB"


def duration(seconds: float) -> str:
    """Return a time for a line: "90 s", "36 hours", "30 days"."""
    if seconds < 2 * 3600:
        return f"{seconds:.4g} s"
    if seconds < 3 * 86400:
        return f"{seconds / 3600:.4g} hours"
    return f"{seconds / 86400:.4g} days"

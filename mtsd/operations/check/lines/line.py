"""A result of the check: one line with a level, a subject, and what to do."""

from dataclasses import dataclass
from enum import Enum, StrEnum

from mtsd.model.outcome.command import options
from mtsd.model.outcome.reason import Reason


class Level(StrEnum):
    """How bad it is. An error prevents mtsd from starting, or stops it sooner or later."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the result. `id` names the kind of line and is stable over versions.

    `remedy` is "" if there is nothing to do.
    """

    id: str
    level: Level
    subject: str
    found: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Template:
    """A kind of line; `subject`, `found` and `remedy` have placeholders in braces."""

    level: Level
    subject: str
    found: str
    remedy: str = ""
    reason: Reason | None = None
    """The daemon's refusal or warning with the same words, if it is one."""


class KindOfLine(Enum):
    """A kind of lines: a name, and its template. `catalogue` has the members."""

    _value_: Template

    def line(self, **facts: object) -> Line:
        """Return a line of this kind; `facts` are the values of the placeholders in its texts."""
        template = self.value
        return Line(
            self.id,
            template.level,
            template.subject.format(**facts),
            _plain(template.found.format(**facts)),
            _plain(template.remedy.format(**facts, config=options())),
        )

    @property
    def id(self) -> str:
        """The name of the line in JSON and in the documentation."""
        return self.name.lower().replace("_", "-")


def ok(subject: str, found: str) -> Template:
    """Return the template of a line about something that is as it should be."""
    return Template(Level.OK, subject, found)


def warning(subject: str, found: str, remedy: str) -> Template:
    """Return the template of a line about something that may fail, or works poorly."""
    return Template(Level.WARNING, subject, found, remedy)


def error(subject: str, found: str, remedy: str) -> Template:
    """Return the template of a line about something that fails."""
    return Template(Level.ERROR, subject, found, remedy)


def refusal(subject: str, reason: Reason) -> Template:
    """Return the template of a line about something that the daemon refuses."""
    return Template(Level.ERROR, subject, reason.found, reason.remedy, reason)


def caution(subject: str, reason: Reason) -> Template:
    """Return the template of a line about something that the daemon only warns of."""
    return Template(Level.WARNING, subject, reason.found, reason.remedy, reason)


SHOWN = 5
"""How many names a line lists before it only counts the rest."""


def listed(names: list[str]) -> str:
    """Return names for a line: the first few, and how many more there are."""
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


def _plain(text: str) -> str:
    """Return a text on one line, whatever is in a server's message or in names."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())

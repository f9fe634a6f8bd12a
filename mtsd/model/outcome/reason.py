"""Why something is refused: each text is written once, for both the daemon and `mtsd check`."""

from collections.abc import Mapping
from dataclasses import dataclass

from mtsd.model.outcome.command import options


@dataclass(frozen=True, slots=True)
class Reason:
    """Why mtsd does not start or continue, and what a person has to do.

    Both are clauses without a full stop, with placeholders in braces; `remedy` begins with an
    ordinary word in lower case. A command in it ends with `{config}`, those of this process.
    """

    found: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Refused:
    """A decision not to continue; its text is the single line of an error message."""

    reason: Reason
    facts: Mapping[str, object]

    def __str__(self) -> str:
        found = self.reason.found.format(**self.facts)
        remedy = self.reason.remedy.format(**self.facts, config=options())
        return f"{found}. {remedy[:1].upper()}{remedy[1:]}"


def refuse(reason: Reason, **facts: object) -> Refused:
    """Return a refusal; `facts` are the values of the placeholders in the reason's texts."""
    return Refused(reason, facts)

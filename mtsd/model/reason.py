"""Why something is refused: each text is written once, for the daemon and for `mtsd check`."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reason:
    """Why mtsd does not begin or go on, and what a person has to do.

    Both are clauses without a full stop, with their facts in braces; `remedy` begins with an
    ordinary word in lower case.
    """

    found: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Refused:
    """A decision against going on; as a text it is the one line of an error message."""

    reason: Reason
    facts: Mapping[str, object]

    def __str__(self) -> str:
        found = self.reason.found.format(**self.facts)
        remedy = self.reason.remedy.format(**self.facts)
        return f"{found}. {remedy[:1].upper()}{remedy[1:]}"


def refuse(reason: Reason, **facts: object) -> Refused:
    """Return a refusal; `facts` are what the texts of the reason have in braces."""
    return Refused(reason, facts)

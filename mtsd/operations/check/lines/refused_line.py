"""The line for what the daemon refuses too: its words are the daemon's."""

from mtsd.model.outcome.reason import Refused
from mtsd.operations.check.lines.catalogue import Kind
from mtsd.operations.check.lines.line import Line

_BY_REASON = {kind.value.reason: kind for kind in Kind if kind.value.reason is not None}


def refused_line(refused: Refused) -> Line:
    """Return the line for a refusal, or for a warning with a reason of the daemon's."""
    return _BY_REASON[refused.reason].line(**refused.facts)

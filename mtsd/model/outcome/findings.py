"""What a look at a server has found: what stops mtsd, and what a person should only know of."""

from dataclasses import dataclass

from mtsd.model.errors import NeedsPersonError
from mtsd.model.outcome.reason import Refused


@dataclass(frozen=True, slots=True)
class Findings:
    """The result of a look; nothing at all is the usual one."""

    stops: tuple[Refused, ...] = ()
    warns: tuple[Refused, ...] = ()

    def __or__(self, other: "Findings") -> "Findings":
        return Findings(self.stops + other.stops, self.warns + other.warns)

    def require(self) -> None:
        """Raise NeedsPersonError if anything stops mtsd."""
        if self.stops:
            raise NeedsPersonError(str(self.stops[0]))

"""What can be set for a stream of groups from a source."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from mtsd.filter.filter import UNFILTERED, Filter


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """How to read. Sizes in bytes."""

    hold_bytes: int
    """Larger groups are streamed."""
    chunk_bytes: int
    replicated: Filter = UNFILTERED
    referred_in: Mapping[str, AbstractSet[str]] | None = None
    """See `Grouper`."""

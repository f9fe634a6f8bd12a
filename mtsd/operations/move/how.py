"""What a person says about a move."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class HowToMove:
    """`timeout` is in seconds, for all of it; `accepted` are names of differences."""

    execute: bool = False
    accepted: frozenset[str] = frozenset()
    timeout: float = 60.0
    report: Path | None = None
    """Where what is done is written, with times."""

"""What a source says about its binary log: all that decides whether a replica can read from it."""

from dataclasses import dataclass, field

from mtsd.model.gtid import GtidSet
from mtsd.model.low_water_mark import LowWaterMark


@dataclass(frozen=True, slots=True)
class BinlogFile:
    """One file as SHOW BINARY LOGS lists it; `size` in bytes."""

    name: str
    size: int


@dataclass(frozen=True, slots=True)
class SourceState:
    """A source at one moment."""

    uuid: str
    gtid_mode: bool
    """Whether gtid_mode is ON."""
    executed: GtidSet = field(default_factory=GtidSet)
    """Everything that it has executed or is committing: a replica may already have that."""
    purged: GtidSet = field(default_factory=GtidSet)
    """gtid_purged: executed, and not in its binary log."""
    files: tuple[BinlogFile, ...] | None = None
    """Oldest first; None if they may not be listed."""
    end: LowWaterMark | None = None
    """Its end as a mark whose number is 0, if that was asked for."""

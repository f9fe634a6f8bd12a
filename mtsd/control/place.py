"""A place in the source's binlog, as a status shows it."""

from dataclasses import dataclass
from typing import Final

from mtsd.model.gtid import Gtid, GtidSet
from mtsd.model.position import Position


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the source's binlog: the end of a group; file "" and pos 0 if unknown.

    `gtid` is that group's GTID, or everything executed up to there as a set; "" if unknown.
    """

    file: str = ""
    pos: int = 0
    gtid: str = ""

    @classmethod
    def of(cls, position: Position | None, gtid: Gtid | GtidSet | str | None = None) -> "Place":
        """Return the place of a position."""
        if position is None:
            return cls(gtid=str(gtid or ""))
        return cls(position.file, position.offset, str(gtid or ""))

    def __str__(self) -> str:
        return f"{self.file}:{self.pos}" if self.file else ""


NOWHERE: Final = Place()

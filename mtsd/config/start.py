"""Where to begin reading while the target has no position: the setting `source.start`."""

import re
from dataclasses import dataclass

from mtsd.model.gtid import GtidSet
from mtsd.model.position import FIRST_EVENT

_LAST_POSITION = 2**64 - 1

_FILE_POSITION = re.compile(r"([^\s/\\:'\"`]{1,255}):([0-9]{1,20})")


@dataclass(frozen=True, slots=True)
class Earliest:
    """The oldest binary log file that the source still has."""

    def __str__(self) -> str:
        return "earliest"


@dataclass(frozen=True, slots=True)
class Latest:
    """The source's end at the moment of connecting."""

    def __str__(self) -> str:
        return "latest"


@dataclass(frozen=True, slots=True)
class FilePosition:
    """The event that begins at byte `pos` of the source's binary log `file`."""

    file: str
    pos: int

    def __str__(self) -> str:
        return f"{self.file}:{self.pos}"


@dataclass(frozen=True, slots=True)
class GtidStart:
    """Everything that is not in a GTID set.

    `text` is the set without white space, in a form that `GtidSet.parse` accepts.
    """

    text: str

    def __str__(self) -> str:
        return f"gtid:{self.text}"


Start = Earliest | Latest | FilePosition | GtidStart


def parse_start(text: str) -> Start | None:
    """Parse the setting's text; "" is None. Raises ValueError with the reason."""
    if not text:
        return None
    if text == "earliest":
        return Earliest()
    if text == "latest":
        return Latest()
    if text.startswith("gtid:"):
        gtids = "".join(text.removeprefix("gtid:").split())
        if not all(gtids.split(",")):
            raise ValueError("not a GTID set")
        GtidSet.parse(gtids)
        return GtidStart(gtids)
    parts = _FILE_POSITION.fullmatch(text)
    if parts is None:
        raise ValueError("not one of the four forms")
    pos = int(parts[2])
    if not FIRST_EVENT <= pos <= _LAST_POSITION:
        raise ValueError(f"the first event of a binary log begins at {FIRST_EVENT}")
    return FilePosition(parts[1], pos)

"""Where to begin reading while the target has no position: the setting `source.start`."""

from dataclasses import dataclass

from mtsd.model.gtid import GtidSet
from mtsd.model.position import parse_position


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
        # mysqldump writes the set as an addition, which begins with a +.
        gtids = "".join(text.removeprefix("gtid:").split()).removeprefix("+")
        if not all(gtids.split(",")):
            raise ValueError("not a GTID set")
        GtidSet.parse(gtids)
        return GtidStart(gtids)
    position = parse_position(text)
    if position is None:
        raise ValueError(
            'not one of the four forms: "FILE:POS", "gtid:SET", "earliest" or "latest"'
        )
    return FilePosition(position.file, position.offset)

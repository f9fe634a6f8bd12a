"""A place in the source's binary log, and the file that it is in."""

import re
from dataclasses import dataclass
from typing import Final, NamedTuple

FIRST_EVENT = 4
"""The offset of the first event in a file, after the magic number."""
BEGUN_UNKNOWN: Final = 0
"""When a file was begun, where that is not known."""
_LAST_OFFSET: Final = 2**64 - 1
_FILE_POSITION: Final = re.compile(r"([^\s/\\:'\"`]{1,255}):([0-9]{1,20})")


class Position(NamedTuple):
    """The byte `offset` in binlog file `file`: the place right after an event.

    Files order by their numeric suffix ("binlog.000009" < "binlog.1000000"), so positions of one
    source compare with `<`. Where `file` is "", only GTIDs say where that is, and `offset` counts
    what has been read.
    """

    file: str
    offset: int

    def __str__(self) -> str:
        return f"{self.file}:{self.offset}" if self.file else "by GTID set"

    @property
    def as_ending(self) -> str:
        """What to say of a group that ends here, after its number; "" where nothing is known."""
        return f", ending at {self}" if self.file else ""

    def __lt__(self, other: tuple[object, ...]) -> bool:
        return isinstance(other, Position) and self._order() < other._order()

    def __le__(self, other: tuple[object, ...]) -> bool:
        return isinstance(other, Position) and self._order() <= other._order()

    def __gt__(self, other: tuple[object, ...]) -> bool:
        return isinstance(other, Position) and self._order() > other._order()

    def __ge__(self, other: tuple[object, ...]) -> bool:
        return isinstance(other, Position) and self._order() >= other._order()

    def _order(self) -> tuple[int, int, str]:
        suffix = self.file.rpartition(".")[2]
        return (int(suffix) if suffix.isdecimal() else 0, self.offset, self.file)


NOWHERE: Final = Position("", 0)
"""No place in a file."""


@dataclass(frozen=True, slots=True)
class LogFile:
    """The file of the source's log that is read from here on, as its first event describes it.

    A connection that begins in the middle of a file tells it, too.
    """

    name: str
    begun: int
    """When the source began it, in seconds since 1970: no other file of that name has the same."""


class LogFiles:
    """Knows the file of a place, and those that have been read since."""

    __slots__ = ("_begun",)

    def __init__(self, name: str, begun: int) -> None:
        self._begun = {name: begun}

    def begun(self, name: str) -> int:
        """Return when a file was begun, in seconds since 1970; BEGUN_UNKNOWN if none was read."""
        return self._begun.get(name, BEGUN_UNKNOWN)

    def add(self, file: LogFile, place: Position) -> None:
        """Note a file; those that come before that of `place` are forgotten."""
        if not file.name:
            # The log is inside a storage engine, in no files.
            return
        first = Position(place.file, 0)
        kept = {name: at for name, at in self._begun.items() if Position(name, 0) >= first}
        self._begun = kept | {file.name: file.begun}


def parse_position(text: str) -> Position | None:
    """Parse "FILE:POS", where an event may begin; None if the text is not of that form.

    Raises ValueError with the reason if no event can begin at POS.
    """
    parts = _FILE_POSITION.fullmatch(text)
    if parts is None:
        return None
    offset = int(parts[2])
    if not FIRST_EVENT <= offset <= _LAST_OFFSET:
        raise ValueError(f"the first event of a binary log begins at {FIRST_EVENT}")
    return Position(parts[1], offset)

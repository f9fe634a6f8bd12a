"""A place in the source's binary log."""

import re
from typing import Final, NamedTuple

FIRST_EVENT = 4
"""The offset of the first event in a file, after the magic number."""
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

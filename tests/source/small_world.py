"""A source of a few transactions in a few files, in every state that it can be in.

Transaction n ends at offset 4 + 100 n of its file, three to a file; a transaction is a GTID of the
server U where there are GTIDs.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from mtsd.model.gtid import GtidSet
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.position import FIRST_EVENT, Position
from mtsd.source.source_state import BinlogFile, SourceState

U = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
V = "4f22fa47-71ca-11e1-9e33-c80aa9429562"
A_FILE = 3
TRANSACTIONS = range(8)
"""How many there may be."""


def gtids(first: int, last: int) -> GtidSet:
    """Return the GTIDs of the transactions from one to another, none where `last` is less."""
    return GtidSet.parse(f"{U}:{first}-{last}" if first <= last else "")


def place(number: int) -> Position:
    """Return the end of a transaction; for 0 the beginning of the log."""
    file, within = divmod(max(number - 1, 0), A_FILE)
    inside = within + 1 if number else 0
    return Position(f"binlog.{file + 1:06}", FIRST_EVENT + 100 * inside)


@dataclass(frozen=True)
class World:
    """A source with the transactions up to `last`, of which the files before `first` are purged."""

    last: int
    first_file: int
    gtid_mode: bool
    uuid: str

    @property
    def purged(self) -> int:
        """How many transactions are purged."""
        return (self.first_file - 1) * A_FILE

    @property
    def state(self) -> SourceState:
        """What the source says."""
        end = place(self.last)
        last_file = int(end.file.rpartition(".")[2])
        files = tuple(
            BinlogFile(f"binlog.{n:06}", end.offset if n == last_file else place(n * A_FILE).offset)
            for n in range(self.first_file, last_file + 1)
        )
        known = gtids(1, self.last) if self.gtid_mode else GtidSet()
        gone = gtids(1, self.purged) if self.gtid_mode else GtidSet()
        mark = LowWaterMark(0, end, known if self.gtid_mode else None)
        return SourceState(self.uuid, self.gtid_mode, known, gone, files, mark)


def worlds() -> Iterator[World]:
    """Yield every one."""
    for last, gtid_mode, uuid in product(TRANSACTIONS, (True, False), (U, V)):
        files = int(place(last).file.rpartition(".")[2])
        for first in range(1, files + 1):
            yield World(last, first, gtid_mode, uuid)

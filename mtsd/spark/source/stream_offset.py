"""An offset of a stream, as Spark keeps it in a checkpoint, and the way to another server.

    {"file": "binlog.000007", "pos": 15243, "source": "3e11fa47-…", "gtids": "3e11fa47-…:1-2093"}

`source` and `gtids` are those of a live source. At another server, files and positions are others;
the GTIDs say what has been read. A replica may have committed in another order, so that some of
them come after the first one that was not read: they are in `skip` until all have been passed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from mtsd.model.gtid import GtidSet
from mtsd.model.position import Position
from mtsd.spark.logs.group_search import place_after_gtids
from mtsd.spark.logs.logs import Logs
from mtsd.spark.options.options import OptionError

Offset = dict[str, str | int]


@dataclass(frozen=True, slots=True)
class StreamOffset:
    """A place between two groups; None: not chosen yet.

    `executed` are the GTIDs of all groups before it, "" if they are not known. `skip` are those
    that may come after it, and have been read. `epoch` counts the servers that were read before.
    """

    place: Position | None
    source: str = ""
    executed: str = ""
    skip: str = ""
    epoch: int = 0

    @classmethod
    def of(cls, offset: Mapping[str, object]) -> "StreamOffset":
        """Return an offset of the checkpoint. Raises OptionError if it is of another format."""
        texts = [offset.get(name, "") for name in ("file", "source", "gtids", "skip")]
        numbers = [offset.get("pos"), offset.get("epoch", 0)]
        file, source, executed, skip = (str(text) for text in texts)
        pos, epoch = (number if isinstance(number, int) else -1 for number in numbers)
        if not all(isinstance(text, str) for text in texts) or min(pos, epoch) < 0:
            raise OptionError(f"the checkpoint is of another source: its offset is {dict(offset)}")
        return cls(Position(file, pos) if file else None, source, executed, skip, epoch)

    def as_json(self) -> Offset:
        """Return it for the checkpoint."""
        place = self.place or Position("", 0)
        more = {"source": self.source, "gtids": self.executed, "skip": self.skip}
        document: Offset = {"file": place.file, "pos": place.offset}
        document |= {name: text for name, text in more.items() if text}
        return document | ({"epoch": self.epoch} if self.epoch else {})

    @property
    def at(self) -> Position:
        """The place. Raises OptionError if there is none."""
        if self.place is None:
            raise OptionError("the stream has not begun")
        return self.place

    def moved(self, logs: Logs) -> "StreamOffset":
        """Return the place of what was read in the log of another server.

        Raises FilesError if that has not executed all of it, or no longer has what follows.
        """
        executed = GtidSet.parse(self.executed)
        files = logs.files()
        there = GtidSet.parse(logs.executed_at(Position(*files[-1])))
        missing = executed.minus(there)
        if missing:
            raise OptionError(
                f"the server {logs.origin} is another one now, and has not executed {missing},"
                " which this query has read: wait until it has. If it never will, these rows were"
                " lost in the failover: begin with a new copy, and a new checkpoint"
            )
        place = place_after_gtids(logs, executed)
        return replace(
            self, place=place, source=logs.origin, skip=self.executed, epoch=self.epoch + 1
        )

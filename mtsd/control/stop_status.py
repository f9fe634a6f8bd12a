"""What a status says of a replica that has stopped: why, at which group, and what was skipped."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mtsd.control.place import Place

if TYPE_CHECKING:
    from mtsd.apply.position.failed_groups import SkippedGroup

NOT_SAID: Final = (
    "the last daemon did not say why it ended: it was killed, or its machine went down; the next"
    " start goes on where it was"
)
"""What a status without a daemon says if nobody knows why there is none."""
HELD: Final = (
    "no daemon answers here, but connection {} of the target has the channel: of a daemon whose"
    " socket is gone or that runs on another machine, or of a killed one that it still works for"
)
"""What it says instead if the channel is not free."""
NOT_BEGUN: Final = "no daemon has begun at this position yet"
"""What it says after `mtsd position set`."""
NONE_YET: Final = "no daemon has run on this channel yet"


@dataclass(frozen=True, slots=True)
class LastStopStatus:
    """How the last daemon has ended; `time` is ISO 8601.

    `text` is the whole error, "" after a graceful stop; `number` is the server's and `group` the
    number of the group that it is about, 0 if there is none.
    """

    time: str
    graceful: bool
    text: str = ""
    number: int = 0
    group: int = 0


@dataclass(frozen=True, slots=True)
class InDoubtStatus:
    """A group that was begun separately from its record, and is not known to be done."""

    number: int
    worker: int
    kind: str
    end: Place
    databases: str


@dataclass(frozen=True, slots=True)
class StoppedStatus:
    """The group that the replica stopped at, and that is still to be applied or skipped.

    `end` is that of the group, with file "" if it has not been read; `error` is the whole message;
    `later_applied` says whether later groups have already been applied; `time` is ISO 8601.
    """

    number: int
    end: Place
    kind: str
    databases: str
    error: str
    later_applied: bool
    time: str


@dataclass(frozen=True, slots=True)
class SkippedStatus:
    """A group that a person has skipped, with the error that it stopped the replica with."""

    number: int
    end: Place
    databases: str
    error: str
    who: str
    why: str
    time: str

    @classmethod
    def of(cls, skipped: "SkippedGroup") -> "SkippedStatus":
        """Return what a record of the target says."""
        group = skipped.group
        return cls(
            number=group.number,
            end=Place.of(group.end, group.gtid),
            databases=",".join(group.databases),
            error=skipped.message,
            who=skipped.who,
            why=skipped.why,
            time=skipped.time.isoformat(),
        )

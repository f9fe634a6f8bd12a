"""Whether a file of the source's log is the one that was read, or another of the same name.

A source that is restored from an older copy, with its UUID, gives the names of its files, their
offsets and its GTIDs a second time. What tells the files apart is when each was begun: the time of
its first event, which a source sends at each connection, also from the middle of the file.
"""

from datetime import UTC, datetime

from mtsd.model.outcome.reason import Reason, Refused, refuse
from mtsd.model.position import BEGUN_UNKNOWN, LogFile, Position

REPLACED = Reason(
    "the source's {file} is not the file of this name that was read, where the position {position}"
    " is: that one was begun at {then}, this one at {now}, so the source was restored from an older"
    " copy, or its binary log was begun anew",
    "compare the two servers, or copy the data again, then say where to continue with mtsd position"
    " set",
)


def replaced(position: Position, begun: int, file: LogFile) -> Refused | None:
    """Refuse a file that has the name of one that was read, and is another one.

    `begun` is when that one was begun, or BEGUN_UNKNOWN; `position` is how far was read. Only
    equality counts, so a clock that is set back does not matter.
    """
    if BEGUN_UNKNOWN in {begun, file.begun} or begun == file.begun:
        return None
    return refuse(
        REPLACED, file=file.name, position=position, then=_shown(begun), now=_shown(file.begun)
    )


def _shown(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"

"""Where to begin while the target has no position yet, and what `mtsd position set` accepts."""

from mtsd.config.start import Earliest, FilePosition, GtidStart, Latest, Start
from mtsd.model.gtid import GtidSet
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.outcome.command import command
from mtsd.model.outcome.reason import Reason, Refused, refuse
from mtsd.model.position import FIRST_EVENT, NOWHERE, Position
from mtsd.source.continuation import LONGEST_SET, PURGED, ChannelPlace, continuation, shown
from mtsd.source.source_state import SourceState

_COPY = (
    "copy the data and start at the copy's position; or, if the target does not need those"
    " transactions or already has them, set [source] allow_partial_history = true"
)
MISSING = Reason(
    "the target has no position for this channel yet, and [source] start is not set",
    'say where to begin with [source] start = "earliest", "latest", "FILE:POS" or "gtid:SET",'
    " or, once a dump is loaded, with mtsd position set FILE:POS{config}",
)
WITHOUT_GTIDS = Reason(
    "the start is a GTID set, but the source's gtid_mode is not ON",
    "set gtid_mode = ON on the source, or start at FILE:POS",
)
NOT_EXECUTED = Reason(
    "the start is a GTID set with {missing}, which the source has not executed",
    "use the set of a copy of this source's data, or point [source] at the server that it is from;"
    " without them: {without}",
)
NO_PLACE = Reason(
    "the start is {place}, but the source's binary log goes from {first} to {end}",
    'choose a place within it, or "earliest" or "latest"',
)
INSIDE_GROUP = Reason(
    "the start is {place}, but no transaction begins there: it is inside of one, or after its GTID",
    "choose the place after a transaction, or the beginning of a file:"
    " mtsd binlog --events {file}{config} shows them",
)
HISTORY_PURGED = Reason(
    'the start is "earliest", but the source\'s {record} contains {purged}: transactions that'
    " are not in its binary log, because their files were purged, or because a restore or a replica"
    " that mirrors GTIDs has added them; their changes cannot be replicated",
    _COPY,
)
FILES_PURGED = Reason(
    'the start is "earliest", but the source has purged its beginning: its binary log begins with'
    " {first}",
    _COPY,
)
WITHOUT_FILES = Reason(
    "the start is {place}, but the source's binary log is inside a storage engine"
    " (binlog_storage_engine), which is read by GTID only",
    'begin at "gtid:SET", "earliest" or "latest"',
)
UNSEEN = Reason(
    'the start is "{start}", but the user may not see the source\'s binary log (error 1227)',
    "grant {privilege} on the source to the user of [source] user",
)


def beginning(
    start: Start | None,
    source: SourceState,
    *,
    allow_partial_history: bool,
    executed: GtidSet | None = None,
) -> LowWaterMark | Refused:
    """Decide the low-water mark that a channel begins with; its number is 0.

    `executed` is what the target has of the source's GTIDs, if it is given those: even if its
    position tables are lost, "earliest" begins after that.
    """
    if start is None:
        return refuse(MISSING)
    if isinstance(start, Earliest):
        return _earliest(source, executed or GtidSet(), allow_partial_history=allow_partial_history)
    if isinstance(start, Latest):
        return source.end if source.end is not None else _unseen(start, source)
    if isinstance(start, GtidStart):
        return _after(GtidSet.parse(start.text), source)
    return _at(start, source)


def _unseen(start: Start, source: SourceState) -> Refused:
    return refuse(UNSEEN, start=start, privilege=source.privilege)


def _after(gtids: GtidSet, source: SourceState) -> LowWaterMark | Refused:
    if not source.gtid_mode:
        return refuse(WITHOUT_GTIDS)
    lacking = gtids.minus(source.executed)
    if lacking:
        left = gtids.shared(source.executed)
        return refuse(NOT_EXECUTED, missing=shown(lacking), without=_without(left))
    gone = source.purged.minus(gtids)
    if gone:
        return refuse(PURGED, missing=shown(gone))
    return LowWaterMark(0, NOWHERE, gtids)


def _without(left: GtidSet) -> str:
    """Return the command that begins after what is left of a set."""
    if not left:
        return "nothing of the set is left"
    if len(str(left)) > LONGEST_SET:
        return "leave them out of the set"
    return command("position", "set", f"gtid:{left}")


def _at(start: FilePosition, source: SourceState) -> LowWaterMark | Refused:
    position = Position(start.file, start.pos)
    if source.without_files:
        return refuse(WITHOUT_FILES, place=position)
    way = continuation(ChannelPlace(position, None, source.uuid, None), source)
    if isinstance(way, Refused) and source.files:
        first, last = source.files[0], source.files[-1]
        end = Position(last.name, last.size)
        return refuse(NO_PLACE, place=position, first=first.name, end=end)
    if source.inside_group:
        return refuse(INSIDE_GROUP, place=position, file=start.file)
    return LowWaterMark(0, position, source.before)


def _earliest(
    source: SourceState, executed: GtidSet, *, allow_partial_history: bool
) -> LowWaterMark | Refused:
    if source.without_files:
        # If it has purged transactions, it refuses to send any.
        return LowWaterMark(0, NOWHERE, executed.shared(source.executed))
    if not source.files:
        return _unseen(Earliest(), source)
    first = source.files[0].name
    if not source.gtid_mode:
        if not allow_partial_history and first.rpartition(".")[2].lstrip("0") != "1":
            return refuse(FILES_PURGED, first=first)
        return LowWaterMark(0, Position(first, FIRST_EVENT), None)
    common = executed.shared(source.executed)
    missing = source.purged.minus(common)
    if missing and not allow_partial_history:
        record = "first GTID_LIST event" if source.by_gtid else "gtid_purged"
        return refuse(HISTORY_PURGED, record=record, purged=shown(missing))
    if common.minus(source.purged):
        return LowWaterMark(0, NOWHERE, source.purged.union(common))
    return LowWaterMark(0, Position(first, FIRST_EVENT), source.purged)

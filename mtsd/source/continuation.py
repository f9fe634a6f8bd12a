"""How a channel continues with a source: by file, by GTID set, as with another source, or not.

The same server is read by file and position, whether it has GTIDs or not: asked by GTID set, a
server leaves out whole files of transactions that have none. Another server is adopted by GTID set,
once it is known to have executed everything that was. All transactions of MariaDB have GTIDs, so
it is read by these as soon as they are known. The daemon and `mtsd check` both decide here.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from mtsd.model.gtid import GtidSet
from mtsd.model.outcome.reason import Reason, Refused, refuse
from mtsd.model.position import BEGUN_UNKNOWN, LogFile, Position
from mtsd.model.server import flavour_of_identity
from mtsd.schedule.done.repair import Repair
from mtsd.source.replaced_file import replaced
from mtsd.source.source_state import BinlogFile, SourceState

LONGEST_SET = 400
"""Characters of a GTID set in a message."""


@dataclass(frozen=True, slots=True)
class ChannelPlace:
    """What is known about how far a channel has got."""

    position: Position
    """Where to continue in the files of `source_uuid`; file "" if only the GTIDs are known."""
    gtids: GtidSet | None
    """What a dump by GTID set has to leave out; None if unknown."""
    source_uuid: str
    executed: GtidSet | None
    """`gtids` and what has been executed beyond; None if unknown."""
    is_complete: bool = True
    """Whether `executed` covers every group, so that none is known by its number only."""
    repair: Repair | None = None
    """What has to be applied once more, in the order of that source."""
    begun: int = BEGUN_UNKNOWN
    """When that source began the file of `position`; see `LowWaterMark.begun`."""


@dataclass(frozen=True, slots=True)
class ByFile:
    """Continue from a file and position."""

    position: Position


@dataclass(frozen=True, slots=True)
class ByGtid:
    """Request everything that is not in a GTID set."""

    gtids: GtidSet


@dataclass(frozen=True, slots=True)
class Adopt:
    """The source is another server: continue with it, by the set of what has been executed."""

    executed: GtidSet
    former: str
    """The UUID of the previous source."""


Way = ByFile | ByGtid | Adopt | Refused

_COMPARE = "compare the two servers, then say where to continue with mtsd position set"
_COPY = "copy the data again, then say where the copy ends with mtsd position set"
AHEAD = Reason(
    "the target is ahead of its source, which lacks {missing}: the source was reset, has lost"
    " its last transactions, or is another server",
    _COMPARE,
)
PAST_END = Reason(
    "the position {position} is past the end of the source's binary log, {end}: the source was"
    " reset, or has lost its last transactions",
    _COMPARE,
)
REWRITTEN = Reason(
    "before {file}, where the position {position} is, the source has written transactions that were"
    " never read, {missing}: its binary log was begun anew (RESET BINARY LOGS AND GTIDS), or it was"
    " restored",
    _COMPARE,
)
PURGED = Reason(
    "the source has purged what is needed next: {missing}",
    _COPY,
)
PURGED_FILE = Reason(
    "the source has purged what is needed next, {position}: its binary log begins with {first}",
    _COPY,
)
PURGED_APPLIED = Reason(
    "the source has purged what is needed next, {position}: its binary log begins with {first};"
    " according to their GTIDs, all purged transactions are applied",
    "continue by GTID with mtsd position set gtid:SET, using the set from mtsd position show,"
    " unless the source has written transactions without GTIDs in the meantime",
)
OTHER_SOURCE = Reason(
    "the source is now {uuid}, but the position belongs to {former}",
    "point [source] at that server, or say where to continue in the new one with mtsd position set;"
    " had both gtid_mode = ON, mtsd would find the place by itself",
)
NOT_KNOWN_BY_GTID = Reason(
    "the source is now {uuid}, and what was executed from the previous one, {former}, is not known"
    " by GTID",
    "point [source] at that server, where FLUSH BINARY LOGS makes it known if gtid_mode is ON; or"
    " say where to continue in the new one with mtsd position set",
)
NOT_REPAIRED = Reason(
    "the source is now {uuid}, but groups {first} to {last} of the previous one, {former}, were"
    ' being applied in no order (consistency = "eventual") when mtsd or the target was killed: they'
    " have to be applied once more, in the order of that source",
    "point [source] at that server for a moment; or, after comparing the servers, say where to"
    " continue in the new one with mtsd position set",
)
OTHER_FAMILY = Reason(
    "the source is now {uuid}, a {source}, but the position belongs to {former}, a {before}, whose"
    " positions and GTIDs mean nothing there",
    "point [source] at that server, or begin anew with mtsd position set",
)
GTIDS_OFF = Reason(
    "the position is known by GTID only, but the source's gtid_mode is not ON",
    "set gtid_mode = ON on the source, or say where to continue with mtsd position set FILE:POS",
)
RENAMED = Reason(
    "the position is {position}, but the source's binary log has another name now, {first}, and"
    " where to continue there is not known by GTID",
    "if everything in the former files is applied, continue with"
    " mtsd position set {first}:4{config}; if not, let the source list them again (its"
    " log_bin_index), and restart it",
)
WITHOUT_FILES = Reason(
    "the position is {position}, but the source's binary log is inside a storage engine"
    " (binlog_storage_engine), which is read by GTID only",
    'say where to continue with mtsd position set gtid:SET, or "earliest" or "latest"',
)


def continuation(channel: ChannelPlace, source: SourceState) -> Way:
    """Decide how to continue."""
    by_gtid = source.gtid_mode and channel.gtids is not None
    families = [flavour_of_identity(uuid).value for uuid in (source.uuid, channel.source_uuid)]
    if families[0] != families[1]:
        return refuse(
            OTHER_FAMILY,
            uuid=source.uuid,
            source=families[0],
            former=channel.source_uuid,
            before=families[1],
        )
    if channel.executed is not None and source.gtid_mode:
        lacking = channel.executed.minus(source.executed)
        if lacking:
            return refuse(AHEAD, missing=shown(lacking))
    if source.uuid != channel.source_uuid:
        if not source.gtid_mode:
            return _of(OTHER_SOURCE, channel, source.uuid)
        gone = source.purged.minus(channel.executed or GtidSet())
        adopted = adoption(channel, source.uuid)
        if gone and isinstance(adopted, Adopt):
            return refuse(PURGED, missing=shown(gone))
        return adopted
    if channel.position.file and not (source.by_gtid and by_gtid):
        return _by_file(channel, source, by_gtid=by_gtid)
    return _by_gtid(channel, source)


def _by_gtid(channel: ChannelPlace, source: SourceState) -> ByGtid | Refused:
    if channel.gtids is None or not source.gtid_mode:
        return refuse(GTIDS_OFF)
    other = _other_log(channel, source)
    if other is not None:
        return other
    gone = source.purged.minus(channel.gtids)
    return refuse(PURGED, missing=shown(gone)) if gone else ByGtid(channel.gtids)


def _other_log(channel: ChannelPlace, source: SourceState) -> Refused | None:
    """Refuse a log that is not the one that was read up to the position, as far as is known."""
    position = channel.position
    end = past_end(position, source.files or ())
    if end is not None:
        return refuse(PAST_END, position=position, end=end)
    return replaced(position, channel.begun, LogFile(position.file, source.file_begun))


def is_renamed(position: Position, source: SourceState) -> bool:
    """Return whether the source's files have another name than that of a position (log_bin)."""
    names = {base_name(file.name) for file in source.files or ()}
    return bool(position.file and names) and base_name(position.file) not in names


def past_end(position: Position, files: Sequence[BinlogFile]) -> Position | None:
    """Return the end of a log, or of that file of it, if a position is past it; else None.

    `files` oldest first. A position in files of another name is past no end.

    >>> past_end(Position("b.000003", 900), (BinlogFile("b.000001", 157),))
    Position(file='b.000001', offset=157)
    """
    ends = [
        Position(each.name, each.size)
        for each in files
        if base_name(each.name) == base_name(position.file)
    ]
    end = next((each for each in ends if each.file == position.file), ends[-1] if ends else None)
    return end if end is not None and position > end else None


def base_name(file: str) -> str:
    """Return the name of a binary log without the number of its file."""
    return file.rpartition(".")[0]


def adoption(channel: ChannelPlace, source_uuid: str) -> Adopt | Refused:
    """Decide whether enough is known about a channel to continue with another server."""
    if channel.repair is not None:
        return refuse(
            NOT_REPAIRED,
            uuid=source_uuid,
            former=channel.source_uuid,
            first=channel.repair.first,
            last=channel.repair.last,
        )
    if channel.executed is None or not channel.is_complete:
        return _of(NOT_KNOWN_BY_GTID, channel, source_uuid)
    return Adopt(channel.executed, channel.source_uuid)


def _of(reason: Reason, channel: ChannelPlace, uuid: str) -> Refused:
    return refuse(reason, uuid=uuid, former=channel.source_uuid)


def _by_file(
    channel: ChannelPlace, source: SourceState, *, by_gtid: bool
) -> ByFile | ByGtid | Refused:
    position = channel.position
    if source.without_files:
        return refuse(WITHOUT_FILES, position=position)
    if not source.files:
        # The files cannot be listed: the source itself will report it.
        return ByFile(position)
    if is_renamed(position, source):
        # gtid_mode is ON, so what the former files had after the position has GTIDs.
        if by_gtid:
            return _by_gtid(channel, source)
        return refuse(RENAMED, position=position, first=source.files[0].name)
    other = _other_log(channel, source)
    if other is not None:
        return other
    if any(file.name == position.file for file in source.files):
        never_read = _never_read(channel, source)
        if never_read:
            missing = shown(never_read)
            return refuse(REWRITTEN, file=position.file, position=position, missing=missing)
        return ByFile(position)
    first = next(file for file in source.files if base_name(file.name) == base_name(position.file))
    applied = (
        source.gtid_mode
        and channel.gtids is not None
        and channel.gtids == channel.executed
        and source.purged.issubset(channel.gtids)
    )
    reason = PURGED_APPLIED if applied else PURGED_FILE
    return refuse(reason, position=position, first=first.name)


def _never_read(channel: ChannelPlace, source: SourceState) -> GtidSet:
    """Return what a source has logged before the file of the position, and the channel has not.

    The names of files and the numbers of transactions begin anew with RESET: `binlog.000002:198`
    after transactions 1 to 7 is a place of the new log too, and 8 to 20 may be before it. What was
    added to gtid_purged by hand is in no file.
    """
    if source.before_file is None or channel.gtids is None:
        return GtidSet()
    return source.before_file.minus(channel.gtids).minus(source.purged)


def shown(gtids: GtidSet) -> str:
    """Return a GTID set for a message, cut if it is long."""
    text = str(gtids)
    return text if len(text) <= LONGEST_SET else f"{text[: LONGEST_SET - 1]}…"

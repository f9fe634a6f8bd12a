"""Where to begin while the target holds no position yet."""

from mtsd.config.start import Earliest, FilePosition, GtidStart, Latest, Start
from mtsd.model.errors import NeedsPersonError
from mtsd.model.gtid import GtidSet
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.position import Position
from mtsd.source.handshake import SourceSession
from mtsd.wire.binlog_status import binlog_status

_FIRST_EVENT = 4


async def resolve_start(
    session: SourceSession, start: Start | None, *, allow_partial_history: bool
) -> LowWaterMark:
    """Return the low-water mark of a channel that begins now, its number being 0.

    Raises NeedsPersonError where the setting is missing or does not fit the source.
    """
    if start is None:
        raise NeedsPersonError(
            "the target holds no position for this channel yet: say where to begin with"
            ' [source] start = "earliest", "latest", "FILE:POS" or "gtid:SET"'
        )
    if isinstance(start, FilePosition):
        return LowWaterMark(0, Position(start.file, start.pos), None)
    if isinstance(start, GtidStart):
        if not session.traits.gtid_mode:
            raise NeedsPersonError(
                "[source] start is a GTID set, and the source has gtid_mode other than ON"
            )
        return LowWaterMark(0, Position("", 0), GtidSet.parse(start.text))
    if isinstance(start, Latest):
        return await _latest(session)
    if isinstance(start, Earliest):
        return await _earliest(session, allow_partial_history=allow_partial_history)
    raise TypeError(f"not a start: {start!r}")


async def _latest(session: SourceSession) -> LowWaterMark:
    rows = await session.connection.query(binlog_status(session.traits.version))
    file, offset, *_, gtids = rows[0]
    known = GtidSet.parse(str(gtids)) if session.traits.gtid_mode else None
    return LowWaterMark(0, Position(str(file), int(str(offset))), known)


async def _earliest(session: SourceSession, *, allow_partial_history: bool) -> LowWaterMark:
    logs = await session.connection.query(b"SHOW BINARY LOGS")
    file = str(logs[0][0])
    purged: GtidSet | None = None
    if session.traits.gtid_mode:
        rows = await session.connection.query(b"SELECT @@global.gtid_purged")
        purged = GtidSet.parse(str(rows[0][0]))
    suffix = file.rpartition(".")[2]
    if (purged or (purged is None and suffix.strip("0") != "1")) and not allow_partial_history:
        raise NeedsPersonError(
            f"the source has purged its beginning (its first binlog is {file}): copy the data and"
            " start at the copy's position, or set [source] allow_partial_history = true"
        )
    return LowWaterMark(0, Position(file, _FIRST_EVENT), purged)

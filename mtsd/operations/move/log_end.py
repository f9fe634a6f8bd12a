"""How far a server has got on which nobody writes, and what a replication lacks of that."""

from dataclasses import dataclass

from mtsd.config.start import FilePosition, GtidStart, Start
from mtsd.model.gtid import GtidSet
from mtsd.model.position import NOWHERE, Position
from mtsd.operations.move.admin import AdminSession
from mtsd.operations.move.own_channel import words_of
from mtsd.replica.guards.executed_beyond import count_missing
from mtsd.source.continuation import shown
from mtsd.wire.binlog_status import binlog_status
from mtsd.wire.traits import ServerTraits


@dataclass(frozen=True, slots=True)
class LogEnd:
    """How far a server has got: by GTID if it has them, and by file."""

    gtids: GtidSet | None
    position: Position

    def start(self) -> Start:
        """Return the place that a replication begins at which reads what comes next."""
        if self.gtids is not None:
            return GtidStart(str(self.gtids))
        return FilePosition(self.position.file, self.position.offset)

    def lacking_in(self, gtids: GtidSet | None, position: Position) -> str:
        """Return what a replication at that place has not applied yet; "" if nothing."""
        if self.gtids is not None and gtids is not None:
            count = count_missing(self.gtids, gtids)
            return f"{count:,} transactions" if count else ""
        return "" if position >= self.position else f"from {position} to {self.position}"

    def __str__(self) -> str:
        return f"GTID {shown(self.gtids)}" if self.gtids is not None else str(self.position)


async def read_executed(session: AdminSession, traits: ServerTraits) -> GtidSet | None:
    """Query what a server has executed by GTID; None if it has none. Raises ServerError."""
    if words_of(traits.server).follows_variable:
        ((gtids,),) = await session.query("SELECT @@GLOBAL.gtid_binlog_pos")
    elif traits.gtid_mode:
        ((gtids,),) = await session.query("SELECT @@GLOBAL.gtid_executed")
    else:
        return None
    return GtidSet.parse(str(gtids))


async def read_end(session: AdminSession, traits: ServerTraits) -> LogEnd:
    """Query where a server's log ends, on which nothing writes. Raises ServerError."""
    executed = await read_executed(session, traits)
    if executed is not None:
        return LogEnd(executed, NOWHERE)
    file, offset, *_ = (await session.query(binlog_status(traits.version)))[0]
    return LogEnd(None, Position(str(file), int(str(offset))))

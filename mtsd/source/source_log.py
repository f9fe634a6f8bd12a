"""How far a source's binary log goes, and how long it keeps it: asked beside the dump.

A dump says neither: its end is known once it has been read, and what is purged once it is missing.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import structlog

from mtsd.model.errors import MtsdError
from mtsd.model.outcome.reason import Reason, Refused, refuse
from mtsd.model.position import Position
from mtsd.model.server import flavour_of
from mtsd.source.continuation import base_name, past_end
from mtsd.source.held_log import holds_its_log
from mtsd.source.source_state import BinlogFile
from mtsd.wire.asked_beside import answered
from mtsd.wire.endpoint import Endpoint
from mtsd.wire.family import SERVERS
from mtsd.wire.neutral_session import neutral_connection
from mtsd.wire.traits import ServerTraits

READ_PERIOD_S: Final = 30.0
_FIRST_LOOK_S: Final = 3.0
"""A run that ends at once has nobody who looks at that."""
_LATE_S: Final = 10.0
_DAY_S: Final = 86_400.0
_HOUR_S: Final = 3600.0
_VARIABLES: Final = (
    b"SHOW GLOBAL VARIABLES WHERE Variable_name IN ('binlog_expire_logs_seconds',"
    b" 'binlog_expire_logs_auto_purge', 'expire_logs_days', 'server_id', 'server_uuid')"
)

NEEDED_PURGED = Reason(
    "the source has purged what a start would read next, {position}: its binary log begins with"
    " {first}; what has been read of it goes on",
    "let mtsd run until nothing is pending, and restart neither it nor the target until then: the"
    " data would have to be copied again",
)
NEEDED_SOON_PURGED = Reason(
    "the oldest transaction that is not applied is {age:.1f} hours old, and the source purges its"
    " files after {period:.1f}",
    "raise binlog_expire_logs_seconds on the source now, then look for the reason of the lag",
)

log = structlog.get_logger(__name__)


def retention_of(variables: Mapping[str, str]) -> float | None:
    """Return after how many seconds a server purges its binary logs; None: never by their age."""
    if variables.get("binlog_expire_logs_auto_purge", "ON") == "OFF":
        return None
    if "binlog_expire_logs_seconds" in variables:
        seconds = float(variables["binlog_expire_logs_seconds"])
    else:
        seconds = float(variables.get("expire_logs_days", "0")) * _DAY_S
    return seconds or None


@dataclass(frozen=True, slots=True)
class SourceLog:
    """What a source says of its log; `files` oldest first, empty if they may not be listed.

    `server_id` is None until it has been asked; `server_uuid` is "" on a MariaDB.
    """

    files: tuple[BinlogFile, ...] = ()
    retention_s: float | None = None
    server_id: int | None = None
    server_uuid: str = ""


NOT_ASKED: Final = SourceLog()


@dataclass(frozen=True, slots=True)
class Needed:
    """What a start would read next: from `executed` on.

    `age_s` is how long ago the source has committed the oldest transaction that is not applied;
    None if all are.
    """

    executed: Position
    age_s: float | None


def running_out(log: SourceLog, needed: Needed) -> Refused | None:
    """Decide whether what a start would read is purged, or may be soon.

    For example at b.000003, in a log that begins with b.000007; or 4 hours old, of 6.
    """
    if needed.age_s is None:
        return None
    position = needed.executed
    base = base_name(position.file)
    first = next((file.name for file in log.files if base_name(file.name) == base), "")
    if first and position < Position(first, 0):
        return refuse(NEEDED_PURGED, position=position, first=first)
    period = log.retention_s
    if period is None or needed.age_s < period / 2:
        return None
    return refuse(NEEDED_SOON_PURGED, age=needed.age_s / _HOUR_S, period=period / _HOUR_S)


def bytes_behind(files: Sequence[BinlogFile], executed: Position, received: Position) -> int | None:
    """Return how many bytes of the source's log are not applied; None if that cannot be told.

    The list may be older than what has been received. A file that is not in it has begun since.
    """
    offsets: dict[str, int] = {}
    end = 0
    for file in files:
        offsets[file.name] = end
        end += file.size
    unlisted = bool(files) and bool(executed.file) and executed.file not in offsets
    if unlisted and executed.file == received.file:
        # The list is older than the file, unless that is purged: then nothing is read from it.
        return max(0, received.offset - executed.offset)
    if executed.file not in offsets or not received.file:
        # Nothing was listed; or purged; or the position is known by GTID only.
        return None
    at = offsets[executed.file] + executed.offset
    read = offsets.get(received.file, end) + received.offset
    return max(0, max(end, read) - at)


class SourceLogWatch:
    """Asks again and again, on a connection of its own that is closed in between.

    `endpoint` returns where, `connected` whether the source can be asked, `received` how far its
    log has been read. `begun_anew` is called if the log ends before that: a dump does not notice a
    source that is reset in its first file, and the next connection decides what it means.
    `needed` returns what is compared with the log each time.
    """

    def __init__(
        self,
        endpoint: Callable[[], Endpoint],
        connected: Callable[[], bool],
        received: Callable[[], Position],
        begun_anew: Callable[[], None],
        needed: Callable[[], Needed],
    ) -> None:
        self._endpoint = endpoint
        self._connected = connected
        self._received = received
        self._begun_anew = begun_anew
        self._needed = needed
        self._found = NOT_ASKED
        self._told: Reason | None = None
        self.warnings: tuple[str, ...] = ()
        """What was found at the last look."""

    def found(self, server: ServerTraits | None) -> SourceLog:
        """Return what is known; `server` is the source as it is connected, None before that."""
        if self._found.server_id is not None or server is None:
            return self._found
        uuid = "" if SERVERS[server.server.flavour].has_domains else server.uuid
        return replace(self._found, server_id=server.server_id, server_uuid=uuid)

    async def run(self) -> None:
        """Ask until cancelled; what cannot be asked now stays unknown."""
        await asyncio.sleep(_FIRST_LOOK_S)
        while True:
            if not self._connected():
                await asyncio.sleep(1.0)
                continue
            try:
                self._found = await answered(
                    "source",
                    self._ask(),
                    late_after=_LATE_S,
                    late=self._forget_files,
                    connected=self._connected,
                )
            except (MtsdError, OSError, ValueError, KeyError):
                # The dump says what is wrong with the source; a user without the privilege to list
                # the files is told so by `mtsd check`.
                self._forget_files()
            else:
                self._tell(running_out(self._found, self._needed()))
            await asyncio.sleep(READ_PERIOD_S)

    def _tell(self, refused: Refused | None) -> None:
        """Log what is new; what only grows older is not."""
        self.warnings = () if refused is None else (str(refused),)
        reason = None if refused is None else refused.reason
        if refused is not None and reason is not self._told:
            log.warning("the source's binary log runs out", warning=str(refused))
        elif refused is None and self._told is not None:
            log.info("the source's binary log has what is needed")
        self._told = reason

    def _forget_files(self) -> None:
        self._found = replace(self._found, files=())

    async def _ask(self) -> SourceLog:
        async with neutral_connection(self._endpoint()) as connection:
            rows = await connection.query(_VARIABLES)
            variables = {str(row[0]): str(row[1]) for row in rows}
            self._found = SourceLog(
                self._found.files,
                retention_of(variables),
                int(variables["server_id"]),
                variables.get("server_uuid", ""),
            )
            if await holds_its_log(connection, flavour_of(connection.server_version)):
                # It would not answer, and each query that is given up would stay there.
                return self._found
            # Before they are listed: what is read meanwhile may not be in the list.
            received = self._received()
            rows = await connection.query(b"SHOW BINARY LOGS")
        files = tuple(BinlogFile(str(row[0]), int(str(row[1]))) for row in rows)
        if past_end(received, files) is not None:
            log.warning(
                "the source's binary log ends before what was read of it: connects anew",
                received=str(received),
            )
            self._begun_anew()
        return replace(self._found, files=files)

"""Telling how the daemon ends: to the target, or else to the file beside the status socket."""

import asyncio
import time
from typing import Final

import structlog

from mtsd.apply.position.fencing import take_lock
from mtsd.apply.position.lock_names import CHANNEL, read_locks
from mtsd.apply.position.position_schema import lost_table
from mtsd.apply.position.position_tables import PositionTables
from mtsd.apply.session.session import TargetSession
from mtsd.apply.session.session_settings import SessionSettings
from mtsd.config import Settings
from mtsd.control.stop_file import StopFile
from mtsd.model.errors import MtsdError, ServerError
from mtsd.model.outcome.failed_group import FailedGroup
from mtsd.model.outcome.last_stop import LastStop
from mtsd.replica.core.endpoints import endpoint
from mtsd.wire.refusal import number_and_reason

_TIMEOUT_S: Final = 5.0
_LOCK_S: Final = 2
"""For the server to notice that the daemon's own session has ended."""
_WAIT_S: Final = 1

log = structlog.get_logger(__name__)


class StopKeeper:
    """Keeps how this daemon ends, from its start on."""

    def __init__(self, settings: Settings) -> None:
        self.text = ""
        """The error that has ended it; "" after a graceful stop, and before any."""
        self.stop: LastStop | None = None
        """The error that needs a person; the daemon may stay with it."""
        self.stopped_at: FailedGroup | None = None
        """The group that it is about."""
        socket = settings.status.socket
        self._file = StopFile(socket) if socket is not None else None

    def begin(self) -> None:
        """Note that the daemon runs: what an earlier one has left is no longer its end."""
        if self._file is not None:
            try:
                self._file.begin()
            except OSError as error:
                log.warning("cannot write", file=str(self._file.path), error=str(error))

    async def fail(self, settings: Settings, error: Exception, text: str) -> None:
        """Record that an error needs a person, before the daemon ends; never raises."""
        self.stop = LastStop.by(error, text, time.time())
        self.stopped_at = error.group if isinstance(error, MtsdError) else None
        await self.keep(settings, error, text)

    async def keep(self, settings: Settings, error: Exception | None, text: str) -> None:
        """Record how the daemon ends; never raises."""
        self.text = text
        stop = LastStop.by(error, text, time.time())
        if not await _record(settings, stop):
            self.note(stop)
        elif self._file is not None:
            try:
                self._file.clear()
            except OSError as problem:
                log.warning("cannot remove", file=str(self._file.path), error=str(problem))

    def note(self, stop: LastStop) -> None:
        """Record it on this machine only, at once; never raises."""
        if self._file is None:
            return
        try:
            self._file.end(stop)
        except OSError as error:
            log.warning("cannot write", file=str(self._file.path), error=str(error))


def why_stopped(error: Exception, schema: str) -> str:
    """Return an error that needs a person as a message; `schema` is that of the position."""
    lost = lost_table(schema, error) if isinstance(error, ServerError) else None
    return str(lost) if lost is not None else number_and_reason(error)[1]


async def _record(settings: Settings, stop: LastStop) -> bool:
    """Write it on the target; return whether that was possible, without waiting for long.

    Only with the channel's lock: another daemon's row may not say how this one has ended.
    """
    tables = PositionTables(settings.target.schema, settings.replica.channel)
    session = None
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            session = await TargetSession.open(
                endpoint("target", settings.target),
                SessionSettings(settings.target.binary_log, settings.target.gtid_domain_id),
            )
            locks = await read_locks(session.connection, tables.schema, tables.channel)
            if locks is None:
                return False
            if not await take_lock(session.connection, locks.session(CHANNEL), _LOCK_S):
                return False
            # What is given up would hold the channel's lock for as long as somebody locks the
            # server: nothing could start, and a switch not be put back.
            await session.limit_lock_waits(_WAIT_S)
            await session.connection.run(tables.last_stop.replace_stop(stop), 1)
    except (MtsdError, TimeoutError):
        return False
    finally:
        if session is not None:
            session.connection.close()
    return True

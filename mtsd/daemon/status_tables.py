"""The state in two tables of the position schema, for those who ask by SQL.

`replication_applier_status_by_worker` is named after the server's own; its worker 0 is the whole
replica. `heartbeat` is as pt-heartbeat makes it and reads it: how far behind a replica is follows
from one row. Both say when they were written, so that an idle replica can be told from a dead one.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Final

import structlog

from mtsd.apply.position.position_schema import STATUS_TABLES
from mtsd.apply.position.table_declaration import TABLE_OPTIONS
from mtsd.apply.session.session import TargetSession
from mtsd.apply.session.session_settings import SessionSettings
from mtsd.apply.sql import literals
from mtsd.config import Settings
from mtsd.control.place import Place
from mtsd.control.status import Status
from mtsd.model.errors import ConnectionLostError, MtsdError, ServerError
from mtsd.replica.core.endpoints import about_session, endpoint
from mtsd.wire.asked_beside import answered

PERIOD_S: Final = 5.0
_PAUSE_S: Final = 1.0
"""Before the next attempt."""
_TIMEOUT_S: Final = 5.0
"""For the last time that they are written."""
_LOCK_WAIT_S: Final = 1
"""The least that a server knows. A backup holds its lock for longer, and they come after it."""
_LONGEST_TEXT: Final = 1000

log = structlog.get_logger(__name__)


class StatusTables:
    """The statements, for one channel in one schema."""

    def __init__(self, schema: str, channel: str) -> None:
        of_schema = literals.name(schema) + b"."
        self._workers, self._heartbeat = (of_schema + literals.name(name) for name in STATUS_TABLES)
        self._channel = literals.text(channel)

    def definitions(self) -> tuple[bytes, ...]:
        """Return the statements that create the tables if they do not exist."""
        workers = f"""CREATE TABLE IF NOT EXISTS {self._workers.decode()} (
  `CHANNEL_NAME` VARCHAR(64) NOT NULL,
  `WORKER_ID` INT UNSIGNED NOT NULL,
  `SERVICE_STATE` ENUM('ON','OFF') NOT NULL,
  `STATE` VARCHAR(32) NOT NULL,
  `WAITS_FOR` VARCHAR(1000) NOT NULL,
  `LAG_SECONDS` DOUBLE,
  `QUEUED_TRANSACTIONS` BIGINT UNSIGNED NOT NULL,
  `APPLIED_TRANSACTIONS` BIGINT UNSIGNED NOT NULL,
  `RETRIES` BIGINT UNSIGNED NOT NULL,
  `LAST_APPLIED_TRANSACTION` VARCHAR(128) NOT NULL,
  `LAST_LOG_FILE` VARCHAR(512) NOT NULL,
  `LAST_LOG_POS` BIGINT UNSIGNED NOT NULL,
  `LAST_ERROR_NUMBER` INT UNSIGNED NOT NULL,
  `LAST_ERROR_MESSAGE` VARCHAR(1000) NOT NULL,
  `HEARTBEAT` TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  PRIMARY KEY (`CHANNEL_NAME`, `WORKER_ID`)
) {TABLE_OPTIONS}"""
        heartbeat = f"""CREATE TABLE IF NOT EXISTS {self._heartbeat.decode()} (
  `ts` VARCHAR(26) NOT NULL,
  `server_id` INT UNSIGNED NOT NULL PRIMARY KEY,
  `file` VARCHAR(255) DEFAULT NULL,
  `position` BIGINT UNSIGNED DEFAULT NULL,
  `relay_master_log_file` VARCHAR(255) DEFAULT NULL,
  `exec_master_log_pos` BIGINT UNSIGNED DEFAULT NULL
) {TABLE_OPTIONS}"""
        return workers.encode(), heartbeat.encode()

    def written(self, status: Status, now: float) -> Iterator[bytes]:
        """Yield the statements that write a status; `now` is in seconds since 1970."""
        service = b"'OFF'" if status.state in {"stopped", "failed"} else b"'ON'"
        rows = [self._replica(status, service), *self._each_worker(status, service)]
        yield b"REPLACE INTO %b VALUES %b" % (self._workers, b",".join(rows))
        highest = max((worker.id for worker in status.workers), default=0)
        yield b"DELETE FROM %b WHERE `CHANNEL_NAME`=%b AND `WORKER_ID`>%d" % (
            self._workers, self._channel, highest,
        )  # fmt: skip
        server_id, lag = status.source_log.server_id, status.lag_seconds
        if server_id is not None and lag is not None:
            # What the source's own heartbeat would say that had been applied by now.
            at = datetime.fromtimestamp(now - lag, UTC).replace(tzinfo=None)
            received, executed = status.received, status.executed
            yield b"REPLACE INTO %b VALUES (%b,%d,%b,%d,%b,%d)" % (
                self._heartbeat, literals.text(at.isoformat(timespec="microseconds")), server_id,
                literals.text(received.file), received.pos,
                literals.text(executed.file), executed.pos,
            )  # fmt: skip

    def _replica(self, status: Status, service: bytes) -> bytes:
        error = status.last_stop.number if status.last_stop is not None else 0
        return self._row(
            0, service, status.state, status.doing, status.lag_seconds, status.pending_groups,
            status.totals.groups, status.totals.retries,
            # Its GTIDs are a set, which may be long: slave_relay_log_info has it.
            Place(status.executed.file, status.executed.pos), error, status.last_error or "",
        )  # fmt: skip

    def _each_worker(self, status: Status, service: bytes) -> Iterator[bytes]:
        for worker in status.workers:
            yield self._row(
                worker.id, service, worker.state, worker.waits_for, None, worker.queue_groups,
                worker.groups, worker.retries, worker.last, 0, "",
            )  # fmt: skip

    def _row(
        self,
        worker: int,
        service: bytes,
        state: str,
        waits_for: str,
        lag: float | None,
        queued: int,
        applied: int,
        retries: int,
        last: Place,
        error: int,
        message: str,
    ) -> bytes:
        values = (
            self._channel,
            b"%d" % worker,
            service,
            literals.text(state),
            _text(waits_for),
            b"NULL" if lag is None else b"%f" % lag,
            b"%d" % queued,
            b"%d" % applied,
            b"%d" % retries,
            literals.text(last.gtid),
            literals.text(last.file),
            b"%d" % last.pos,
            b"%d" % error,
            _text(message),
            b"CURRENT_TIMESTAMP(6)",
        )
        return b"(%b)" % b",".join(values)


def _text(value: str) -> bytes:
    text = " ".join(value.split())[:_LONGEST_TEXT]
    return literals.blob(text.encode("utf-8", "replace"))


@asynccontextmanager
async def status_tables(settings: Settings, status: Callable[[], Status]) -> AsyncIterator[None]:
    """Write them while this is entered, and how it has ended at the end, if that is configured."""
    if not settings.status.tables:
        yield
        return
    writer = StatusWriter(settings, status)
    running = asyncio.create_task(writer.run())
    try:
        yield
    finally:
        running.cancel()
        with suppress(TimeoutError):
            async with asyncio.timeout(_TIMEOUT_S):
                await asyncio.wait({running})
                await writer.write()
        writer.close()


class StatusWriter:
    """Writes them again and again, in a session of its own that logs nothing."""

    def __init__(self, settings: Settings, status: Callable[[], Status]) -> None:
        self._settings = settings
        self._status = status
        self._tables = StatusTables(settings.target.schema, settings.replica.channel)
        self._session: TargetSession | None = None
        self._logged = ""

    async def run(self) -> None:
        """Write until cancelled; what cannot be written is logged once for each reason."""
        while True:
            written = False
            with suppress(ConnectionLostError):
                written = await answered(
                    "target",
                    self.write(),
                    late_after=PERIOD_S,
                    late=lambda: self._tell("the target has not answered yet"),
                    connected=lambda: self._status().connections.target.connected,
                )
            await asyncio.sleep(PERIOD_S if written else _PAUSE_S)

    async def write(self) -> bool:
        """Write the present state, once this daemon has had the channel; return whether it has."""
        status = self._status()
        if status.totals.skipped_by_hand is None:
            # One that is refused, as another has the channel, does not speak for that.
            return False
        try:
            session = self._session = self._session or await self._open()
            for statement in self._tables.written(status, time.time()):
                await session.connection.run(statement, 1)
        except ServerError as error:
            # The session is of use again once what is in the way, a lock mostly, has gone.
            self._tell(str(error))
            return False
        except (MtsdError, OSError) as error:
            self.close()
            # That the target is away is told by who applies.
            if status.connections.target.connected:
                self._tell(str(error))
            return False
        except BaseException:
            # Something may still be on its way.
            self.close()
            raise
        self._logged = ""
        return True

    def _tell(self, reason: str) -> None:
        if reason != self._logged:
            self._logged = reason
            log.warning("the status tables cannot be written", error=reason)

    def close(self) -> None:
        """End the session."""
        if self._session is not None:
            self._session.connection.close()
            self._session = None

    async def _open(self) -> TargetSession:
        session = await TargetSession.open(
            endpoint("target", self._settings.target),
            SessionSettings(binary_log=False, about=about_session(self._settings, "status")),
        )
        try:
            await session.limit_lock_waits(_LOCK_WAIT_S)
            for statement in self._tables.definitions():
                await session.connection.run(statement, 1)
        except BaseException:
            session.connection.close()
            raise
        return session

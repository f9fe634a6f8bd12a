"""The life of the process: start, recover, run, lose the target and return, reload, stop."""

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack

import structlog

from mtsd.apply.session.obstacle import Obstacles, obstacle_of, obstacle_pause, wait_out_obstacles
from mtsd.apply.session.retry import worth_a_retry
from mtsd.config import ConfigurationError, Loaded, Reloaded, Settings
from mtsd.control.distribute_route import Change, distribute_route
from mtsd.control.probes import probes
from mtsd.control.reload_route import NotNowError, reload_route
from mtsd.control.status import DistributionStatus, State, Status
from mtsd.control.status_route import status_route
from mtsd.control.switch_routes import stop_route, wake_route
from mtsd.daemon import signals
from mtsd.daemon.announcing import announced, log_reload, log_repair, log_start
from mtsd.daemon.answering import answering
from mtsd.daemon.in_force import InForce
from mtsd.daemon.large_retries import LargeGroupRetries
from mtsd.daemon.last_stop import StopKeeper, why_stopped
from mtsd.daemon.logging import set_up_logging
from mtsd.daemon.notify import Notifier
from mtsd.daemon.past import NO_PAST
from mtsd.daemon.standing_by import stand_by, unless_stopped
from mtsd.daemon.status import DaemonState, shown_time, status_of
from mtsd.daemon.status_tables import status_tables
from mtsd.model.errors import ConnectionLostError, NeedsPersonError, ServerError
from mtsd.model.fault_points import FaultHook, nothing
from mtsd.model.outcome.exit_status import ExitStatus
from mtsd.model.outcome.last_stop import LastStop
from mtsd.model.progress import Progress
from mtsd.model.until import Until
from mtsd.replica.core.earlier_runs import EarlierRuns
from mtsd.replica.run.replica import Replica, StopTimeoutError
from mtsd.replica.run.start import start
from mtsd.replica.ways.streamed_failures import StreamedGroupError
from mtsd.source.stream_end import SourceChangedError
from mtsd.wire.backoff import Backoff
from mtsd.wire.failure import BUSY
from mtsd.wire.link import Links
from mtsd.wire.refusal import number_and_reason

log = structlog.get_logger(__name__)

_START = "start"
"""Who meets an obstacle before there are workers."""


class Daemon:
    """One daemon on one channel. `run` returns the exit status of `contracts`.

    `read_again` reloads the configuration that `settings` come from, for SIGHUP. It stops by
    itself at `until`.
    """

    def __init__(
        self,
        settings: Settings,
        environ: Mapping[str, str],
        read_again: Callable[[], Loaded],
        *,
        until: Until | None = None,
        standby: bool = False,
        reached: FaultHook = nothing,
    ) -> None:
        self._in_force = InForce.of(settings)
        self._until = until
        self._read_again = read_again
        self._reached = reached
        self._ready = False
        self._notifier = Notifier(environ)
        self._replica: Replica | None = None
        self._phase: State = "starting"
        self._links = Links.new()
        self._obstacles = Obstacles()
        self._large = LargeGroupRetries(self._obstacles)
        self._past = NO_PAST
        self._began = time.time()
        self._reload_refused = False
        self._last_stop = StopKeeper(settings)
        self._progress = Progress()
        self._new_source = ""
        self._stopping = asyncio.Event()
        self._standby = standby
        self._woken = asyncio.Event()
        self._earlier = EarlierRuns()
        self._start_attempts = 0
        """Starts that an obstacle has ended since the last run."""
        self._unfinished = ""
        """What the last run has left for the next start to recover."""

    async def run(self) -> int:
        """Live until a signal, or an error that needs a person."""
        structlog.contextvars.bind_contextvars(channel=self._configured.replica.channel)
        self._listen_to_signals()
        routes = (
            status_route(self.status),
            reload_route(self.reload),
            distribute_route(self.distribute),
            stop_route(self.stop, self._stopping.is_set),
            wake_route(self._woken),
        )
        async with AsyncExitStack() as running:
            try:
                asked = self._configured.status
                seen = probes(self.status, exporter_names=asked.exporter_names)
                servers = answering(asked, routes, seen)
                await running.enter_async_context(servers)
            except (OSError, NeedsPersonError) as error:
                log.error("cannot open the status socket", error=str(error))  # noqa: TRY400
                return ExitStatus.NEEDS_PERSON
            return await self._run()

    async def _run(self) -> int:
        """Live, with what goes on beside it."""
        self._last_stop.begin()
        wait_out_obstacles(self._obstacles)
        announcing = announced(
            self.status,
            self._notifier,
            lambda: None if self._replica is None else self._replica.pulse,
            summary_period=lambda: self._configured.log.summary_period,
            failed=lambda: self._last_stop.stop is not None,
        )
        async with announcing, status_tables(self._configured, self.status):
            try:
                return await self._live()
            finally:
                self._notifier.stopping()

    def status(self) -> Status:
        """Return the status as the status socket reports it."""
        statistics = self._replica.statistics if self._replica is not None else None
        retried = self._large.retried_after(statistics.executed_number if statistics else 0)
        known = DaemonState(
            phase=self._phase,
            links=self._links,
            obstacle=self._obstacles.what,
            obstacle_error=self._obstacles.error,
            last_error=self._last_stop.text or (None if retried is None else str(retried)),
            doing=self._progress.doing,
            past=self._past,
            began=self._began,
            reload_refused=self._reload_refused,
            tasks=len(asyncio.all_tasks()),
            counted=self._earlier,
            stop=self._last_stop.stop,
            stopped_at=self._last_stop.stopped_at,
        )
        return status_of(known, self._configured, statistics, self._in_force.distribution)

    def stop(self) -> None:
        """Stop gracefully; if called again, stop immediately, as in a crash."""
        if self._stopping.is_set():
            message = "stopped immediately by a second signal: the next start recovers"
            log.warning(message)
            self._last_stop.note(LastStop.by(None, message, time.time()))
            logging.shutdown()
            os._exit(ExitStatus.FAILED)
        timeout = self._in_force.settings.replica.stop_timeout
        log.info("stopping", at_most_s=timeout)
        self._stopping.set()
        if self._phase != "failed":
            self._phase = "stopping"
            self._progress.doing = f"rolls back what lasts past {shown_time(time.time() + timeout)}"
        self._notifier.stopping()
        if self._in_force.by_hand.frozen:
            log.info("frozen workers continue, to finish what has begun")
            self._in_force = self._in_force.released()
        if self._replica is not None:
            self._replica.stop()

    def reload(self) -> Reloaded:
        """Reload the configuration and adopt what can change while running.

        Raises ConfigurationError if anything is wrong with it, NotNowError while stopping:
        nothing has changed then, and the log says why.
        """
        if self._stopping.is_set():
            message = "configuration not reloaded: the daemon is stopping"
            log.warning(message)
            raise NotNowError(message)
        # Before the daemon is ready, the service manager would take the end of the reload for that.
        if self._ready:
            self._notifier.reloading()
        try:
            change = self._go_on_with(self._read_again())
        except ConfigurationError as error:
            self._reload_refused = True
            problems = [str(problem) for problem in error.problems]
            log.error("configuration refused, nothing has changed", problems=problems)  # noqa: TRY400 - no traceback
            raise
        else:
            self._reload_refused = False
            return change
        finally:
            if self._ready:
                self._notifier.ready()

    def distribute(self, change: Change) -> DistributionStatus:
        """Carry out a person's change of the distribution; return what is in force then.

        Raises NotPossibleError, NotNowError while stopping.
        """
        if self._stopping.is_set():
            raise NotNowError("nothing is distributed any more: the daemon is stopping")
        self._in_force = self._in_force.changed(change)
        if self._replica is not None:
            if change.do in {"freeze", "unfreeze"}:
                self._replica.freeze(change.worker, frozen=change.do == "freeze")
            else:
                self._replica.distribute(self._in_force.settings)
        log.info("distribution changed by hand", **change.given)
        return self._in_force.distribution

    @property
    def _configured(self) -> Settings:
        return self._in_force.configured

    def _reload_on_signal(self) -> None:
        with contextlib.suppress(ConfigurationError, NotNowError):
            self.reload()

    def _go_on_with(self, loaded: Loaded) -> Reloaded:
        self._in_force, change = self._in_force.reloaded(loaded.settings)
        if self._replica is not None:
            self._replica.reload(self._in_force.settings)
        set_up_logging(change.settings.log)
        log_reload(loaded, change)
        return change

    def _listen_to_signals(self) -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signals.RELOAD, self._reload_on_signal)
        for number in signals.STOP:
            loop.add_signal_handler(number, self.stop)
        signals.release()

    async def _live(self) -> int:
        log_start(self._configured)
        backoff = Backoff()
        while not self._stopping.is_set():
            try:
                await self._run_once(backoff)
            except ConnectionLostError as error:
                self._obstacles.left(_START)
                await self._pause_without(error, backoff.next_pause())
            except StreamedGroupError as error:
                retries = self._in_force.settings.replica.transaction_retries
                pause = self._large.pause(error, retries, backoff)
                if pause is None:
                    return await self._needs_person(error.final(retries))
                await self._pause(pause)
            except ServerError as error:
                if obstacle_of(error):
                    self._start_attempts += 1
                    pause = obstacle_pause(self._start_attempts)
                    self._obstacles.met(_START, error, pause)
                    await self._pause(pause)
                elif error.number in BUSY or worth_a_retry(error):
                    await self._pause_without(error, backoff.next_pause())
                else:
                    return await self._needs_person(error)
            except NeedsPersonError as error:
                return await self._needs_person(error)
            except SourceChangedError as error:
                self._new_source = error.uuid
                await self._wait(backoff.next_pause())
            except StopTimeoutError as error:
                log.error("not stopped in time", error=str(error))  # noqa: TRY400 - no traceback
                return await self._failed(error, str(error))
            except Exception as error:
                log.exception("unexpected failure")
                return await self._failed(error, f"unexpected failure: {error!r}")
        if self._unfinished:
            message = f"stopped, but not everything is finished: {self._unfinished}"
            log.error(message)
            return await self._failed(None, message)
        self._phase = "stopped"
        await self._last_stop.keep(self._in_force.settings, None, "")
        log.info("stopped")
        return ExitStatus.DONE

    async def _run_once(self, backoff: Backoff) -> None:
        self._phase = "recovering"
        settings = self._in_force.settings
        replica = await self._started(settings)
        if replica is None:
            return
        self._replica = replica
        self._new_source = ""
        if self._in_force.settings is not settings:
            replica.reload(self._in_force.settings)
        for worker in self._in_force.by_hand.frozen:
            replica.freeze(worker, frozen=True)
        self._start_attempts = 0
        self._obstacles.passed(_START)
        away = self._links.target.works()
        if away is not None:
            log.info(
                "the target is back", target=self._configured.target.address, away_s=round(away, 1)
            )
        self._phase = "running"
        if replica.repair is not None:
            self._phase = "recovering"
            self._progress.doing = log_repair(replica.repair)
        self._be_ready()
        if self._stopping.is_set():
            replica.stop()
        first = replica.statistics
        log.info("running", workers=len(first.workers))
        try:
            await replica.run()
        finally:
            self._unfinished = replica.unfinished
            last = replica.statistics
            self._past = self._past.with_run(last)
            applied = last.executed_number > first.executed_number
            backoff.ended(last.run_seconds, of_use=applied)
            self._replica = None
            self._links.target.closed()
            self._progress.doing = ""
        if replica.finished:
            log.info("stopped where it was to stop", until=str(self._until))
            self._stopping.set()

    async def _started(self, settings: Settings) -> Replica | None:
        """Return a replica that is ready to run; None if a stop comes first."""
        try:
            return await unless_stopped(self._start(settings), self._stopping)
        finally:
            self._progress.doing = ""

    async def _start(self, settings: Settings) -> Replica:
        if self._standby:
            await stand_by(settings, self._woken, self._stands_by)
            self._phase = "recovering"
        return await start(
            settings, new_source=self._new_source, unsplit=self._large.unsplit, until=self._until,
            progress=self._progress, earlier=self._earlier, links=self._links,
            reached=self._reached,
        )  # fmt: skip

    def _stands_by(self, why: str) -> None:
        self._phase = "standby"
        self._progress.doing = why
        self._be_ready()

    async def _pause_without(self, error: ConnectionLostError | ServerError, pause: float) -> None:
        """Wait without a server; the log says so when it is time to."""
        number, reason = number_and_reason(error)
        link = self._links.of(error.server)
        if link.lost(number, reason, pause):
            log.warning(
                "replication interrupted",
                error=reason, again_in_s=round(pause, 2), attempts=link.attempts,
            )  # fmt: skip
        await self._pause(pause)

    async def _pause(self, pause: float) -> None:
        if self._stopping.is_set():
            return
        self._phase = "starting"
        self._be_ready()
        await self._wait(pause)

    async def _wait(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), seconds)

    async def _needs_person(self, error: Exception) -> int:
        self._phase = "failed"
        message = why_stopped(error, self._in_force.settings.target.schema)
        self._notifier.status(f"stopped: {message}")
        log.error("replication stopped", error=message)  # the message is complete
        await self._last_stop.fail(self._in_force.settings, error, message)
        if self._configured.replica.on_error == "stay" and not self._stopping.is_set():
            log.warning(
                "the daemon stays, and applies nothing: restart it after what is to be done"
            )
            self._be_ready()
            await self._stopping.wait()
        return ExitStatus.NEEDS_PERSON

    async def _failed(self, error: Exception | None, message: str) -> int:
        """Record an end that the next start recovers from."""
        self._phase = "failed"
        await self._last_stop.keep(self._in_force.settings, error, message)
        return ExitStatus.FAILED

    def _be_ready(self) -> None:
        self._ready = True
        self._notifier.ready()

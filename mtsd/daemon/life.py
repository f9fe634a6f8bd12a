"""The life of the process: start, recover, run, lose the target and return, reload, stop."""

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable, Mapping

import structlog

from mtsd import __version__
from mtsd.config import ConfigurationError, Loaded, Problem, Settings, reloaded
from mtsd.config.reloading import Reloaded
from mtsd.control.distribute_route import Change, distribute_route
from mtsd.control.reload_route import NotNowError, reload_route
from mtsd.control.server import ControlServer
from mtsd.control.status import DistributionStatus, State, Status
from mtsd.control.status_route import status_route
from mtsd.daemon import signals
from mtsd.daemon.by_hand import ByHand
from mtsd.daemon.logging import set_up_logging
from mtsd.daemon.notify import Notifier
from mtsd.daemon.status import stated
from mtsd.daemon.watchdog import Watchdog
from mtsd.model.build import COMPILED
from mtsd.model.errors import ConnectionLostError, NeedsPersonError, ServerError
from mtsd.model.exit_status import ExitStatus
from mtsd.model.fault_points import Reached, nothing
from mtsd.model.progress import Progress
from mtsd.model.until import Until
from mtsd.replica.earlier_runs import EarlierRuns
from mtsd.replica.endpoints import endpoint
from mtsd.replica.limits import distribution_of
from mtsd.replica.replica import Replica, StopTimeoutError
from mtsd.replica.start import start
from mtsd.replica.streamed_groups import StreamedGroupError
from mtsd.source.stream import SourceChangedError
from mtsd.target.retry import worth_a_retry
from mtsd.wire.backoff import Backoff
from mtsd.wire.failure import BUSY
from mtsd.wire.refusal import explained

log = structlog.get_logger(__name__)

_STATUS_PERIOD_S = 5.0


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
        reached: Reached = nothing,
    ) -> None:
        self._settings = settings
        self._by_hand = ByHand()
        self._in_force = settings
        """The settings with what was set by hand."""
        self._until = until
        self._read_again = read_again
        self._reached = reached
        self._ready = False
        self._notifier = Notifier(environ)
        self._replica: Replica | None = None
        self._state: State = "starting"
        self._last_error: str | None = None
        self._progress = Progress()
        self._new_source = ""
        self._stopping = asyncio.Event()
        self._streamed_attempts: dict[int, int] = {}
        self._earlier = EarlierRuns()
        self._unsplit = 0
        """Up to this number, streamed groups are not split: it has turned out to be impossible."""

    async def run(self) -> int:
        """Live until a signal, or an error that needs a person."""
        structlog.contextvars.bind_contextvars(channel=self._settings.replica.channel)
        self._listen_to_signals()
        socket = self._settings.status.socket
        routes = (
            status_route(self.status),
            reload_route(self.reload),
            distribute_route(self.distribute),
        )
        server = ControlServer(socket, routes) if socket is not None else None
        try:
            if server is not None:
                await server.start()
        except (OSError, NeedsPersonError) as error:
            log.error("cannot open the status socket", error=str(error))  # noqa: TRY400
            return ExitStatus.NEEDS_PERSON
        background = [
            asyncio.create_task(self._tell_systemd()),
            asyncio.create_task(self._feed_watchdog()),
        ]
        try:
            return await self._live()
        finally:
            self._notifier.stopping()
            for task in background:
                task.cancel()
            if server is not None:
                await server.stop()

    def status(self) -> Status:
        """Return the status as the status socket reports it."""
        statistics = self._replica.statistics if self._replica is not None else None
        doing = self._progress.doing
        distribution = self._by_hand.status(self._in_force)
        return stated(
            self._state, self._settings, statistics, self._last_error, doing, distribution
        )

    def stop(self) -> None:
        """Stop gracefully; if called again, stop immediately, as in a crash."""
        if self._stopping.is_set():
            log.warning("stopped immediately by a second signal: the next start recovers")
            logging.shutdown()
            os._exit(ExitStatus.FAILED)
        log.info("stopping")
        self._stopping.set()
        self._state = "stopping"
        self._notifier.stopping()
        if self._by_hand.frozen:
            log.info("frozen workers continue, to finish what has begun")
            self._by_hand = self._by_hand.released()
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
            return self._go_on_with(self._read_again())
        except ConfigurationError as error:
            problems = [str(problem) for problem in error.problems]
            log.error("configuration refused, nothing has changed", problems=problems)  # noqa: TRY400 - no traceback
            raise
        finally:
            if self._ready:
                self._notifier.ready()

    def distribute(self, change: Change) -> DistributionStatus:
        """Carry out a person's change of the distribution; return what is in force then.

        Raises NotPossibleError, NotNowError while stopping.
        """
        if self._stopping.is_set():
            raise NotNowError("nothing is distributed any more: the daemon is stopping")
        self._by_hand = self._by_hand.changed(change, self._in_force)
        self._in_force = self._by_hand.over(self._settings)
        if self._replica is not None:
            if change.do in {"freeze", "unfreeze"}:
                self._replica.freeze(change.worker, frozen=change.do == "freeze")
            else:
                self._replica.distribute(self._in_force)
        log.info("distribution changed by hand", **change.given)
        return self._by_hand.status(self._in_force)

    def _reload_on_signal(self) -> None:
        with contextlib.suppress(ConfigurationError, NotNowError):
            self.reload()

    def _go_on_with(self, loaded: Loaded) -> Reloaded:
        change = reloaded(self._settings, loaded.settings)
        _check_tls_files(change.settings)
        by_hand = self._by_hand.without(change.applied)
        in_force = by_hand.over(change.settings)
        _check_distribution(in_force)
        self._settings = change.settings
        self._by_hand = by_hand
        self._in_force = in_force
        if self._replica is not None:
            self._replica.reload(self._in_force)
        set_up_logging(change.settings.log)
        for warning in loaded.warnings:
            log.warning("configuration", warning=warning)
        if change.need_restart:
            log.warning(
                "changed keys need a restart, and keep their values", keys=list(change.need_restart)
            )
        log.info(
            "configuration reloaded",
            applied=list(change.applied),
            for_next_connection=list(change.for_next_connection),
        )
        return change

    def _listen_to_signals(self) -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signals.RELOAD, self._reload_on_signal)
        for number in signals.STOP:
            loop.add_signal_handler(number, self.stop)
        signals.release()

    async def _live(self) -> int:
        settings = self._settings
        log.info(
            "starting", version=__version__, compiled=COMPILED, source=settings.source.address,
            target=settings.target.address,
        )  # fmt: skip
        backoff = Backoff()
        while not self._stopping.is_set():
            try:
                await self._run_once(backoff)
            except ConnectionLostError as error:
                await self._pause(error, backoff)
            except StreamedGroupError as error:
                if error.cannot_be_split:
                    self._unsplit = error.number
                elif not self._may_try_again(error):
                    retries = self._in_force.replica.transaction_retries
                    return self._needs_person(error.final(retries))
                await self._pause(error, backoff)
            except ServerError as error:
                if error.number not in BUSY and not worth_a_retry(error.number):
                    return self._needs_person(error)
                await self._pause(error, backoff)
            except NeedsPersonError as error:
                return self._needs_person(error)
            except SourceChangedError as error:
                self._new_source = error.uuid
            except StopTimeoutError as error:
                log.error("not stopped in time", error=str(error))  # noqa: TRY400 - no traceback
                return ExitStatus.FAILED
            except Exception:
                self._state = "failed"
                log.exception("unexpected failure")
                return ExitStatus.FAILED
        self._state = "stopped"
        log.info("stopped")
        return ExitStatus.DONE

    async def _run_once(self, backoff: Backoff) -> None:
        self._state = "recovering"
        settings = self._in_force
        starting = asyncio.create_task(
            start(
                settings,
                new_source=self._new_source,
                unsplit=self._unsplit,
                until=self._until,
                progress=self._progress,
                earlier=self._earlier,
                reached=self._reached,
            )
        )
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not starting.done():
                starting.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await starting
                return
        finally:
            stopping.cancel()
            self._progress.doing = ""
        self._replica = replica = starting.result()
        self._new_source = ""
        if self._in_force is not settings:
            replica.reload(self._in_force)
        for worker in self._by_hand.frozen:
            replica.freeze(worker, frozen=True)
        backoff.reset()
        self._state = "running"
        repair = replica.repair
        if repair is not None:
            self._state = "recovering"
            self._progress.doing = (
                f"applies transactions {repair.first} to {repair.last} once more, in order"
            )
            log.info(
                "applies once more, in order, what was applied in none",
                first=repair.first, last=repair.last,
            )  # fmt: skip
        self._be_ready()
        if self._stopping.is_set():
            replica.stop()
        log.info("running", workers=len(replica.statistics.workers))
        try:
            await replica.run()
        finally:
            self._replica = None
            self._progress.doing = ""
        if replica.finished:
            log.info("stopped where it was to stop", until=str(self._until))
            self._stopping.set()

    def _may_try_again(self, error: StreamedGroupError) -> bool:
        attempts = self._streamed_attempts.get(error.number, 0) + 1
        self._streamed_attempts = {error.number: attempts}
        return attempts <= self._in_force.replica.transaction_retries

    async def _pause(self, error: Exception, backoff: Backoff) -> None:
        self._last_error = str(error)
        if self._stopping.is_set():
            return
        self._state = "starting"
        pause = backoff.next_pause()
        log.warning("replication interrupted", error=str(error), again_in_s=round(pause, 2))
        self._be_ready()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), pause)

    def _needs_person(self, error: Exception) -> int:
        self._state = "failed"
        said = explained(error) if isinstance(error, ServerError) else str(error)
        self._last_error = said
        self._notifier.status(f"stopped: {said}")
        log.error("replication stopped", error=said)  # the message is complete
        return ExitStatus.NEEDS_PERSON

    def _be_ready(self) -> None:
        self._ready = True
        self._notifier.ready()

    async def _tell_systemd(self) -> None:
        while True:
            status = self.status()
            lag = "unknown" if status.lag_seconds is None else f"{status.lag_seconds:.1f} s"
            self._notifier.status(
                f"{status.state}, lag {lag}, {status.pending_groups} groups pending"
            )
            await asyncio.sleep(_STATUS_PERIOD_S)

    async def _feed_watchdog(self) -> None:
        interval = self._notifier.watchdog_interval
        watchdog = Watchdog()
        while interval:
            hung = watchdog.hangs
            if watchdog.look(self._replica.pulse if self._replica is not None else None):
                self._notifier.watchdog()
            elif not hung:
                log.critical("the dispatcher hangs: the watchdog gets no sign until it continues")
            await asyncio.sleep(interval)


def _check_distribution(settings: Settings) -> None:
    """Raise ConfigurationError if what was set by hand does not go with what has been reloaded."""
    workers = settings.replica.parallel_workers
    allowed = (
        "allowed is what goes together with what `mtsd distribute` has set until the daemon ends;"
        " `mtsd distribute show` prints it"
    )
    problems = [
        Problem("replica.bind, pin", f"found that {problem}", allowed, "reloaded")
        for problem in (distribution_of(settings).problems(workers) if workers else ())
    ]
    if problems:
        raise ConfigurationError(tuple(problems))


def _check_tls_files(settings: Settings) -> None:
    """Raise ConfigurationError if new connections could not be made with these TLS files."""
    problems = []
    for role, section in (("source", settings.source), ("target", settings.target)):
        try:
            endpoint(role, section)
        except NeedsPersonError as error:
            allowed = "allowed are PEM files that can be read and fit together"
            found = f"found files that cannot be used: {error}"
            keys = f"{role}.tls_ca, tls_cert, tls_key"
            problems.append(Problem(keys, found, allowed, "reloaded"))
    if problems:
        raise ConfigurationError(tuple(problems))

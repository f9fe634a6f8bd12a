"""What the service manager and the log hear while the daemon lives: its state, a sign of life."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

import structlog

from mtsd import __version__
from mtsd.config import Loaded, Reloaded, Settings
from mtsd.control.status import Status
from mtsd.daemon.notify import Notifier
from mtsd.daemon.summary import Summary
from mtsd.daemon.watchdog import Watchdog
from mtsd.model.build import COMPILED
from mtsd.model.pulse import Pulse
from mtsd.schedule.done.repair import Repair

log = structlog.get_logger(__name__)

_PERIOD_S: Final = 5.0


@asynccontextmanager
async def announced(
    status: Callable[[], Status],
    notifier: Notifier,
    pulse: Callable[[], Pulse | None],
    *,
    summary_period: Callable[[], float],
    failed: Callable[[], bool],
) -> AsyncIterator[None]:
    """Announce what the daemon does, and that it lives, as long as this is entered.

    `pulse` is the dispatcher's, None without one. The summary comes every `summary_period` seconds.
    Once the daemon has `failed`, the service manager keeps the line that says why.
    """
    tasks = (
        asyncio.create_task(_announce(status, notifier, summary_period, failed)),
        asyncio.create_task(_feed_watchdog(notifier, pulse)),
    )
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()


def log_start(settings: Settings) -> None:
    """Log that the daemon starts."""
    log.info(
        "starting", version=__version__, compiled=COMPILED, source=settings.source.address,
        target=settings.target.address,
    )  # fmt: skip


def log_repair(repair: Repair) -> str:
    """Log that a run begins by applying groups once more; return that in words, for the status."""
    first, last = repair.first, repair.last
    log.info("applies once more, in order, what was applied in none", first=first, last=last)
    return f"applies transactions {first} to {last} once more, in order"


def log_reload(loaded: Loaded, change: Reloaded) -> None:
    """Log what a reload of the configuration has come to."""
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


async def _announce(
    status: Callable[[], Status],
    notifier: Notifier,
    summary_period: Callable[[], float],
    failed: Callable[[], bool],
) -> None:
    summary = Summary(time.monotonic())
    while True:
        now = status()
        fields = summary.due(now, summary_period(), time.monotonic())
        if fields is not None:
            log.info("summary", **fields)
        lag = "unknown" if now.lag_seconds is None else f"{now.lag_seconds:.1f} s"
        state = f"{now.state}: {now.doing}" if now.doing else now.state
        if not failed():
            notifier.status(f"{state}, lag {lag}, {now.pending_groups} groups pending")
        await asyncio.sleep(_PERIOD_S)


async def _feed_watchdog(notifier: Notifier, pulse: Callable[[], Pulse | None]) -> None:
    interval = notifier.watchdog_interval
    watchdog = Watchdog()
    while interval:
        hung = watchdog.hangs
        if watchdog.check(pulse()):
            notifier.watchdog()
        elif not hung:
            log.critical("the dispatcher hangs: the watchdog gets no sign until it continues")
        await asyncio.sleep(interval)

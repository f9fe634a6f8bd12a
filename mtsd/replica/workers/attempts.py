"""A group applied by itself, again while that may help, and skipped if skip_errors says so."""

import asyncio
from dataclasses import dataclass

import structlog

from mtsd.apply.appliers.applier import Applier
from mtsd.apply.session.obstacle import Retrying
from mtsd.apply.session.packet_limit import OVER_THE_LIMIT, require_latest_limit
from mtsd.apply.session.retry import ROW_GONE, pause_before, worth_a_retry
from mtsd.model.errors import (
    ApplyError,
    ConnectionLostError,
    MtsdError,
    ServerError,
)
from mtsd.model.group import Group
from mtsd.replica.core.report import SPENT, contents, failed
from mtsd.replica.core.worker_progress import WorkerProgress
from mtsd.replica.ways.single_groups import SingleGroups
from mtsd.replica.ways.xa_groups import record_skipped
from mtsd.replica.workers.failing_row import failing_row
from mtsd.schedule.batches.in_flight import Batch
from mtsd.schedule.done.executed_groups import ExecutedGroups
from mtsd.wire.refusal import remedy_of

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """The settings that a worker needs."""

    transaction_retries: int
    skip_errors: frozenset[int]
    daemon_uuid: str
    show_themselves: frozenset[int]
    """See `mtsd.replica.recovery.recovery.Recovered`."""
    again: ExecutedGroups
    """Groups of rows that have committed before."""
    first_groups: int
    """See `mtsd.replica.core.report.first_groups`."""


class Attempts:
    """The attempts of one worker, while nothing is in flight."""

    def __init__(
        self,
        applier: Applier,
        progress: WorkerProgress,
        singly: SingleGroups,
        settings: WorkerSettings,
    ) -> None:
        self._applier = applier
        self._progress = progress
        self._singly = singly
        self.settings = settings
        """May be changed at any time: takes effect with the next attempt."""

    @property
    def who(self) -> str:
        """The name under which the worker meets an obstacle."""
        return f"worker {self._progress.index + 1}"

    async def apply(self, unit: Batch) -> None:
        """Apply a group by itself, or a pair as one transaction."""
        try:
            await self._singly.apply(unit)
        except ServerError as error:
            await self.retry(unit, error)
        else:
            self._progress.committed(unit)

    async def retry(self, unit: Batch, error: ServerError) -> None:
        """Apply what has failed with that error again, as often as that may help, or skip it.

        Raises ApplyError if neither is possible.
        """
        group = unit[0]
        attempt = 0
        rechecked = False
        """Whether its tables have been looked at once more."""
        with Retrying(self.who) as retrying:
            while True:
                plain, error = error, await self._applier.rows.explain(error, group.rows)
                if self._applier.preserves and not worth_a_retry(error):
                    behind = error.number == ROW_GONE != plain.number
                    await self._require_own_gtids(group, behind=behind)
                skips = error.number in self.settings.skip_errors
                spent = group.uses_temporary is not None and self._applier.temporary.are_spent
                if spent:
                    break
                if not skips and (pause := retrying.waits_for(error)) is not None:
                    self._progress.retries += 1
                    if await self._progress.coordinator.ends_within(pause):
                        raise error
                elif worth_a_retry(error) and attempt < self.settings.transaction_retries:
                    attempt += 1
                    self._progress.retries += 1
                    log.info(
                        "retrying", worker=self._progress.index + 1, group=group.number,
                        attempt=attempt, error=error.number, text=error.text,
                        changes=contents(group),
                    )  # fmt: skip
                    await asyncio.sleep(pause_before(attempt))
                else:
                    others = not (rechecked or skips) and await self._applier.tables.are_others(
                        group
                    )
                    rechecked = True
                    if not others and not await self._at_its_turn(group):
                        break
                try:
                    await self._singly.apply(unit)
                except ServerError as again:
                    error = again
                    continue
                self._progress.committed(unit)
                return
        if self._applier.records.are_lost(error):
            # Not this group's fault: every other one would fail too.
            raise error
        if error.number not in self.settings.skip_errors:
            if error.number in OVER_THE_LIMIT:
                await require_latest_limit(self._applier.session)
            remedy = remedy_of(error) or "Fix the target"
            if spent:
                remedy = SPENT
            where = "" if spent or len(unit) > 1 else await failing_row(self._applier, group, error)
            raise self.failed(group, error, remedy, where) from error
        row = self._progress.row_after(unit)
        await record_skipped(self._applier, unit, row)
        self._progress.flight.applied(row)
        for each in unit:
            self._progress.skip(each, error)
        self._progress.committed(unit)

    async def _require_own_gtids(self, group: Group, *, behind: bool) -> None:
        """Raise ConnectionLostError if a group has failed because the target has skipped one.

        A target skips in silence what comes under a GTID that somebody else has used up since the
        start: then it has not found the rows of this group, or, if that was an earlier one, the
        worker's row is `behind`. A new start passes over what the target has executed. What is
        applied again has another GTID than the one that it has used up itself.
        """
        applier = self._applier
        again = group.number in self.settings.again
        if not again and await applier.records.has_executed(str(group.gtid)):
            passed = f"GTID {group.gtid}"
        elif behind and await applier.records.has_row(self._progress.index + 1):
            passed = f"the GTID of a group before {group.number}"
        else:
            return
        raise ConnectionLostError("target", f"somebody else has executed {passed} there")

    async def _at_its_turn(self, group: Group) -> bool:
        """Wait until all earlier groups have committed; return whether it had to wait.

        What a group only reads or refers to is not one of its partitions: a definition may need
        one in another database that is not yet applied. Only after this wait is a failure its own.
        """
        coordinator = self._progress.coordinator
        if coordinator.scheduler.gaq.number >= group.number - 1:
            return False
        await coordinator.turn(self._progress.index, group.number)
        return coordinator.scheduler.gaq.number >= group.number - 1

    def failed(self, group: Group, error: MtsdError, remedy: str, row: str = "") -> ApplyError:
        """Return the error that stops the replica because of a group, with what to do."""
        highest_done = self._progress.coordinator.scheduler.gaq.highest_done
        first = self.settings.first_groups
        return failed(group, self._progress.index + 1, highest_done, error, remedy, first, row)

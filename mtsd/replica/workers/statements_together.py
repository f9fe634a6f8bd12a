"""Batches of transactions of statements, applied as one if that succeeds."""

import asyncio

import structlog

from mtsd.apply.session.retry import worth_a_retry
from mtsd.model.errors import ServerError
from mtsd.replica.core.worker_progress import WorkerProgress
from mtsd.replica.ways.single_groups import SingleGroups
from mtsd.replica.workers.attempts import Attempts
from mtsd.schedule.batches.in_flight import Batch
from mtsd.schedule.batches.statement_runs import StatementRuns

log = structlog.get_logger(__name__)


class StatementsTogether:
    """Applies the batches of one worker that are `BatchWay.TOGETHER`."""

    def __init__(self, progress: WorkerProgress, singly: SingleGroups, attempts: Attempts) -> None:
        self._progress = progress
        self._singly = singly
        self._attempts = attempts
        self._runs = StatementRuns()

    @property
    def most(self) -> int:
        """How many transactions a batch may have."""
        # Where no order is kept, each waits until the target has stored what came before it.
        return self._runs.most if self._progress.coordinator.keeps_order else 1

    async def apply(self, batch: Batch) -> bool:
        """Apply transactions of statements, as one if that succeeds.

        Returns whether others may follow; False if the replica ends.
        """
        coordinator = self._progress.coordinator
        if not await coordinator.passed_in_order(batch[0].number):
            return False
        clock = asyncio.get_running_loop().time
        tries = self._runs.may_try()
        while batch and coordinator.failure is None:
            applied = await self._apply_plain(batch) if tries else 0
            tries = tries and applied is not None
            if not applied:
                applied = 1
                began = clock()
                await self._attempts.apply(batch[:1])
                self._runs.took(clock() - began)
            batch = batch[applied:]
        return True

    async def _apply_plain(self, batch: Batch) -> int | None:
        """Apply those from the first one on that can be rolled back, as one; return how many.

        None if that has failed: nothing of them is applied.
        """
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            run = await self._singly.protected(batch)
            applied = bool(run) and await self._singly.apply_plain(run)
        except ServerError as error:
            self._runs.failed()
            if len(batch) == 1 and worth_a_retry(error):
                await self._attempts.retry(batch, error)
                return 1
            log.info("applied one by one", group=batch[0].number, error=str(error))
            return None
        if applied:
            # A run that ends early says how long a whole one would have taken.
            self._runs.succeeded(len(batch), (clock() - began) * len(batch) / len(run))
            self._progress.committed(run)
        elif run:
            self._runs.failed()
            return None
        return len(run)

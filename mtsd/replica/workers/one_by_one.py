"""Batches of groups each of which commits by itself: several only of XA transactions."""

import structlog

from mtsd.model.errors import ServerError
from mtsd.replica.core.worker_progress import WorkerProgress
from mtsd.replica.ways.single_groups import SingleGroups
from mtsd.replica.workers.attempts import Attempts
from mtsd.schedule.batches.in_flight import Batch

log = structlog.get_logger(__name__)


class OneByOne:
    """Applies the batches of one worker that are `BatchWay.ONE_BY_ONE`."""

    def __init__(self, progress: WorkerProgress, singly: SingleGroups, attempts: Attempts) -> None:
        self._progress = progress
        self._singly = singly
        self._attempts = attempts

    async def apply(self, batch: Batch) -> bool:
        """Apply groups each of which commits by itself: several only of XA transactions.

        Returns whether others may follow; False if the replica ends.
        """
        coordinator = self._progress.coordinator
        alone = False
        """Whether the first one is not to be tried in a run: one has ended before it."""
        while batch and coordinator.failure is None:
            if not await coordinator.passed_in_order(batch[0].number):
                return False
            applied = 0
            if len(batch) > 1 and coordinator.keeps_order and not alone:
                applied = await self._apply_run(batch)
            alone = 0 < applied < len(batch)
            if applied:
                self._progress.committed(batch[:applied])
                self._progress.transactions += applied - 1
            else:
                applied = 1
                await self._attempts.apply(batch[:1])
            batch = batch[applied:]
        return True

    async def _apply_run(self, batch: Batch) -> int:
        try:
            return await self._singly.apply_run(batch)
        except ServerError as error:
            log.info("applied one by one", group=batch[0].number, error=str(error))
            return 0

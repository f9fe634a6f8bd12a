"""What a worker has in flight, and what has committed: counted, and reported to the coordinator."""

from collections.abc import Sequence

import structlog

from mtsd.model.errors import ServerError
from mtsd.model.group import Group
from mtsd.replica.core.coordinator import Coordinator
from mtsd.schedule.batches.in_flight import Batch, InFlight
from mtsd.schedule.done.worker_row import WorkerRow

log = structlog.get_logger(__name__)


class WorkerProgress:
    """That of worker `index`, whose row is `row` at its beginning."""

    def __init__(self, index: int, coordinator: Coordinator, row: WorkerRow) -> None:
        self.index = index
        self.coordinator = coordinator
        self.flight = InFlight(row)
        self.transactions = 0
        """Target transactions committed."""
        self.groups = 0
        self.retries = 0
        self.skipped = 0
        """Groups skipped because of skip_errors."""
        self.last: Group | None = None

    def row_after(self, unit: Sequence[Group]) -> WorkerRow:
        """Return what the worker's row becomes with these groups, while nothing is in flight."""
        return self.flight.row_after(tuple(unit), self.coordinator.scheduler.stored)

    def all_begun(self, *, pairs: bool) -> list[Batch]:
        """Take all that has begun and not committed, to be applied by itself or as a pair."""
        while self.flight.has_begun:
            self.flight.take_begun()
        return self.coordinator.scheduler.workers[self.index].replay(pairs=pairs)

    def committed(self, batch: Sequence[Group]) -> None:
        """Note that a transaction of groups from the queue has committed."""
        self._count(batch)
        self.coordinator.committed(self.index, batch)

    def applied(self, group: Group, row: WorkerRow, *, skipped: ServerError | None = None) -> None:
        """Note that a group without a place in the queue has committed with that row.

        `skipped`: only its row has, because of this error.
        """
        self.flight.applied(row)
        if skipped is not None:
            self.skip(group, skipped)
        self._count((group,))
        self.coordinator.add_committed(group)

    def skip(self, group: Group, error: ServerError) -> None:
        """Log and count a group that is skipped because of an error."""
        log.warning(
            "group skipped by skip_errors", worker=self.index + 1, group=group.number,
            position=str(group.end), gtid=str(group.gtid or ""), error=str(error),
        )  # fmt: skip
        self.skipped += 1

    def _count(self, batch: Sequence[Group]) -> None:
        self.transactions += 1
        self.groups += len(batch)
        self.last = batch[-1]

"""What a worker's row of slave_worker_info says, and how it moves on with each commit (WL#5599).

The row is written in the transaction that applies the groups. Its bitmap may only be rebased on a
low-water mark that the target has stored: everything below the base must be proven by that mark.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from mtsd.model.group import Group
from mtsd.model.gtid import GtidSet
from mtsd.model.position import Position
from mtsd.schedule.executed_groups import ExecutedGroups
from mtsd.schedule.group_assigned_queue import LowWaterMark


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """One row: what worker `id` (from 1; 0 is recovery's) has committed past the checkpoint.

    `last` is the end of the last group that it committed, None before the first; `checkpoint` the
    position of the stored low-water mark; bit 0 of `executed` stands for the group after it.
    `token` differs from that of every other row, and moves with the commits.
    """

    id: int
    last: Position | None
    checkpoint: Position
    executed: ExecutedGroups
    gtids: GtidSet
    token: int = 0

    def advanced(
        self, groups: Sequence[Group], stored: LowWaterMark, *, same_token: bool = False
    ) -> "WorkerRow":
        """Return the row that commits together with `groups`.

        `stored` is the low-water mark that the target holds. Raises ValueError where one of the
        groups has committed already.
        """
        executed = self.executed
        gtids = self.gtids
        if stored.number + 1 != executed.base:
            executed = executed.rebased(stored.number + 1)
            if stored.gtids is not None:
                gtids = gtids.minus(stored.gtids)
        if gtids is self.gtids:
            # If the commit fails, this row stays what it is.
            gtids = gtids.copy()
        for group in groups:
            if group.gtid is not None:
                gtids.add(group.gtid)
        before = len(executed)
        executed = executed.with_numbers(group.number for group in groups)
        if len(executed) != before + len(groups):
            raise ValueError(f"one of the groups from {groups[0].number} on has committed already")
        return WorkerRow(
            self.id,
            groups[-1].end if groups else self.last,
            stored.position,
            executed,
            gtids,
            self.token + (not same_token),
        )


def blank_row(worker_id: int, mark: LowWaterMark, token: int = 0) -> WorkerRow:
    """Return the row of a worker that has committed nothing since the low-water mark."""
    executed = ExecutedGroups(mark.number + 1)
    return WorkerRow(worker_id, None, mark.position, executed, GtidSet(), token)

"""What a worker's row of slave_worker_info contains, and how each commit advances it (WL#5599).

The row is written in the transaction that applies the groups. Its bitmap may only be rebased on a
low-water mark that the target has stored: that mark must prove everything below the base.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from mtsd.model.group import Group
from mtsd.model.gtid import Gtid, GtidSet
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.position import Position
from mtsd.schedule.done.executed_groups import ExecutedGroups


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """One row: what worker `id` (from 1; 0 is recovery's) has committed past the checkpoint.

    `last` is the end of the last group that it committed, None before the first; `checkpoint` is
    the position of the stored low-water mark; bit 0 of `executed` stands for the group after it.
    `token` differs from that of every other row, and changes with the commits.

    The GTIDs of a server usually run parallel to the numbers of its groups, so most need not be
    listed: with `aligned`, group n of `executed` has its UUID and tag, and the number
    `aligned.number` + n. `gtids` contains the others.
    """

    id: int
    last: Position | None
    checkpoint: Position
    executed: ExecutedGroups
    gtids: GtidSet
    token: int = 0
    aligned: Gtid | None = None
    listed: tuple[tuple[int, Gtid], ...] = field(default=(), compare=False, repr=False)
    """`gtids` with the numbers of their groups; not of a row that was read from the target."""

    @property
    def executed_gtids(self) -> GtidSet:
        """The GTIDs of all its groups, as a new set."""
        gtids = self.gtids.copy()
        for _, gtid in _aligned_gtids(self.executed, self.aligned):
            gtids.add(gtid)
        return gtids

    def advanced(
        self, groups: Sequence[Group], stored: LowWaterMark, *, same_token: bool = False
    ) -> "WorkerRow":
        """Return the row that commits together with `groups`.

        `stored` is the low-water mark stored on the target. Raises ValueError if one of the
        groups has already committed.
        """
        executed = self.executed
        gtids = self.gtids
        listed = self.listed
        if stored.number + 1 != executed.base:
            executed = executed.rebased(stored.number + 1)
            # By number: the mark may know no GTIDs, and those of a MariaDB need not grow.
            kept = tuple(each for each in listed if each[0] > stored.number)
            if len(kept) < len(listed):
                listed = kept
                gtids = _set_of(kept)
        aligned = self.aligned if executed.bits else _alignment(groups)
        if aligned is None or not _are_aligned(groups, aligned):
            # If the commit fails, this row remains unchanged.
            more = [*_aligned_gtids(executed, aligned)]
            aligned = None
            more += ((group.number, group.gtid) for group in groups if group.gtid is not None)
            listed = (*listed, *more)
            gtids = gtids.copy()
            for _, gtid in more:
                gtids.add(gtid)
        before = len(executed)
        executed = executed.with_numbers(group.number for group in groups)
        if len(executed) != before + len(groups):
            raise ValueError(f"one of the groups from {groups[0].number} on has already committed")
        return WorkerRow(
            self.id,
            groups[-1].end if groups else self.last,
            stored.position,
            executed,
            gtids,
            self.token + (not same_token),
            aligned,
            listed,
        )


def _aligned_gtids(executed: ExecutedGroups, aligned: Gtid | None) -> Iterable[tuple[int, Gtid]]:
    if aligned is not None:
        uuid, offset, tag = aligned
        for number in executed:
            yield number, Gtid(uuid, offset + number, tag)


def _set_of(listed: Iterable[tuple[int, Gtid]]) -> GtidSet:
    gtids = GtidSet()
    for _, gtid in listed:
        gtids.add(gtid)
    return gtids


def _alignment(groups: Sequence[Group]) -> Gtid | None:
    """Return what the first of the groups is aligned to."""
    gtid = groups[0].gtid if groups else None
    return gtid and Gtid(gtid.uuid, gtid.number - groups[0].number, gtid.tag)


def _are_aligned(groups: Sequence[Group], aligned: Gtid) -> bool:
    uuid, offset, tag = aligned
    for group in groups:
        gtid = group.gtid
        if gtid is None or gtid.number - group.number != offset:
            return False
        if gtid.uuid != uuid or gtid.tag != tag:
            return False
    return True


def blank_row(worker_id: int, mark: LowWaterMark, token: int = 0) -> WorkerRow:
    """Return the row of a worker that has committed nothing since the low-water mark."""
    executed = ExecutedGroups(mark.number + 1)
    return WorkerRow(worker_id, None, mark.position, executed, GtidSet(), token)

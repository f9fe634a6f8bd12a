"""A target server as far as the schedule can see it: what is applied, the rows, the mark.

Every method is one transaction, so a crash falls between two of them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from mtsd.model.group import Group
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.schedule.done.executed_groups import ExecutedGroups, recovered
from mtsd.schedule.done.worker_row import WorkerRow
from tests.schedule.worlds.streams import START_MARK

RECOVERY_ROW = 0


@dataclass(slots=True)
class SimulatedTarget:
    """The state that survives a crash of the daemon."""

    applied: dict[int, Group] = field(default_factory=dict)
    """The groups by number, in the order in which they committed."""
    rows: dict[int, ExecutedGroups] = field(default_factory=dict)
    mark: LowWaterMark = START_MARK
    tokens: dict[int, int] = field(default_factory=dict)
    """Of the workers' rows, where a run goes by them."""
    recorded: set[int] = field(default_factory=set)
    """The groups whose records are there, and whose traces show that they are applied."""

    def have(self, group: Group) -> None:
        """Apply a group whose record is there, without a place in a row."""
        assert group.number not in self.applied, f"group {group.number} is applied twice"
        self.applied[group.number] = group
        self.recorded.add(group.number)

    def commit(self, groups: Sequence[Group], row: WorkerRow) -> None:
        """Apply groups and write the worker's row."""
        for group in groups:
            assert group.number not in self.applied, f"group {group.number} is applied twice"
            self.applied[group.number] = group
        self.rows[row.id] = row.executed
        self.tokens[row.id] = row.token

    def executed(self) -> ExecutedGroups:
        """Return what a restart would skip."""
        result = recovered(self.mark.number, self.rows.values())
        return result.with_numbers(
            number
            for number in sorted(self.recorded)
            if number > self.mark.number and number not in result
        )

    def recovered(self) -> ExecutedGroups:
        """Return the same: exactly what is applied past the mark."""
        result = self.executed()
        proven = {number for number in self.numbers(result) if number > self.mark.number}
        assert proven == {number for number in self.applied if number > self.mark.number}
        return result

    def write_recovery_row(self, executed: ExecutedGroups, *, drop_others: bool) -> None:
        """Write the row of recovery, and drop the rows that it makes redundant, or leave them."""
        if drop_others:
            self.rows.clear()
        self.rows[RECOVERY_ROW] = executed
        self.recorded.clear()

    def drop_passed_rows(self) -> None:
        """Drop the rows of which the mark proves everything."""
        for row_id, row in list(self.rows.items()):
            if row.highest <= self.mark.number:
                del self.rows[row_id]

    def store(self, mark: LowWaterMark) -> None:
        """Store the low-water mark."""
        assert mark.number >= self.mark.number
        assert self.mark.position <= mark.position
        self.mark = mark

    def fork(self) -> "SimulatedTarget":
        """Return an independent copy."""
        return SimulatedTarget(
            dict(self.applied),
            dict(self.rows),
            self.mark,
            dict(self.tokens),
            set(self.recorded),
        )

    def key(self) -> tuple[object, ...]:
        """Return what tells two states apart for every restart that may follow."""
        mark = self.mark
        rows = frozenset(
            (row_id, bits)
            for row_id, row in self.rows.items()
            if (bits := row.rebased(mark.number + 1).bits)
        )
        records = frozenset(number for number in self.recorded if number > mark.number)
        return mark.number, mark.position, rows, frozenset(self.applied), records

    @staticmethod
    def numbers(executed: ExecutedGroups) -> Iterable[int]:
        """Yield the numbers of a set of executed groups."""
        return (n for n in range(executed.base, executed.highest + 1) if n in executed)

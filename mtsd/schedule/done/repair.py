"""What is applied again after a run in which groups of rows kept no order (eventual).

Such a run may have committed a group without those that it depends on. So its executed set is not
closed: to skip it, and to apply the rest in order, would leave an older row over a newer one. So
all groups past the stored low-water mark are applied in order and idempotently, those that have
committed once more, up to the highest of them; and nothing later may begin before. That leaves what
the last of these changes says of each row. Interrupted, it begins again at the mark of that time.

Only rows can be applied twice. Everything else runs alone, and only after the target has stored
that all before it has committed (`Coordinator.passed_in_order`). So at most one group that is not
only rows has committed past the stored mark, right behind it, and is left alone.
"""

from collections.abc import Collection
from dataclasses import dataclass

from mtsd.schedule.done.executed_groups import NO_GROUPS, ExecutedGroups


@dataclass(frozen=True, slots=True)
class Repair:
    """Groups `first` to `last` are applied in order, `again` those that have committed before."""

    first: int
    last: int
    again: ExecutedGroups


def repair_due(
    mark: int, executed: ExecutedGroups, skipped: frozenset[int]
) -> tuple[ExecutedGroups, Repair | None]:
    """Divide what has committed past the low-water mark `mark` into what is left, and a repair.

    `skipped` are the groups that a person has skipped: they stay so.
    """
    left = ExecutedGroups(mark + 1).with_numbers(n for n in executed if n in skipped)
    again = ExecutedGroups(mark + 1).with_numbers(n for n in executed if n not in skipped)
    if not again.bits:
        return executed, None
    return left, Repair(mark + 1, executed.highest, again)


def is_passed(
    number: int, mark: int, executed: ExecutedGroups, skipped: Collection[int], *, ordered: bool
) -> bool:
    """Return whether a group that has stopped the replica does not have to be applied any more.

    `ordered` is whether what has `executed` past the low-water mark `mark` is closed; if not, a
    repair applies it once more, and may have stopped at a group of it. `skipped` are the groups
    that a person has skipped.
    """
    return number <= mark or (number in executed and (ordered or number in skipped))


def again_of(repair: Repair | None) -> ExecutedGroups:
    """Return the groups that a repair, if there is one, applies again."""
    return NO_GROUPS if repair is None else repair.again

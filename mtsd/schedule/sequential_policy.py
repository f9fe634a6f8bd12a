"""The sequential mode: parallel_workers = 0, one queue, one group after another."""

from collections.abc import Sequence

from mtsd.model.group import Group
from mtsd.schedule.assignment import Assignment

_FIRST = Assignment(worker=0)


class SequentialPolicy:
    """Sends every group to the only worker."""

    def assign(self, group: Group) -> Assignment:  # noqa: ARG002 - see `Policy`
        """Answer the only worker."""
        return _FIRST

    def finished(self, groups: Sequence[Group]) -> None:
        """Nothing is kept."""

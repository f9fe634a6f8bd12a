"""Groups by the names that a target with lower_case_table_names = 1 gives their databases."""

from collections.abc import Iterator

from mtsd.model.group import Group, GroupClosed, LargeGroup, StreamItem
from mtsd.model.names import folded
from mtsd.replica.skipped_groups import GroupStream


class FoldedNames:
    """A stream of groups whose databases are named in lower case, so that each is one partition.

    Where the source has several databases that are one on the target, or names one in several
    ways, its clock and its group commits say nothing about their order: groups of them keep that of
    the stream.
    """

    def __init__(self, stream: GroupStream) -> None:
        self._stream = stream
        self._spelled: dict[str, str] = {}
        """By folded name, how it was spelled first."""
        self._merged: set[str] = set()
        """Folded names with several spellings."""

    async def read(self) -> Iterator[StreamItem]:
        """Return what comes next."""
        return map(self._folded, await self._stream.read())

    def _folded(self, item: StreamItem) -> StreamItem:
        if type(item) is Group:
            return self._group(item)
        if isinstance(item, GroupClosed):
            return GroupClosed(self._group(item.group))
        if isinstance(item, LargeGroup):
            return LargeGroup(self._group(item.group))
        return item

    def _group(self, group: Group) -> Group:
        names: dict[str, None] = {}
        for name in group.databases:
            as_one = folded(name)
            names[as_one] = None
            if self._spelled.setdefault(as_one, name) != name:
                self._merged.add(as_one)
        databases = tuple(names)
        if databases != group.databases:
            group = group._replace(databases=databases)
        if self._merged.isdisjoint(databases):
            return group
        last_committed = max(group.last_committed, group.sequence_number - 1)
        return group._replace(last_committed=last_committed, commit_id=0)

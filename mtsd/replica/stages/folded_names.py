"""Groups by the names that a target with lower_case_table_names = 1 gives their databases."""

from collections.abc import Iterator
from dataclasses import replace

from mtsd.binlog.groups.merged_databases import MergedDatabases
from mtsd.model.group import Group, GroupClosed, LargeGroup, StreamItem
from mtsd.model.names import folded
from mtsd.replica.stages.skipped_groups import GroupStream


class FoldedNames:
    """A stream of groups whose databases are named in lower case, so that each is one partition.

    Where the source has several databases that are one on the target, or names one in several
    ways, its clock and its group commits say nothing about their order: groups of them keep that of
    the stream.
    """

    def __init__(self, stream: GroupStream) -> None:
        self._stream = stream
        self.merged = MergedDatabases()

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
            self.merged.learn(name, as_one, as_one)
        databases = tuple(names)
        if databases != group.databases:
            group = replace(group, databases=databases)
        return self.merged.in_order(group, databases)

"""Which tables a group updates, as far as its events say so: only row events do."""

from dataclasses import replace
from typing import Final

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.bytes.header import HEADER_SIZE
from mtsd.binlog.events.table_map import parse_table_map
from mtsd.model.group import Group
from mtsd.model.names import folded
from mtsd.model.step import Rows

_TABLE_MAP: Final[int] = EventType.TABLE_MAP_EVENT.value
_MAX_REMEMBERED: Final = 4096


class UpdatedTables:
    """Fills in `Group.tables`, with the names on the target.

    With `fold_case` they are in lower case, for a target where names are not case-sensitive.
    """

    __slots__ = ("_fold_case", "_names")

    def __init__(self, *, fold_case: bool) -> None:
        self._fold_case = fold_case
        self._names: dict[bytes, str] = {}
        """By the bytes after the header of a Table_map event."""

    def __call__(self, group: Group) -> Group:
        """Return a group with its tables; unchanged if it contains anything but rows.

        Raises BinlogError if a Table_map event is damaged.
        """
        names = self._names
        tables: dict[str, None] = {}
        for step in group.steps:
            if type(step) is not Rows:
                return group
            for event in step.events:
                if event[4] == _TABLE_MAP:
                    body = event[HEADER_SIZE:]
                    name = names.get(body)
                    if name is None:
                        name = self._name(event, body)
                    tables[name] = None
        return replace(group, tables=tuple(tables)) if tables else group

    def _name(self, event: bytes, body: bytes) -> str:
        table = parse_table_map(event)
        name = f"{table.database}.{table.table}"
        if self._fold_case:
            name = folded(name)
        if len(self._names) >= _MAX_REMEMBERED:
            self._names.clear()
        self._names[body] = name
        return name

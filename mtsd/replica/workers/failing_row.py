"""Which row of a group is the one that cannot be applied: the target is asked, by trying.

A server says which group, table and error, and of a missing row no more. So the group's events are
applied once more, one by one and then row by row, and rolled back. This happens once, when the
replica is about to stop, and takes some seconds at most, unless it has to wait for a row lock.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import structlog

from mtsd.apply.appliers.applier import Applier
from mtsd.apply.rows.row_in_words import row_in_words
from mtsd.binlog.events.dialect import dialect_of
from mtsd.binlog.events.format_description import parse_format_description
from mtsd.binlog.events.table_map import parse_table_map
from mtsd.binlog.values.single_rows import MappedRows, mapped_rows, single_rows
from mtsd.model.error_numbers import ER
from mtsd.model.errors import MtsdError, ServerError
from mtsd.model.group import Group, GroupKind
from mtsd.model.step import Rows, state_of_rows

_OF_ONE_ROW: Final = frozenset({
    ER.KEY_NOT_FOUND, ER.DUP_ENTRY, ER.NO_REFERENCED_ROW, ER.NO_REFERENCED_ROW_2,
    ER.ROW_IS_REFERENCED, ER.ROW_IS_REFERENCED_2,
    ER.BAD_NULL_ERROR, ER.DATA_TOO_LONG, ER.WARN_DATA_OUT_OF_RANGE,
    ER.TRUNCATED_WRONG_VALUE_FOR_FIELD,
    ER.FOREIGN_DUPLICATE_KEY_WITH_CHILD_INFO,  # a duplicate in another table, by a cascade
    ER.CHECK_CONSTRAINT_VIOLATED, ER.CONSTRAINT_FAILED,  # a CHECK constraint of either family
})  # fmt: skip
_TIMEOUT_S: Final = 10.0
_LARGEST: Final = 64 << 20
"""Bytes of a group; it is sent twice."""

log = structlog.get_logger(__name__)


async def failing_row(applier: Applier, group: Group, error: ServerError) -> str:
    """Return what a group does to the row of its error, in words; "" if that is not found.

    Nothing is open before and after it. A group is only tried if it consists of rows that can be
    rolled back.
    """
    if error.number not in _OF_ONE_ROW or group.kind is not GroupKind.ROWS:
        return ""
    if group.size > _LARGEST or not all(isinstance(step, Rows) for step in group.steps):
        return ""
    version = parse_format_description(group.format_description).server_version
    mariadb = dialect_of(version).tables_of_mariadb
    clock = asyncio.get_running_loop().time
    search = _Search(applier, group, clock() + _TIMEOUT_S)
    try:
        events = list(mapped_rows(group.rows))
        maps = frozenset(each.table_map for each in events)
        if await applier.tables.without_transactions(maps, group.steps):
            return ""
        at = await search.first_to_fail([], events)
        if at is None:
            return ""
        rows = list(single_rows(events[at], mariadb=mariadb))
        row = 0 if len(rows) == 1 else await search.first_to_fail(events[:at], rows)
        if row is None:
            return ""
        table = parse_table_map(rows[row].table_map, mariadb=mariadb)
        target_table = await applier.tables.read(table.database, table.table)
        return row_in_words(table, target_table, rows[row].event)
    except MtsdError as refused:
        # The error of the group is what counts.
        log.info("the row that fails was not found", group=group.number, reason=str(refused))
        return ""


@dataclass(frozen=True, slots=True)
class _Search:
    applier: Applier
    group: Group
    deadline: float

    async def first_to_fail(
        self, before: Sequence[MappedRows], each: Sequence[MappedRows]
    ) -> int | None:
        """Apply `before`, then the others one by one; return which fails, with all rolled back."""
        clock = asyncio.get_running_loop().time
        await self.applier.begin(self.group.format_description, self.group.gtid)
        try:
            if before:
                await self._apply(before)
            for at, rows in enumerate(each):
                if clock() > self.deadline:
                    return None
                try:
                    await self._apply([rows])
                except ServerError as error:
                    return at if error.number in _OF_ONE_ROW else None
            return None
        finally:
            if not self.applier.closed:
                await self.applier.rollback()

    async def _apply(self, rows: Sequence[MappedRows]) -> None:
        events = tuple(event for each in rows for event in each)
        await self.applier.apply_steps((Rows(events, state_of_rows(self.group.steps)),))

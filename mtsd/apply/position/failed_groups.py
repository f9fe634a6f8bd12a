"""The tables of groups that could not be applied: slave_stopped_group and slave_skipped_group.

The first contains, one row per channel, the group that the replica stopped at, until it has been
applied or skipped; the second what people have skipped, who, and why. docs/position-tables.md
describes the columns. Nothing here waits: this module builds statements and parses rows.
"""

from dataclasses import dataclass
from datetime import datetime

from mtsd.apply.position.table_declaration import (
    CHANNEL,
    NAME_COLUMN,
    ONE_A_CHANNEL,
    ChannelTable,
    Pair,
    PositionColumns,
    StoredRow,
    Table,
    flag,
    moment,
    shown_text,
    text,
    whole,
)
from mtsd.model.outcome.failed_group import FailedGroup
from mtsd.wire.exchange import Row

_NUMBER = whole("Group_number")
_END = PositionColumns(
    text("Master_log_name", f"{NAME_COLUMN} COMMENT 'of the end of the group; empty: not known'"),
    whole("Master_log_pos"),
)
_GTID = text("Gtid", "VARCHAR(128) NOT NULL")
_DATABASES = shown_text("Databases", "TEXT NOT NULL")
_KIND = text("Kind", "VARCHAR(32) NOT NULL")
_ERROR = whole("Error_number", "INT UNSIGNED")
_MESSAGE = shown_text("Message", "TEXT NOT NULL")
_GROUP = (_NUMBER, _END.file, _END.offset, _GTID, _DATABASES, _KIND, _ERROR, _MESSAGE)

_LATER = flag("Later_applied")
_STOPPED_AT = moment("Stopped_at")
_STOPPED = Table("slave_stopped_group", (ONE_A_CHANNEL, *_GROUP, _LATER, _STOPPED_AT))

_LONGEST_WHO = 255
_WHO = shown_text("Who", f"VARCHAR({_LONGEST_WHO}) NOT NULL", _LONGEST_WHO)
_WHY = shown_text("Why", "TEXT NOT NULL")
_SKIPPED_AT = moment("Skipped_at")
_SKIPPED = Table(
    "slave_skipped_group",
    (CHANNEL, *_GROUP, _WHO, _WHY, _SKIPPED_AT),
    "PRIMARY KEY (`Channel_name`, `Group_number`)",
)


@dataclass(frozen=True, slots=True)
class StoppedGroup:
    """The group that a channel's replica stopped at; `message` is the whole error."""

    group: FailedGroup
    message: str
    time: datetime
    """When it stopped, by the target's clock."""


@dataclass(frozen=True, slots=True)
class SkippedGroup:
    """A group that is skipped for good: `message` is the error that it had.

    `who` and `why` are as given by the person who skipped it.
    """

    group: FailedGroup
    message: str
    who: str
    why: str
    time: datetime


class FailedGroups:
    """Statements on both tables for one channel in one schema."""

    def __init__(self, schema: str, channel: str) -> None:
        self._stopped = ChannelTable(_STOPPED, schema, channel)
        self._skipped = ChannelTable(_SKIPPED, schema, channel)

    def definitions(self) -> list[bytes]:
        """Return the statements that create the tables if they do not exist."""
        return [self._stopped.definition(), self._skipped.definition()]

    def replace_stopped(self, group: FailedGroup, message: str) -> bytes:
        """Return the statement that records the group that the replica has stopped at."""
        return self._stopped.replace(*_values(group, message), _LATER.of(group.later_applied))

    def select_stopped(self) -> bytes:
        """Return the query for the row that `replace_stopped` writes, for `stopped`."""
        return self._stopped.select()

    def stopped(self, row: Row) -> StoppedGroup:
        """Parse a row of `select_stopped`."""
        stored = _STOPPED.read(row)
        group = _group(stored, later_applied=stored[_LATER])
        return StoppedGroup(group, stored[_MESSAGE], stored[_STOPPED_AT])

    def delete_stopped(self) -> bytes:
        """Return the statement after which no group is on record as having stopped the replica."""
        return self._stopped.delete()

    def insert_skipped(self, group: FailedGroup, message: str, who: str, why: str) -> bytes:
        """Return the statement that records a group as skipped."""
        return self._skipped.insert(*_values(group, message), _WHO.of(who), _WHY.of(why))

    def select_skipped(self) -> bytes:
        """Return the query for all skipped groups, in the stream's order, for `skipped`."""
        return self._skipped.select(condition=b" ORDER BY " + _NUMBER.quoted)

    def skipped(self, row: Row) -> SkippedGroup:
        """Parse a row of `select_skipped`."""
        stored = _SKIPPED.read(row)
        return SkippedGroup(
            _group(stored), stored[_MESSAGE], stored[_WHO], stored[_WHY], stored[_SKIPPED_AT]
        )

    def delete_skipped(self) -> bytes:
        """Return the statement that deletes the record of skipped groups."""
        return self._skipped.delete()


def _values(group: FailedGroup, message: str) -> list[Pair]:
    return [
        _NUMBER.of(group.number),
        *_END.of(group.end),
        _GTID.of(group.gtid),
        _DATABASES.of(",".join(group.databases)),
        _KIND.of(group.kind),
        _ERROR.of(group.error),
        _MESSAGE.of(message),
    ]


def _group(stored: StoredRow, *, later_applied: bool = False) -> FailedGroup:
    return FailedGroup(
        stored[_NUMBER],
        _END.read(stored) if stored[_END.file] else None,
        stored[_GTID],
        tuple(filter(None, stored[_DATABASES].split(","))),
        stored[_KIND],
        stored[_ERROR],
        later_applied,
    )

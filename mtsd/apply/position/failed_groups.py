"""The tables of groups that could not be applied: slave_stopped_group and slave_skipped_group.

The first contains, one row per channel, the group that the replica stopped at, until it has been
applied or skipped; the second what people have skipped, who, and why. docs/position-tables.md
describes the columns. Nothing here waits: this module builds statements and parses rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from mtsd.apply.position.worker_info import NAME_COLUMN, TABLE_OPTIONS
from mtsd.apply.sql import literals
from mtsd.model.outcome.failed_group import FailedGroup
from mtsd.model.position import Position
from mtsd.wire.connection import Row

_LONGEST_TEXT = 10_000
"""Characters: a TEXT column has room for them at four bytes each."""
_LONGEST_WHO = 255
_GROUP_COLUMNS = f"""  `Group_number` BIGINT UNSIGNED NOT NULL,
  `Master_log_name` {NAME_COLUMN} COMMENT 'of the end of the group; empty: not known',
  `Master_log_pos` BIGINT UNSIGNED NOT NULL,
  `Gtid` VARCHAR(128) NOT NULL,
  `Databases` TEXT NOT NULL,
  `Kind` VARCHAR(32) NOT NULL,
  `Error_number` INT UNSIGNED NOT NULL,
  `Message` TEXT NOT NULL"""
_GROUP = (
    b"`Group_number`,`Master_log_name`,`Master_log_pos`,`Gtid`,`Databases`,`Kind`,`Error_number`,"
    b"`Message`"
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
        quoted = literals.name(schema)
        self._stopped = quoted + b".`slave_stopped_group`"
        self._skipped = quoted + b".`slave_skipped_group`"
        self._channel = literals.text(channel)
        self._of_channel = b" WHERE `Channel_name`=" + self._channel

    def definitions(self) -> list[bytes]:
        """Return the statements that create the tables if they do not exist."""
        stopped = f"""CREATE TABLE IF NOT EXISTS {self._stopped.decode()} (
  `Channel_name` VARCHAR(64) NOT NULL PRIMARY KEY,
{_GROUP_COLUMNS},
  `Later_applied` TINYINT UNSIGNED NOT NULL,
  `Stopped_at` TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)
) {TABLE_OPTIONS}"""
        skipped = f"""CREATE TABLE IF NOT EXISTS {self._skipped.decode()} (
  `Channel_name` VARCHAR(64) NOT NULL,
{_GROUP_COLUMNS},
  `Who` VARCHAR({_LONGEST_WHO}) NOT NULL,
  `Why` TEXT NOT NULL,
  `Skipped_at` TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  PRIMARY KEY (`Channel_name`, `Group_number`)
) {TABLE_OPTIONS}"""
        return [stopped.encode(), skipped.encode()]

    def replace_stopped(self, group: FailedGroup, message: str) -> bytes:
        """Return the statement that records the group that the replica has stopped at."""
        columns = [
            *self._columns(group, message),
            (b"`Later_applied`", b"%d" % group.later_applied),
        ]
        insert = literals.insert(self._stopped, columns)
        return b"REPLACE" + insert.removeprefix(b"INSERT")

    def select_stopped(self) -> bytes:
        """Return the query for the row that `replace_stopped` writes, for `stopped`."""
        return b"SELECT %b,`Later_applied`,%b FROM %b%b" % (
            _GROUP, _seconds(b"`Stopped_at`"), self._stopped, self._of_channel,
        )  # fmt: skip

    def stopped(self, row: Row) -> StoppedGroup:
        """Parse a row of `select_stopped`."""
        *columns, later, seconds = row
        group, message = _group(columns, later_applied=bool(later))
        return StoppedGroup(group, message, _time(seconds))

    def delete_stopped(self) -> bytes:
        """Return the statement after which no group is on record as having stopped the replica."""
        return b"DELETE FROM " + self._stopped + self._of_channel

    def insert_skipped(self, group: FailedGroup, message: str, who: str, why: str) -> bytes:
        """Return the statement that records a group as skipped."""
        columns = [
            *self._columns(group, message),
            (b"`Who`", _text(who, _LONGEST_WHO)),
            (b"`Why`", _text(why)),
        ]
        return literals.insert(self._skipped, columns)

    def select_skipped(self) -> bytes:
        """Return the query for all skipped groups, in the stream's order, for `skipped`."""
        return b"SELECT %b,`Who`,`Why`,%b FROM %b%b ORDER BY `Group_number`" % (
            _GROUP, _seconds(b"`Skipped_at`"), self._skipped, self._of_channel,
        )  # fmt: skip

    def skipped(self, row: Row) -> SkippedGroup:
        """Parse a row of `select_skipped`."""
        *columns, who, why, seconds = row
        group, message = _group(columns)
        return SkippedGroup(group, message, str(who), str(why), _time(seconds))

    def delete_skipped(self) -> bytes:
        """Return the statement that deletes the record of skipped groups."""
        return b"DELETE FROM " + self._skipped + self._of_channel

    def _columns(self, group: FailedGroup, message: str) -> list[tuple[bytes, bytes]]:
        file, offset = literals.place(group.end)
        return [
            (b"`Channel_name`", self._channel),
            (b"`Group_number`", b"%d" % group.number),
            (b"`Master_log_name`", file),
            (b"`Master_log_pos`", offset),
            (b"`Gtid`", literals.text(group.gtid)),
            (b"`Databases`", _text(",".join(group.databases))),
            (b"`Kind`", literals.text(group.kind)),
            (b"`Error_number`", b"%d" % group.error),
            (b"`Message`", _text(message)),
        ]


def _group(columns: Sequence[object], *, later_applied: bool = False) -> tuple[FailedGroup, str]:
    number, file, offset, gtid, databases, kind, error, message = columns
    group = FailedGroup(
        literals.number(number),
        Position(str(file), literals.number(offset)) if file else None,
        str(gtid),
        tuple(filter(None, str(databases).split(","))),
        str(kind),
        literals.number(error),
        later_applied,
    )
    return group, str(message)


def _text(value: str, longest: int = _LONGEST_TEXT) -> bytes:
    """Return a literal that the column accepts: bytes that are not UTF-8 become question marks."""
    return literals.blob(value[:longest].encode("utf-8", "replace"))


def _seconds(column: bytes) -> bytes:
    """Return the expression for a time in whole seconds since 1970, in any time zone."""
    return b"CAST(FLOOR(UNIX_TIMESTAMP(%b)) AS SIGNED)" % column


def _time(seconds: object) -> datetime:
    return datetime.fromtimestamp(literals.number(seconds), UTC)

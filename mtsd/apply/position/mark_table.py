"""The table slave_relay_log_info: the low-water mark, one row per channel."""

from mtsd.apply.position.table_declaration import (
    NAME_COLUMN,
    ONE_A_CHANNEL,
    ChannelTable,
    Pair,
    PositionColumns,
    StoredRow,
    Table,
    moment,
    text,
    text_or_null,
    whole,
)
from mtsd.model.gtid import GtidSet
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.temporary_tables import TemporaryTables

NUMBER = whole("Group_number")
_EXECUTED = text_or_null("Executed_gtid_set", "LONGTEXT")
_TEMPORARY = text(
    "Temporary_tables", "LONGTEXT NOT NULL COMMENT 'open on the source; empty: not known'"
)
WORKERS = whole("Number_of_workers", "INT UNSIGNED")
SOURCE = text("Source_uuid", "CHAR(36) NOT NULL")
DAEMON = text("Daemon_uuid", "CHAR(36) NOT NULL")
SCHEMA = whole("Schema_version", "INT UNSIGNED")
_MARK = PositionColumns(
    text("Master_log_name", f"{NAME_COLUMN} COMMENT 'of the low-water mark, as is the rest'"),
    whole("Master_log_pos"),
)
_BEGUN = whole(
    "Master_log_begun",
    "INT UNSIGNED",
    "NOT NULL COMMENT 'when that file was begun, in seconds since 1970; 0: not known'",
)
MARKS = Table(
    "slave_relay_log_info",
    (
        ONE_A_CHANNEL, _MARK.file, _MARK.offset, _BEGUN, NUMBER, _EXECUTED, _TEMPORARY, WORKERS,
        SOURCE, DAEMON, SCHEMA, moment("Updated_at", changes=True, is_read=False),
    ),
)  # fmt: skip


def mark_in(table: ChannelTable, stored: StoredRow) -> LowWaterMark:
    """Return the low-water mark in a row. Raises UnreadableError for what mtsd did not write."""
    gtids = stored[_EXECUTED]
    return LowWaterMark(
        stored[NUMBER],
        _MARK.read(stored),
        None if gtids is None else table.parsed(_EXECUTED, GtidSet.parse, gtids),
        table.parsed(_TEMPORARY, TemporaryTables.parse, stored[_TEMPORARY]),
        stored[_BEGUN],
    )


def mark_values(mark: LowWaterMark) -> list[Pair]:
    """Return the columns of a low-water mark with literals for it."""
    return [
        *_MARK.of(mark.position),
        _BEGUN.of(mark.begun),
        NUMBER.of(mark.number),
        _EXECUTED.of(None if mark.gtids is None else str(mark.gtids)),
        _TEMPORARY.of(mark.temporary.text()),
    ]

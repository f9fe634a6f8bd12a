"""The table slave_in_doubt: the groups that commit separately from their record."""

import struct
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from mtsd.apply.position.table_declaration import (
    CHANNEL,
    NAME_COLUMN,
    SOURCE_POSITION,
    ChannelTable,
    Table,
    moment,
    raw,
    text,
    whole,
)
from mtsd.model.group import GroupKind
from mtsd.model.outcome.failed_group import FailedGroup
from mtsd.model.position import Position
from mtsd.wire.exchange import Row

IN_DOUBT_TABLE = b"slave_in_doubt\0"
"""As a binlog has the name."""

_NUMBER = whole("Group_number")
_WORKER = whole("Id", "INT UNSIGNED")
_KIND = text("Kind", "VARCHAR(32) NOT NULL")
_EVIDENCE = text("Evidence_gtid", "VARCHAR(128) NOT NULL")
_SOURCE_GTID = text("Source_gtid", "VARCHAR(128) NOT NULL")
_DATABASES = text("Databases", "TEXT NOT NULL")
_STATEMENT = raw("Statement", "LONGBLOB NOT NULL")
_TARGET_FILE = text("Target_log_name", NAME_COLUMN)
_TARGET_OFFSET = whole("Target_log_pos")
_THREAD = whole("Target_thread", "INT UNSIGNED")
_RESOLUTION = text("Resolution", "VARCHAR(16) NOT NULL DEFAULT '' COMMENT 'of mtsd resolve'")
_TABLE = Table(
    "slave_in_doubt",
    (
        CHANNEL, _NUMBER, _WORKER, SOURCE_POSITION.file, SOURCE_POSITION.offset, _KIND, _EVIDENCE,
        _SOURCE_GTID, _DATABASES, _STATEMENT, _TARGET_FILE, _TARGET_OFFSET, _THREAD, _RESOLUTION,
        moment("Created_at", is_read=False),
    ),
    "PRIMARY KEY (`Channel_name`, `Group_number`)",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class InDoubt:
    """A group that commits separately from its record, which is written before and removed after.

    `evidence` is the GTID that it runs under on the target, "" if the target has no GTIDs. Then
    `target_file` and `target_offset` are the end of the target's own binlog before it, and
    `thread` is the thread id of its statements there; "" and 0 if the target writes no binlog.
    One without transactions that has a thread id is of a run (`is_of_run`).
    `resolution` is what a person has decided: "applied", "not applied", or "".
    """

    number: int
    worker_id: int
    end: Position
    kind: str
    evidence: str
    source_gtid: str
    databases: str
    statement: bytes
    target_file: str = ""
    target_offset: int = 0
    thread: int = 0
    resolution: str = ""

    @property
    def is_of_run(self) -> bool:
        """Whether it shares the commit of its record with others, which begin after it.

        Its rows commit with its place in the worker's row, under the session's own thread id.
        """
        return self.kind == GroupKind.NON_TRANSACTIONAL.value and bool(self.thread)

    @property
    def group(self) -> FailedGroup:
        """The group, if it stops the replica."""
        databases = tuple(filter(None, self.databases.split(",")))
        return FailedGroup(self.number, self.end, self.source_gtid, databases, self.kind)


class InDoubtTable:
    """Statements on slave_in_doubt for one channel in one schema."""

    def __init__(self, schema: str, channel: str) -> None:
        self._channel = channel
        self._table = ChannelTable(_TABLE, schema, channel)

    def definition(self) -> bytes:
        """Return the statement that creates the table if it does not exist."""
        return self._table.definition()

    def select(self) -> bytes:
        """Return the query for the groups in doubt, for `record`."""
        return self._table.select(condition=b" ORDER BY " + _NUMBER.quoted)

    def count(self, others: Collection[int] = ()) -> bytes:
        """Return the query for the number of in-doubt groups, not counting `others`."""
        counted = b" AND NOT" + _among(others) if others else b""
        return self._table.select(b"COUNT(*)", counted)

    def select_prepares_of_others(self) -> bytes:
        """Return the query for the channel and statement of other channels' prepares in doubt."""
        return b"SELECT %b,%b FROM %b WHERE %b AND `Kind`='xa_prepare'" % (
            CHANNEL.quoted, _STATEMENT.quoted, self._table.name, self._table.of_others,
        )  # fmt: skip

    def record(self, row: Row) -> InDoubt:
        """Parse a row of `select`."""
        stored = _TABLE.read(row)
        return InDoubt(
            stored[_NUMBER],
            stored[_WORKER],
            SOURCE_POSITION.read(stored),
            stored[_KIND],
            stored[_EVIDENCE],
            stored[_SOURCE_GTID],
            stored[_DATABASES],
            stored[_STATEMENT],
            stored[_TARGET_FILE],
            stored[_TARGET_OFFSET],
            stored[_THREAD],
            stored[_RESOLUTION],
        )

    def insert(self, record: InDoubt) -> bytes:
        """Return the statement that records a group before it is applied."""
        return self._table.insert(
            _NUMBER.of(record.number),
            _WORKER.of(record.worker_id),
            *SOURCE_POSITION.of(record.end),
            _KIND.of(record.kind),
            _EVIDENCE.of(record.evidence),
            _SOURCE_GTID.of(record.source_gtid),
            _DATABASES.of(record.databases),
            _STATEMENT.of(record.statement),
            _TARGET_FILE.of(record.target_file),
            _TARGET_OFFSET.of(record.target_offset),
            _THREAD.of(record.thread),
            _RESOLUTION.of(record.resolution),
        )

    def insert_all(self, records: Sequence[InDoubt]) -> bytes:
        """Return the statement that records groups before the first of them is applied."""
        first, *others = map(self.insert, records)
        return b",".join((first, *map(values_of, others)))

    def replace(self, record: InDoubt) -> list[bytes]:
        """Return the statements that record a group which may have a record already."""
        return [self.delete(record.number), self.insert(record)]

    def key(self, record: InDoubt) -> bytes:
        """Return what the row of a record begins with in a binlog: channel, number, worker."""
        channel = self._channel.encode()
        numbers = struct.pack("<QI", record.number, record.worker_id)
        return len(channel).to_bytes(2, "little") + channel + numbers

    def update_resolution(self, number: int, resolution: str) -> bytes:
        """Return the statement that records what a person has decided about an in-doubt group."""
        return self._table.update(_RESOLUTION.equals(resolution), _is(number))

    def delete(self, *numbers: int) -> bytes:
        """Return the statement that removes the records of settled groups, at least one."""
        return self._table.delete(b" AND" + _among(numbers))

    def delete_run(self, first: InDoubt) -> bytes:
        """Return the statement that removes a group of a run, and those that begin after it.

        They have not begun: without the first one's record, nothing would say so any more.
        """
        later = b" AND %b>=%d AND " % (_NUMBER.quoted, first.number)
        return self._table.delete(later + _WORKER.equals(first.worker_id))

    def delete_all(self) -> bytes:
        """Return the statement that removes all records of the channel."""
        return self._table.delete()


def values_of(insert: bytes) -> bytes:
    """Return the values of the statement that `InDoubtTable.insert` has returned, in brackets."""
    return insert.partition(b" VALUES ")[2]


def _among(numbers: Collection[int]) -> bytes:
    """Return the condition that a group is one of some."""
    return b" %b IN (%b)" % (_NUMBER.quoted, b",".join(b"%d" % number for number in numbers))


def _is(number: int) -> bytes:
    return b" AND " + _NUMBER.equals(number)

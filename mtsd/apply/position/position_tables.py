"""The tables that hold the position, on the target: slave_worker_info and its siblings.

Columns follow the server's own tables of the same names (WL#2775, WL#5599); docs/position-tables.md
says what mtsd adds and changes. Nothing here waits: this module builds statements and parses rows.
"""

import struct
from collections.abc import Collection
from dataclasses import dataclass

from mtsd.apply.position.failed_groups import FailedGroups
from mtsd.apply.position.last_stop_table import LastStopTable
from mtsd.apply.position.lock_names import TokenTable
from mtsd.apply.position.position_schema import (
    DESPITE_EXECUTED,
    PROVING,
    RULES_TABLE,
    TABLES,
    VERSION,
)
from mtsd.apply.position.prepared_table import PreparedTable
from mtsd.apply.position.split_table import SplitTable
from mtsd.apply.position.target_identity import IdentityTable
from mtsd.apply.position.worker_info import NAME_COLUMN, TABLE_OPTIONS, WorkerInfo, present
from mtsd.apply.session.family import MYSQL, TargetFamily
from mtsd.apply.sql import literals
from mtsd.model.errors import NeedsPersonError
from mtsd.model.gtid import GtidSet
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.outcome.failed_group import FailedGroup
from mtsd.model.outcome.reason import refuse
from mtsd.model.position import Position
from mtsd.model.temporary_tables import TemporaryTables
from mtsd.schedule.done.worker_row import WorkerRow
from mtsd.wire.connection import Row

SCHEMA_VERSION = 1
"""Increased when the meaning of a table changes, but not for an additional table or row."""
UNORDERED_VERSION = 2
"""The same tables, of a channel whose executed groups may lack earlier ones (eventual): a version
that does not know this would skip groups that have to be applied again."""
KNOWN_VERSIONS = frozenset({SCHEMA_VERSION, UNORDERED_VERSION})
SHOWN_VERSIONS = " and ".join(map(str, sorted(KNOWN_VERSIONS)))
IN_DOUBT_TABLE = b"slave_in_doubt\0"
"""As a binlog has the name."""
RECOVERY_ID = 0
"""The Id of the row that holds what a restart found proven by all rows."""


@dataclass(frozen=True, slots=True)
class ChannelRow:
    """The channel's row of slave_relay_log_info."""

    mark: LowWaterMark
    workers: int
    source_uuid: str
    daemon_uuid: str
    """Generated once: the UUID of the daemon's own GTIDs."""
    ordered: bool = True
    """Whether no executed group lacks an earlier one that it may depend on."""


@dataclass(frozen=True, slots=True)
class InDoubt:
    """A group that commits separately from its record, which is written before and removed after.

    `evidence` is the GTID that it runs under on the target, "" if the target has no GTIDs. Then
    `target_file` and `target_offset` are the end of the target's own binlog before it, and
    `thread` is the thread id of its statements there; "" and 0 if the target writes no binlog.
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
    def group(self) -> FailedGroup:
        """The group, if it stops the replica."""
        databases = tuple(filter(None, self.databases.split(",")))
        return FailedGroup(self.number, self.end, self.source_gtid, databases, self.kind)


class PositionTables:
    """Statements on the position tables for one channel in one schema."""

    def __init__(self, schema: str, channel: str) -> None:
        self.schema = schema
        self.channel = channel
        quoted = literals.name(schema)
        self.workers = WorkerInfo(schema, channel)
        self.failed = FailedGroups(schema, channel)
        self.prepared = PreparedTable(schema, channel)
        self.split = SplitTable(schema, channel)
        self.identity = IdentityTable(schema, channel)
        self.last_stop = LastStopTable(schema, channel)
        self._relay_log_info = quoted + b".`slave_relay_log_info`"
        self._in_doubt = quoted + b".`slave_in_doubt`"
        self._rules = quoted + b"." + literals.name(RULES_TABLE)
        self._despite = quoted + b"." + literals.name(DESPITE_EXECUTED)
        self._channel = literals.text(channel)
        self._of_channel = b" WHERE `Channel_name`=" + self._channel

    def definitions(self, family: TargetFamily = MYSQL) -> list[bytes]:
        """Return the statements that create the schema and its tables if they do not exist.

        `family` is the target's.
        """
        relay_log_info = f"""CREATE TABLE IF NOT EXISTS {self._relay_log_info.decode()} (
  `Channel_name` VARCHAR(64) NOT NULL PRIMARY KEY,
  `Master_log_name` {NAME_COLUMN} COMMENT 'of the low-water mark, as is the rest',
  `Master_log_pos` BIGINT UNSIGNED NOT NULL,
  `Group_number` BIGINT UNSIGNED NOT NULL,
  `Executed_gtid_set` LONGTEXT NULL,
  `Temporary_tables` LONGTEXT NOT NULL COMMENT 'open on the source; empty: not known',
  `Number_of_workers` INT UNSIGNED NOT NULL,
  `Source_uuid` CHAR(36) NOT NULL,
  `Daemon_uuid` CHAR(36) NOT NULL,
  `Schema_version` INT UNSIGNED NOT NULL,
  `Updated_at` TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6)
) {TABLE_OPTIONS}"""
        in_doubt = f"""CREATE TABLE IF NOT EXISTS {self._in_doubt.decode()} (
  `Channel_name` VARCHAR(64) NOT NULL,
  `Group_number` BIGINT UNSIGNED NOT NULL,
  `Id` INT UNSIGNED NOT NULL,
  `Master_log_name` {NAME_COLUMN},
  `Master_log_pos` BIGINT UNSIGNED NOT NULL,
  `Kind` VARCHAR(32) NOT NULL,
  `Evidence_gtid` VARCHAR(128) NOT NULL,
  `Source_gtid` VARCHAR(128) NOT NULL,
  `Databases` TEXT NOT NULL,
  `Statement` LONGBLOB NOT NULL,
  `Target_log_name` {NAME_COLUMN},
  `Target_log_pos` BIGINT UNSIGNED NOT NULL,
  `Target_thread` INT UNSIGNED NOT NULL,
  `Resolution` VARCHAR(16) NOT NULL DEFAULT '' COMMENT 'of mtsd resolve',
  `Created_at` TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  PRIMARY KEY (`Channel_name`, `Group_number`)
) {TABLE_OPTIONS}"""
        rules = f"""CREATE TABLE IF NOT EXISTS {self._rules.decode()} (
  `Channel_name` VARCHAR(64) NOT NULL PRIMARY KEY,
  `Rules` LONGTEXT NOT NULL COMMENT 'the section [filter], as JSON'
) {TABLE_OPTIONS}"""
        despite = f"""CREATE TABLE IF NOT EXISTS {self._despite.decode()} (
  `Channel_name` VARCHAR(64) NOT NULL PRIMARY KEY,
  `Gtids` LONGTEXT NOT NULL,
  `Said_at` TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)
) {TABLE_OPTIONS}"""
        database = b"CREATE DATABASE IF NOT EXISTS " + literals.name(self.schema)
        return [
            database,
            self.workers.definition(family),
            relay_log_info.encode(),
            in_doubt.encode(),
            *self.failed.definitions(),
            rules.encode(),
            self.prepared.definition(),
            self.split.definition(),
            despite.encode(),
            self.identity.definition(),
            self.last_stop.definition(),
            TokenTable(self.schema).definition(),
        ]

    def select_tables(self) -> bytes:
        """Return the query for the existing tables: name and engine of each."""
        return (
            b"SELECT table_name, engine FROM information_schema.tables WHERE table_schema=%b"
            b" AND table_name IN (%b)"
            % (literals.text(self.schema), b",".join(literals.text(name) for name in TABLES))
        )

    def select_any(self, table: str) -> bytes:
        """Return a query that returns one row if a table of `select_tables` has any."""
        return b"SELECT 1 FROM %b.%b LIMIT 1" % (literals.name(self.schema), literals.name(table))

    def select_channel(self) -> bytes:
        """Return the query for the channel's row, for `channel_row`."""
        return (
            b"SELECT `Master_log_name`,`Master_log_pos`,`Group_number`,`Executed_gtid_set`,"
            b"`Temporary_tables`,`Number_of_workers`,`Source_uuid`,`Daemon_uuid`,`Schema_version`"
            b" FROM " + self._relay_log_info + self._of_channel
        )

    def select_remains(self, existing: Collection[str] = TABLES) -> bytes:
        """Return the query for whether the channel has rows that prove something: 1, or 0.

        Without counting its row in slave_relay_log_info; `existing` are the tables that exist.
        """
        found = [
            b"EXISTS (SELECT 1 FROM %b.%b%b)"
            % (literals.name(self.schema), literals.name(table), self._of_channel)
            for table in PROVING
            if table in existing
        ]
        return b"SELECT " + b" OR ".join(found)

    def select_sources(self, *, rules: bool = True) -> bytes:
        """Return the query for all channels: name, UUID of the source, and filter rules of each.

        Without `rules`, the table of the rules does not exist yet; then they are "".
        """
        found = b"COALESCE(`Rules`,'')" if rules else b"''"
        joined = b" LEFT JOIN " + self._rules + b" USING (`Channel_name`)" if rules else b""
        return b"SELECT `Channel_name`,`Source_uuid`,%b FROM %b%b" % (
            found,
            self._relay_log_info,
            joined,
        )

    def replace_rules(self, rules: str) -> bytes:
        """Return the statement that records the channel's filter rules."""
        return b"REPLACE INTO %b VALUES (%b,%b)" % (
            self._rules, self._channel, literals.text(rules)
        )  # fmt: skip

    def select_despite_executed(self) -> bytes:
        """Return the query for the GTIDs of `replace_despite_executed`: no row, or one text."""
        return b"SELECT `Gtids` FROM " + self._despite + self._of_channel

    def replace_despite_executed(self, gtids: GtidSet) -> bytes:
        """Return the statement that records what is applied although the target has executed it."""
        return b"REPLACE INTO %b (`Channel_name`,`Gtids`) VALUES (%b,%b)" % (
            self._despite, self._channel, literals.text(str(gtids))
        )  # fmt: skip

    def channel_row(self, row: Row) -> ChannelRow:
        """Parse a row of `select_channel`. Raises NeedsPersonError on another schema version."""
        file, offset, number, gtids, temporary, workers, source_uuid, daemon_uuid, version = row
        if version not in KNOWN_VERSIONS:
            refused = refuse(VERSION, schema=self.schema, version=version, known=SHOWN_VERSIONS)
            raise NeedsPersonError(str(refused))
        mark = LowWaterMark(
            literals.number(number),
            Position(str(file), literals.number(offset)),
            None if gtids is None else GtidSet.parse(str(gtids)),
            TemporaryTables.parse(str(temporary)),
        )
        ordered = version != UNORDERED_VERSION
        return ChannelRow(
            mark, literals.number(workers), str(source_uuid), str(daemon_uuid), ordered
        )

    def insert_channel(self, row: ChannelRow) -> bytes:
        """Return the statement that creates the channel's row."""
        return literals.insert(
            self._relay_log_info,
            [
                (b"`Channel_name`", self._channel),
                *self._mark(row.mark),
                (b"`Number_of_workers`", b"%d" % row.workers),
                (b"`Source_uuid`", literals.text(row.source_uuid)),
                (b"`Daemon_uuid`", literals.text(row.daemon_uuid)),
                (b"`Schema_version`", b"%d" % SCHEMA_VERSION),
            ],
        )

    def update_mark(self, mark: LowWaterMark) -> bytes:
        """Return the statement of a checkpoint, before `present`; it never moves the mark back."""
        columns = literals.assignments(self._mark(mark))
        return b"UPDATE %b SET %b%b AND `Group_number`<=%d" % (
            self._relay_log_info,
            columns,
            self._of_channel,
            mark.number,
        )

    def present(self) -> bytes:
        """Return the statement that fails with error ROW_GONE if the channel has no row."""
        return present(self._relay_log_info + self._of_channel)

    def update_workers(self, workers: int) -> bytes:
        """Return the statement that records the number of workers before they begin."""
        return b"UPDATE %b SET `Number_of_workers`=%d%b" % (
            self._relay_log_info,
            workers,
            self._of_channel,
        )

    def update_daemon(self, daemon_uuid: str) -> bytes:
        """Return the statement by which the channel becomes another replica's."""
        return b"UPDATE %b SET `Daemon_uuid`=%b%b" % (
            self._relay_log_info,
            literals.text(daemon_uuid),
            self._of_channel,
        )

    def update_ordered(self, *, ordered: bool) -> bytes:
        """Return the statement that records whether no executed group lacks an earlier one."""
        return b"UPDATE %b SET `Schema_version`=%d%b" % (
            self._relay_log_info,
            SCHEMA_VERSION if ordered else UNORDERED_VERSION,
            self._of_channel,
        )

    def _mark(self, mark: LowWaterMark) -> list[tuple[bytes, bytes]]:
        file, offset = literals.place(mark.position)
        return [
            (b"`Master_log_name`", file),
            (b"`Master_log_pos`", offset),
            (b"`Group_number`", b"%d" % mark.number),
            (
                b"`Executed_gtid_set`",
                literals.nullable(None if mark.gtids is None else str(mark.gtids)),
            ),
            (b"`Temporary_tables`", literals.text(mark.temporary.text())),
        ]

    def select_in_doubt(self) -> bytes:
        """Return the query for the in-doubt groups, for `in_doubt`."""
        return (
            b"SELECT `Group_number`,`Id`,`Master_log_name`,`Master_log_pos`,`Kind`,"
            b"`Evidence_gtid`,`Source_gtid`,`Databases`,`Statement`,`Target_log_name`,"
            b"`Target_log_pos`,`Target_thread`,`Resolution` FROM %b%b ORDER BY `Group_number`"
            % (self._in_doubt, self._of_channel)
        )

    def count_in_doubt(self) -> bytes:
        """Return the query for the number of in-doubt groups."""
        return b"SELECT COUNT(*) FROM %b%b" % (self._in_doubt, self._of_channel)

    def select_prepares_of_others(self) -> bytes:
        """Return the query for the channel and statement of other channels' prepares in doubt."""
        return (
            b"SELECT `Channel_name`,`Statement` FROM %b WHERE `Channel_name`<>%b"
            b" AND `Kind`='xa_prepare'" % (self._in_doubt, self._channel)
        )

    def in_doubt(self, row: Row) -> InDoubt:
        """Parse a row of `select_in_doubt`."""
        (
            number, id_, file, offset, kind, evidence, gtid, databases, statement, log, log_pos,
            thread, resolution,
        ) = row  # fmt: skip
        return InDoubt(
            literals.number(number),
            literals.number(id_),
            Position(str(file), literals.number(offset)),
            str(kind),
            str(evidence),
            str(gtid),
            str(databases),
            statement if isinstance(statement, bytes) else str(statement).encode(),
            str(log),
            literals.number(log_pos),
            literals.number(thread),
            str(resolution),
        )

    def insert_in_doubt(self, record: InDoubt) -> bytes:
        """Return the statement that records a group before it is applied."""
        file, offset = literals.place(record.end)
        return literals.insert(
            self._in_doubt,
            [
                (b"`Channel_name`", self._channel),
                (b"`Group_number`", b"%d" % record.number),
                (b"`Id`", b"%d" % record.worker_id),
                (b"`Master_log_name`", file),
                (b"`Master_log_pos`", offset),
                (b"`Kind`", literals.text(record.kind)),
                (b"`Evidence_gtid`", literals.text(record.evidence)),
                (b"`Source_gtid`", literals.text(record.source_gtid)),
                (b"`Databases`", literals.text(record.databases)),
                (b"`Statement`", literals.blob(record.statement)),
                (b"`Target_log_name`", literals.text(record.target_file)),
                (b"`Target_log_pos`", b"%d" % record.target_offset),
                (b"`Target_thread`", b"%d" % record.thread),
                (b"`Resolution`", literals.text(record.resolution)),
            ],
        )

    def in_doubt_key(self, record: InDoubt) -> bytes:
        """Return what the row of a record begins with in a binlog: channel, number, worker."""
        channel = self.channel.encode()
        numbers = struct.pack("<QI", record.number, record.worker_id)
        return len(channel).to_bytes(2, "little") + channel + numbers

    def update_resolution(self, number: int, resolution: str) -> bytes:
        """Return the statement that records what a person has decided about an in-doubt group."""
        return b"UPDATE %b SET `Resolution`=%b%b AND `Group_number`=%d" % (
            self._in_doubt,
            literals.text(resolution),
            self._of_channel,
            number,
        )

    def forget(self) -> list[bytes]:
        """Return the statements that remove everything known about the channel."""
        return [
            *self._forget_position(),
            self.failed.delete_skipped(),
            b"DELETE FROM " + self._rules + self._of_channel,
            self.prepared.delete_all(),
            self.identity.delete(),
            self.last_stop.delete(),
        ]

    def begin_anew(self, row: ChannelRow) -> list[bytes]:
        """Return the statements after which `row` is all that is known of the channel's position.

        The record of skipped groups stays: numbering continues, so no number means another group.
        So does that of prepared transactions: another place, or another source, has the same xids.
        """
        return [*self._forget_position(), self.insert_channel(row)]

    def _forget_position(self) -> list[bytes]:
        tables = (self.workers.name, self._in_doubt, self._relay_log_info, self._despite)
        return [
            *(b"DELETE FROM " + table + self._of_channel for table in tables),
            self.failed.delete_stopped(),
            self.split.delete_all(),
        ]

    def settled(self, row: WorkerRow, number: int) -> list[bytes]:
        """Return the statements that record an in-doubt group as applied."""
        return [*self.advanced(row), self.delete_in_doubt(number)]

    def advanced(self, row: WorkerRow) -> list[bytes]:
        """Return the statements that a transaction ends with which may have deleted the row."""
        return [self.workers.update(row), self.workers.present(row)]

    def delete_in_doubt(self, number: int) -> bytes:
        """Return the statement that removes a settled group's record."""
        return b"DELETE FROM %b%b AND `Group_number`=%d" % (
            self._in_doubt,
            self._of_channel,
            number,
        )

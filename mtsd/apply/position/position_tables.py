"""The tables that hold the position, on the target: slave_worker_info and its siblings.

Columns follow the server's own tables of the same names (WL#2775, WL#5599); docs/position-tables.md
says what mtsd adds and changes. Nothing here waits: this module builds statements and parses rows.
"""

from collections.abc import Collection
from dataclasses import dataclass

from mtsd.apply.position.despite_table import DespiteTable
from mtsd.apply.position.failed_groups import FailedGroups
from mtsd.apply.position.handed_over_table import HandedOverTable
from mtsd.apply.position.in_doubt_table import InDoubtTable
from mtsd.apply.position.last_stop_table import LastStopTable
from mtsd.apply.position.lock_names import TokenTable
from mtsd.apply.position.mark_table import (
    DAEMON,
    MARKS,
    NUMBER,
    SCHEMA,
    SOURCE,
    WORKERS,
    mark_in,
    mark_values,
)
from mtsd.apply.position.policy_table import PolicyTable
from mtsd.apply.position.position_schema import (
    COLUMNS_OF,
    PROVING,
    RULES_TABLE,
    TABLES,
    VERSION,
)
from mtsd.apply.position.prepared_table import PreparedTable
from mtsd.apply.position.split_table import SplitTable
from mtsd.apply.position.table_declaration import (
    CHANNEL,
    ONE_A_CHANNEL,
    ChannelTable,
    Table,
    text,
)
from mtsd.apply.position.target_identity import IdentityTable
from mtsd.apply.position.worker_info import WorkerInfo, present
from mtsd.apply.session.family import MYSQL, TargetFamily
from mtsd.apply.sql import literals
from mtsd.model.errors import NeedsPersonError
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.outcome.reason import refuse
from mtsd.schedule.done.worker_row import WorkerRow
from mtsd.wire.exchange import Row

SCHEMA_VERSION = 1
"""Increased when the meaning of a table changes, but not for an additional table or row."""
UNORDERED_VERSION = 2
"""The same tables, of a channel whose executed groups may lack earlier ones (eventual): a version
that does not know this would skip groups that have to be applied again."""
KNOWN_VERSIONS = frozenset({SCHEMA_VERSION, UNORDERED_VERSION})
SHOWN_VERSIONS = " and ".join(map(str, sorted(KNOWN_VERSIONS)))
RECOVERY_ID = 0
"""The Id of the row that holds what a restart found proven by all rows."""


_RULES_TEXT = text("Rules", "LONGTEXT NOT NULL COMMENT 'the section [filter], as JSON'")
_RULES = Table(RULES_TABLE, (ONE_A_CHANNEL, _RULES_TEXT))


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


class PositionTables:
    """Statements on the position tables for one channel in one schema."""

    def __init__(self, schema: str, channel: str) -> None:
        self.schema = schema
        self.channel = channel
        self.workers = WorkerInfo(schema, channel)
        self.failed = FailedGroups(schema, channel)
        self.prepared = PreparedTable(schema, channel)
        self.split = SplitTable(schema, channel)
        self.doubts = InDoubtTable(schema, channel)
        self.identity = IdentityTable(schema, channel)
        self.last_stop = LastStopTable(schema, channel)
        self.policy = PolicyTable(schema, channel)
        self.handed_over = HandedOverTable(schema, channel)
        self._relay_log_info = ChannelTable(MARKS, schema, channel)
        self._rules = ChannelTable(_RULES, schema, channel)
        self.despite = DespiteTable(schema, channel)

    def definitions(self, family: TargetFamily = MYSQL) -> list[bytes]:
        """Return the statements that create the schema and its tables if they do not exist.

        `family` is the target's.
        """
        return [
            b"CREATE DATABASE IF NOT EXISTS " + literals.name(self.schema),
            self.workers.definition(family),
            self._relay_log_info.definition(),
            self.doubts.definition(),
            *self.failed.definitions(),
            self._rules.definition(),
            self.prepared.definition(),
            self.split.definition(),
            self.despite.definition(),
            self.identity.definition(),
            self.last_stop.definition(),
            self.policy.definition(),
            self.handed_over.definition(),
            TokenTable(self.schema).definition(),
        ]

    def select_tables(self) -> bytes:
        """Return the query for the existing tables: name and engine of each."""
        return (
            b"SELECT table_name, engine FROM information_schema.tables WHERE table_schema=%b"
            b" AND table_name IN (%b)"
            % (literals.text(self.schema), b",".join(literals.text(name) for name in TABLES))
        )

    def select_columns(self) -> bytes:
        """Return the query for table and name of each column of COLUMNS_OF, in order."""
        return (
            b"SELECT table_name, column_name FROM information_schema.columns WHERE table_schema=%b"
            b" AND table_name IN (%b) ORDER BY ordinal_position"
            % (literals.text(self.schema), b",".join(map(literals.text, COLUMNS_OF)))
        )

    def select_any(self, table: str) -> bytes:
        """Return a query that returns one row if a table of `select_tables` has any."""
        return b"SELECT 1 FROM %b.%b LIMIT 1" % (literals.name(self.schema), literals.name(table))

    def select_channel(self) -> bytes:
        """Return the query for the channel's row, for `channel_row`."""
        return self._relay_log_info.select()

    def select_remains(self, existing: Collection[str] = TABLES) -> bytes:
        """Return the query for whether the channel has rows that prove something: 1, or 0.

        Without counting its row in slave_relay_log_info; `existing` are the tables that exist.
        """
        parts = [
            b"EXISTS (SELECT 1 FROM %b.%b%b)"
            % (literals.name(self.schema), literals.name(table), self._relay_log_info.of_channel)
            for table in PROVING
            if table in existing
        ]
        return b"SELECT " + b" OR ".join(parts)

    def select_sources(self, *, rules: bool = True) -> bytes:
        """Return the query for all channels: name, UUID of the source, and filter rules of each.

        Without `rules`, the table of the rules does not exist yet; then they are "".
        """
        filters, joined = b"''", b""
        if rules:
            filters = b"COALESCE(%b,'')" % _RULES_TEXT.quoted
            joined = b" LEFT JOIN %b USING (%b)" % (self._rules.name, CHANNEL.quoted)
        return b"SELECT %b,%b,%b FROM %b%b" % (
            CHANNEL.quoted, SOURCE.quoted, filters, self._relay_log_info.name, joined,
        )  # fmt: skip

    def replace_rules(self, rules: str) -> bytes:
        """Return the statement that records the channel's filter rules."""
        return self._rules.replace(_RULES_TEXT.of(rules))

    def channel_row(self, row: Row) -> ChannelRow:
        """Parse a row of `select_channel`.

        Raises NeedsPersonError on another schema version, and for what mtsd did not write.
        """
        stored = MARKS.read(row)
        version = stored[SCHEMA]
        if version not in KNOWN_VERSIONS:
            refused = refuse(VERSION, schema=self.schema, version=version, known=SHOWN_VERSIONS)
            raise NeedsPersonError(str(refused))
        mark = mark_in(self._relay_log_info, stored)
        ordered = version != UNORDERED_VERSION
        return ChannelRow(mark, stored[WORKERS], stored[SOURCE], stored[DAEMON], ordered)

    def insert_channel(self, row: ChannelRow) -> bytes:
        """Return the statement that creates the channel's row."""
        return self._relay_log_info.insert(
            *mark_values(row.mark),
            WORKERS.of(row.workers),
            SOURCE.of(row.source_uuid),
            DAEMON.of(row.daemon_uuid),
            SCHEMA.of(SCHEMA_VERSION),
        )

    def update_mark(self, mark: LowWaterMark) -> bytes:
        """Return the statement of a checkpoint, before `present`; it never moves the mark back."""
        return self._relay_log_info.update(
            literals.assignments(mark_values(mark)), b" AND %b<=%d" % (NUMBER.quoted, mark.number)
        )

    def present(self) -> bytes:
        """Return the statement that fails with error ROW_GONE if the channel has no row."""
        return present(self._relay_log_info.name + self._relay_log_info.of_channel)

    def update_workers(self, workers: int) -> bytes:
        """Return the statement that records the number of workers before they begin."""
        return self._relay_log_info.update(WORKERS.equals(workers))

    def update_daemon(self, daemon_uuid: str) -> bytes:
        """Return the statement by which the channel becomes another replica's."""
        return self._relay_log_info.update(DAEMON.equals(daemon_uuid))

    def update_ordered(self, *, ordered: bool) -> bytes:
        """Return the statement that records whether no executed group lacks an earlier one."""
        version = SCHEMA_VERSION if ordered else UNORDERED_VERSION
        return self._relay_log_info.update(SCHEMA.equals(version))

    def forget(self) -> list[bytes]:
        """Return the statements that remove everything known about the channel."""
        return [
            *self._forget_position(),
            self.failed.delete_skipped(),
            self._rules.delete(),
            self.prepared.delete(),
            self.identity.delete(),
        ]

    def begin_anew(self, row: ChannelRow) -> list[bytes]:
        """Return the statements after which `row` is all that is known of the channel's position.

        The record of skipped groups stays: numbering continues, so no number means another group.
        So does that of prepared transactions: another place, or another source, has the same xids.
        """
        return [*self._forget_position(), self.insert_channel(row)]

    def _forget_position(self) -> list[bytes]:
        return [
            self.workers.delete_all(),
            self.doubts.delete_all(),
            self._relay_log_info.delete(),
            self.despite.delete(),
            self.failed.delete_stopped(),
            self.split.delete(),
            self.policy.delete(),
            self.handed_over.delete(),
            # The error that ended a daemon is about the position that it had.
            self.last_stop.delete(),
        ]

    def settled(self, row: WorkerRow, number: int) -> list[bytes]:
        """Return the statements that record an in-doubt group as applied."""
        return [*self.advanced(row), self.doubts.delete(number)]

    def advanced(self, row: WorkerRow) -> list[bytes]:
        """Return the statements that a transaction ends with which may have deleted the row."""
        return [self.workers.update(row), self.workers.present(row)]

"""Reads what the position schema holds, as facts of the target's check."""

from mtsd.apply.position.failed_groups import SkippedGroup, StoppedGroup
from mtsd.apply.position.handed_over_table import HANDED_OVER, HandedOver
from mtsd.apply.position.lock_names import CHANNEL, read_locks
from mtsd.apply.position.policy_table import CHOSEN_POLICY
from mtsd.apply.position.position_schema import (
    COLUMNS_OF,
    DESPITE_EXECUTED,
    FIRST_TABLES,
    IDENTITY,
    OF_FAILED_GROUPS,
    PREPARED,
    RULES_TABLE,
)
from mtsd.apply.position.position_tables import KNOWN_VERSIONS, PositionTables
from mtsd.apply.position.prepared_table import PreparedRow
from mtsd.apply.position.target_identity import TargetIdentity
from mtsd.apply.position.unreadable import UnreadableError
from mtsd.apply.sql import literals
from mtsd.model.errors import ServerError
from mtsd.model.gtid import GtidSet
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.outcome.reason import Refused
from mtsd.model.position import NOWHERE
from mtsd.operations.check.facts import (
    ChannelFacts,
    PositionFacts,
)
from mtsd.replica.guards.handed_over import read_fence
from mtsd.replica.guards.one_channel import Channel, read_channels
from mtsd.replica.recovery.recovery import ExistingTables, read_failed, read_tables, read_workers
from mtsd.replica.run.policy_choice import read_chosen
from mtsd.replica.run.position_home import read_home
from mtsd.schedule.done.executed_groups import recovered
from mtsd.schedule.done.repair import is_passed
from mtsd.schedule.policies.automatic import ChosenPolicy
from mtsd.wire.connection import Connection

_NOWHERE = LowWaterMark(0, NOWHERE, None)


async def read_position(connection: Connection, tables: PositionTables) -> PositionFacts:
    """Query the position schema, as far as the user may read it. Raises ConnectionLostError."""
    daemon: object = None
    existing = ExistingTables({}, {}, filled=False)
    channel: ChannelFacts | None = None
    channels: list[Channel] = []
    refused = ""
    prepared: tuple[PreparedRow, ...] = ()
    remains = False
    despite = GtidSet()
    chosen: ChosenPolicy | None = None
    home: TargetIdentity | None = None
    handed_over: HandedOver | None = None
    unreadable: Refused | None = None
    try:
        existing = await read_tables(connection, tables)
        if existing.engines.keys() >= set(FIRST_TABLES):
            try:
                channel = await _channel(connection, tables, existing)
            except UnreadableError as error:
                unreadable = error.refused
            if channel is None and unreadable is None:
                rows = await connection.query(tables.select_remains(existing.engines))
                remains = bool(rows[0][0])
            channels = await read_channels(
                connection, tables, rules=RULES_TABLE in existing.engines
            )
        if PREPARED in existing.engines:
            rows = await connection.query(tables.prepared.select_of_all())
            prepared = tuple(map(tables.prepared.row, rows))
        if DESPITE_EXECUTED in existing.engines:
            despite = tables.despite.gtids(await connection.query(tables.despite.select()))
        locks = await read_locks(connection, tables.schema, tables.channel)
        if locks is not None:
            lock = locks.session(CHANNEL).encode()
            ((daemon,),) = await connection.query(b"SELECT IS_USED_LOCK('%b')" % lock)
        if CHOSEN_POLICY in existing.engines:
            chosen = await read_chosen(connection, tables)
        if IDENTITY in existing.engines:
            home = await read_home(connection, tables)
        if HANDED_OVER in existing.engines:
            handed_over = await read_fence(connection, tables)
    except ServerError as error:
        refused = error.text
    return PositionFacts(
        existing.engines,
        existing.columns,
        existing.filled,
        tuple(channels),
        channel,
        refused,
        None if daemon is None else literals.number(daemon),
        prepared,
        home,
        remains,
        despite,
        chosen,
        handed_over,
        unreadable,
    )


async def _channel(
    connection: Connection, tables: PositionTables, found_tables: ExistingTables
) -> ChannelFacts | None:
    name = literals.name(tables.schema) + b".`slave_relay_log_info`"
    found = await connection.query(
        b"SELECT `Schema_version`, TIMESTAMPDIFF(SECOND, `Updated_at`, NOW(6)) FROM %b"
        b" WHERE `Channel_name` = %b" % (name, literals.text(tables.channel))
    )
    if not found:
        return None
    version, age = literals.number(found[0][0]), float(str(found[0][1]))
    known = {table: tuple(names) for table, names in found_tables.columns.items()} == COLUMNS_OF
    if version not in KNOWN_VERSIONS or not known:
        return ChannelFacts(version, _NOWHERE, (), "", "", age, ())
    # A daemon that runs writes the mark first: read after it, its workers would be ahead of it.
    workers = await read_workers(connection, tables)
    rows = await connection.query(tables.select_channel())
    doubts = await connection.query(tables.doubts.select())
    stopped: StoppedGroup | None = None
    skipped: tuple[SkippedGroup, ...] = ()
    if found_tables.engines.keys() >= set(OF_FAILED_GROUPS):
        stopped, skipped = await read_failed(connection, tables)
    row = tables.channel_row(rows[0])
    by_hand = frozenset(each.group.number for each in skipped)
    executed = recovered(row.mark.number, (worker.executed for worker in workers))
    if stopped is not None and is_passed(
        stopped.group.number, row.mark.number, executed, by_hand, ordered=row.ordered
    ):
        stopped = None
    return ChannelFacts(
        version,
        row.mark,
        tuple(workers),
        row.source_uuid.lower(),
        row.daemon_uuid.lower(),
        age,
        tuple(tables.doubts.record(doubt) for doubt in doubts),
        by_hand,
        stopped,
        row.workers,
    )

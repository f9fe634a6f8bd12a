"""Reads the facts of a server: queries only, nothing is locked, written or registered."""

import asyncio
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from time import time
from typing import TypeVar

from mtsd.apply.position.failed_groups import SkippedGroup, StoppedGroup
from mtsd.apply.position.lock_names import CHANNEL, read_locks
from mtsd.apply.position.other_schemas import positions_elsewhere
from mtsd.apply.position.position_schema import (
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
from mtsd.apply.position.worker_info import COLUMNS as WORKER_COLUMNS
from mtsd.apply.session.binlog_allowed import allows_binlog
from mtsd.apply.session.family import TARGETS
from mtsd.apply.session.pinning import pin
from mtsd.apply.session.session_state import pinned
from mtsd.apply.session.xa import prepared_xids
from mtsd.apply.sql import literals
from mtsd.apply.tables.key_definitions import read_key_definitions
from mtsd.apply.tables.misread_tables import GENERATED
from mtsd.apply.tables.table_columns import COLUMNS, TableColumn, table_column
from mtsd.apply.tables.table_keys import why_whole
from mtsd.config.start import FilePosition, Start
from mtsd.model.error_numbers import ER, NOT_ALLOWED
from mtsd.model.errors import NeedsPersonError, ServerError
from mtsd.model.gtid import GtidSet
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.position import FIRST_EVENT, NOWHERE, Position
from mtsd.model.server import Flavour, ServerVersion, Version
from mtsd.model.xa_xid import XaXid
from mtsd.operations.check.facts import (
    ChannelFacts,
    PositionFacts,
    ServerFacts,
    SourceFacts,
    TableFacts,
    TargetFacts,
)
from mtsd.operations.check.in_doubt import read_in_logs
from mtsd.replica.guards.circles import read_feeding
from mtsd.replica.guards.one_channel import Channel, read_channels
from mtsd.replica.recovery.recovery import FoundTables, read_failed, read_tables, read_workers
from mtsd.replica.run.position_home import read_home
from mtsd.schedule.done.executed_groups import recovered
from mtsd.schedule.done.repair import is_passed
from mtsd.source.place import starts_inside_group
from mtsd.source.read_state import end_without_files, gtids_at, gtids_before, read_gtids
from mtsd.wire.binlog_status import binlog_status
from mtsd.wire.connection import Connection
from mtsd.wire.family import SERVERS
from mtsd.wire.neutral_session import make_neutral
from mtsd.wire.replica_status import ReplicaStatus, own_channels, registered_replicas

T = TypeVar("T")

"""Errors of missing privileges, which have their own lines."""
_LONGEST_READ_S = 20.0
"""Less than the whole look at the source may take."""
_CASCADES = "('CASCADE' IN (delete_rule, update_rule) OR 'SET NULL' IN (delete_rule, update_rule))"
_OLDEST_WITH_ROLES_LISTED = (8, 0, 19)
_TABLES = "table_type IN ('BASE TABLE', 'SYSTEM VERSIONED')"
_NOWHERE = LowWaterMark(0, NOWHERE, None)


async def read_source(
    connection: Connection, version: ServerVersion, position_schema: str, start: Start | None
) -> SourceFacts:
    """Query the source, also about the place `start`. Raises ServerError, ConnectionLostError."""
    server = await _server(connection, version, position_schema)
    files: tuple[tuple[str, int], ...] = ()
    files_refused = ""
    try:
        rows = await connection.query("SHOW BINARY LOGS") if server.on("log_bin") else []
        files = tuple((str(row[0]), literals.number(row[1])) for row in rows)
    except ServerError as error:
        files_refused = error.text
    status = await _allowed(connection.query(binlog_status(version.mysql)))
    filters = tuple(
        f"{name} = {value!s}"
        for row in status
        for name, value in (("binlog_do_db", row[2]), ("binlog_ignore_db", row[3]))
        if value
    )
    has_domains = SERVERS[version.flavour].has_domains
    end = None
    in_engine = bool(server.variables.get("binlog_storage_engine"))
    if in_engine:
        files = ()
        end = await end_without_files(connection)
    elif status:
        file, offset, _, _, *gtids = status[0]
        position = Position(str(file), literals.number(offset))
        known = GtidSet.parse(str(gtids[0])) if server.on("gtid_mode") else None
        if has_domains:
            known = await gtids_at(connection, position)
        end = LowWaterMark(0, position, known)
    purged = GtidSet()
    if has_domains and files:
        purged = await gtids_at(connection, Position(files[0][0], FIRST_EVENT)) or purged
    inside = await _starts_inside_group(connection, start, files)
    before = None
    if not inside and (server.on("gtid_mode") or has_domains):
        before = await _before(connection, version.flavour, start, files)
    replicas = await _allowed(registered_replicas(connection, version.mysql))
    feeding, hidden = await read_feeding(connection)
    return SourceFacts(
        server,
        files,
        files_refused,
        end,
        await _tables_in(connection, position_schema),
        filters,
        tuple((replica.server_id, replica.uuid) for replica in replicas),
        purged,
        await _prepared(connection),
        inside,
        before,
        tuple(feeding),
        tuple(hidden),
    )


async def _starts_inside_group(
    connection: Connection, start: Start | None, files: Iterable[tuple[str, int]]
) -> bool:
    try:
        return await starts_inside_group(connection.endpoint, start, dict(files))
    except ServerError as error:
        if error.number not in NOT_ALLOWED:
            raise
        return False


async def _before(
    connection: Connection, flavour: Flavour, start: Start | None, files: Iterable[tuple[str, int]]
) -> GtidSet | None:
    if not isinstance(start, FilePosition) or start.pos > dict(files).get(start.file, 0):
        return None
    try:
        async with asyncio.timeout(_LONGEST_READ_S):
            return await gtids_before(connection, flavour, Position(start.file, start.pos))
    except (TimeoutError, NeedsPersonError):
        return None
    except ServerError as error:
        if error.number not in NOT_ALLOWED:
            raise
        return None


async def read_target(
    connection: Connection, version: ServerVersion, tables: PositionTables, *, binary_log: bool
) -> TargetFacts:
    """Query the target; at the end, try out what a session of mtsd needs, on this one.

    `binary_log` is that of its settings. Raises ServerError, ConnectionLostError.
    """
    server = await _server(connection, version, tables.schema)
    position = await _position(connection, tables)
    files: tuple[str, ...] | None = None
    if position.channel is not None and any(
        doubt.target_file for doubt in position.channel.in_doubt
    ):
        rows = await _allowed(connection.query("SHOW BINARY LOGS"))
        files = tuple(str(row[0]) for row in rows) or None
    in_logs = await read_in_logs(connection, tables, server, position, files)
    prepared = await _prepared(connection)
    known = await read_key_definitions(connection, version.flavour, fold_case=False)
    whole = {
        ".".join(name): why
        for name, found in sorted(known.tables.items())
        if name[0] != tables.schema and (why := why_whole(found))
    }
    allowed = await allows_binlog(connection)
    reaching = await _reaching(connection, tables.schema)
    elsewhere = await positions_elsewhere(connection, tables.schema)
    session = await pin(connection, pinned(version), binary_log=binary_log)
    return TargetFacts(
        server, position, files, in_logs, prepared, allowed, whole, reaching, elsewhere, session
    )


async def _prepared(connection: Connection) -> frozenset[XaXid] | None:
    try:
        return await prepared_xids(connection)
    except ServerError as error:
        if error.number != ER.XAER_RMERR:
            raise
        return None


async def _server(
    connection: Connection, version: ServerVersion, position_schema: str
) -> ServerFacts:
    await make_neutral(connection)
    before = time()
    ((now, account),) = await connection.query("SELECT UNIX_TIMESTAMP(NOW(6)), CURRENT_USER()")
    offset = float(str(now)) - (before + time()) / 2
    variables = {
        str(name).lower(): str(value)
        for name, value in await connection.query("SHOW GLOBAL VARIABLES")
    }
    if "gtid_executed" in variables:
        # SHOW VARIABLES truncates a long value.
        executed, purged = await read_gtids(connection)
        variables |= {"gtid_executed": str(executed), "gtid_purged": str(purged)}
    status = {
        str(name).lower(): str(value)
        for name, value in await connection.query(
            "SHOW STATUS WHERE Variable_name IN ('Ssl_version', 'Ssl_cipher', 'Threads_connected')"
        )
    }
    user, _, host = str(account).rpartition("@")
    triggers = await _triggers(connection, position_schema)
    channels, channels_refused = await _own_channels(connection, version)
    zones = "SELECT CONVERT_TZ('2020-06-01 00:00:00', 'Europe/Berlin', '+00:00') IS NOT NULL"
    return ServerFacts(
        version_text=connection.server_version,
        version=version.number,
        tls_version=status.get("ssl_version", ""),
        tls_cipher=status.get("ssl_cipher", ""),
        account=f"'{user}'@'{host}'",
        variables=variables,
        grants=tuple(str(row[0]) for row in await connection.query("SHOW GRANTS")),
        roles=await _inactive_roles(connection, version.mysql),
        tables=await _tables(connection, position_schema),
        foreign_keys_across=await _foreign_keys(
            connection, position_schema, "constraint_schema <> unique_constraint_schema"
        ),
        triggers=tuple(triggers),
        events=await _named(connection, "event", "events", position_schema, "status = 'ENABLED'"),
        time_zones=(await connection.query(zones))[0][0] == 1,
        clock_offset=offset,
        threads_connected=int(status.get("threads_connected", 0)),
        own_channels=channels,
        columns=await _columns(connection, position_schema),
        flavour=version.flavour,
        cascades=await _foreign_keys(connection, position_schema, _CASCADES),
        versioned=await _named(
            connection, "table", "tables", position_schema, "table_type = 'SYSTEM VERSIONED'"
        ),
        expressions=await _expressions(connection, position_schema),
        triggers_on=triggers,
        generated=await _generated(connection, version, position_schema),
        own_channels_refused=channels_refused,
    )


async def _inactive_roles(connection: Connection, version: Version) -> tuple[str, ...]:
    if version < _OLDEST_WITH_ROLES_LISTED:
        return ()
    rows = await connection.query(
        "SELECT role_name, role_host FROM information_schema.applicable_roles WHERE"
        " (role_name, role_host) NOT IN"
        " (SELECT role_name, role_host FROM information_schema.enabled_roles)"
    )
    return tuple(sorted({f"'{name!s}'@'{host!s}'" for name, host in rows}))


async def _tables(connection: Connection, position_schema: str) -> tuple[TableFacts, ...]:
    engines = await connection.query("SELECT engine, transactions FROM information_schema.engines")
    transactional = {str(engine).lower() for engine, does in engines if does == "YES"}
    users = _users("table_schema", position_schema)
    keys = await connection.query(
        "SELECT DISTINCT table_schema, table_name FROM information_schema.columns"
        f" WHERE column_key = 'PRI' AND {users}"
    )
    keyed = {(str(schema), str(name)) for schema, name in keys}
    rows = await connection.query(
        "SELECT table_schema, table_name, engine FROM information_schema.tables"
        f" WHERE {_TABLES} AND {users} ORDER BY 1, 2"
    )
    return tuple(
        TableFacts(
            str(schema),
            str(name),
            transactional=str(engine).lower() in transactional,
            keyed=(str(schema), str(name)) in keyed,
            is_blackhole=str(engine).lower() == "blackhole",
        )
        for schema, name, engine in rows
    )


async def _columns(
    connection: Connection, position_schema: str
) -> Mapping[str, Sequence[TableColumn]]:
    rows = await connection.query(
        f"SELECT table_schema, table_name, {COLUMNS} FROM information_schema.columns"
        " JOIN information_schema.tables USING (table_schema, table_name)"
        f" WHERE {_TABLES} AND {_users('table_schema', position_schema)}"
        " ORDER BY table_schema, table_name, ordinal_position"
    )
    columns: dict[str, list[TableColumn]] = {}
    for schema, name, *column in rows:
        columns.setdefault(f"{schema!s}.{name!s}", []).append(table_column(tuple(column)))
    return columns


async def _generated(
    connection: Connection, version: ServerVersion, position_schema: str
) -> tuple[str, ...]:
    if not TARGETS[version.flavour].omits_generated:
        return ()
    rows = await connection.query(
        "SELECT DISTINCT table_schema, table_name FROM information_schema.columns c"
        f" WHERE {GENERATED} AND {_users('table_schema', position_schema)} ORDER BY 1, 2"
    )
    return tuple(f"{schema!s}.{name!s}" for schema, name in rows)


async def _expressions(
    connection: Connection, position_schema: str
) -> Mapping[str, Mapping[str, str]]:
    rows = await connection.query(
        "SELECT table_schema, table_name, column_name, generation_expression"
        " FROM information_schema.columns WHERE COALESCE(generation_expression, '') <> ''"
        f" AND {_users('table_schema', position_schema)}"
    )
    expressions: dict[str, dict[str, str]] = {}
    for schema, table, name, expression in rows:
        expressions.setdefault(f"{schema!s}.{table!s}", {})[str(name)] = str(expression)
    return expressions


async def _foreign_keys(
    connection: Connection, position_schema: str, condition: str
) -> tuple[str, ...]:
    rows = await connection.query(
        "SELECT constraint_schema, table_name, unique_constraint_schema, referenced_table_name"
        " FROM information_schema.referential_constraints"
        f" WHERE {condition} AND {_users('constraint_schema', position_schema)} ORDER BY 1, 2"
    )
    return tuple(f"{a!s}.{b!s} -> {c!s}.{d!s}" for a, b, c, d in rows)


async def _triggers(connection: Connection, position_schema: str) -> Mapping[str, str]:
    rows = await connection.query(
        "SELECT trigger_schema, trigger_name, event_object_schema, event_object_table"
        " FROM information_schema.triggers"
        f" WHERE {_users('trigger_schema', position_schema)} ORDER BY 1, 2"
    )
    return {f"{schema!s}.{name!s}": f"{of!s}.{table!s}" for schema, name, of, table in rows}


async def _named(
    connection: Connection, kind: str, table: str, position_schema: str, condition: str = "TRUE"
) -> tuple[str, ...]:
    rows = await connection.query(
        f"SELECT {kind}_schema, {kind}_name FROM information_schema.{table}"
        f" WHERE {_users(f'{kind}_schema', position_schema)} AND {condition} ORDER BY 1, 2"
    )
    return tuple(f"{schema!s}.{name!s}" for schema, name in rows)


async def _reaching(connection: Connection, position_schema: str) -> tuple[str, ...]:
    own = literals.text(f"{position_schema}.").decode()
    names_it = f"LOCATE({own}, REPLACE(REPLACE(REPLACE({{}}, '`', ''), '\"', ''), ' ', ''))"
    views = f"is_updatable = 'YES' AND {names_it.format('view_definition')}"
    return (
        *await _named(connection, "table", "views", position_schema, views),
        *await _named(
            connection, "trigger", "triggers", position_schema, names_it.format("action_statement")
        ),
        *await _named(
            connection,
            "routine",
            "routines",
            position_schema,
            names_it.format("routine_definition"),
        ),
    )


def _users(column: str, position_schema: str) -> str:
    """Return the condition for a schema to be a user's."""
    own = literals.text(position_schema).decode()
    return (
        f"{column} NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema')"
        f" AND {column} <> {own}"
    )


async def _own_channels(
    connection: Connection, version: ServerVersion
) -> tuple[tuple[ReplicaStatus, ...], str]:
    """Return the channels of the server's own replica, or why they cannot be seen."""
    try:
        return tuple(await own_channels(connection, version)), ""
    except ServerError as error:
        if error.number not in NOT_ALLOWED:
            raise
        return (), error.text


async def _tables_in(connection: Connection, schema: str) -> tuple[str, ...] | None:
    """Return the visible tables of a database; None if the database is not visible."""
    name = literals.text(schema)
    databases = await connection.query(
        b"SELECT schema_name FROM information_schema.schemata WHERE schema_name=%b" % name
    )
    if not databases:
        return None
    rows = await connection.query(
        b"SELECT table_name FROM information_schema.tables WHERE table_schema=%b" % name
    )
    return tuple(sorted(str(row[0]) for row in rows))


async def _allowed(answer: Awaitable[list[T]]) -> list[T]:
    """Return the rows of an answer; none if it needs a privilege that is missing."""
    try:
        return await answer
    except ServerError as error:
        if error.number not in NOT_ALLOWED:
            raise
        return []


async def _position(connection: Connection, tables: PositionTables) -> PositionFacts:
    daemon: object = None
    found = FoundTables({}, (), filled=False)
    channel: ChannelFacts | None = None
    channels: list[Channel] = []
    refused = ""
    prepared: tuple[PreparedRow, ...] = ()
    remains = False
    despite = GtidSet()
    home: TargetIdentity | None = None
    try:
        found = await read_tables(connection, tables)
        if found.engines.keys() >= set(FIRST_TABLES):
            channel = await _channel(connection, tables, found)
            if channel is None:
                rows = await connection.query(tables.select_remains(found.engines))
                remains = bool(rows[0][0])
            channels = await read_channels(connection, tables, rules=RULES_TABLE in found.engines)
        if PREPARED in found.engines:
            rows = await connection.query(tables.prepared.select_of_all())
            prepared = tuple(map(tables.prepared.row, rows))
        if DESPITE_EXECUTED in found.engines:
            rows = await connection.query(tables.select_despite_executed())
            despite = GtidSet.parse(str(rows[0][0])) if rows else despite
        locks = await read_locks(connection, tables.schema, tables.channel)
        if locks is not None:
            lock = locks.session(CHANNEL).encode()
            ((daemon,),) = await connection.query(b"SELECT IS_USED_LOCK('%b')" % lock)
        if IDENTITY in found.engines:
            home = await read_home(connection, tables)
    except ServerError as error:
        refused = error.text
    return PositionFacts(
        found.engines,
        found.columns,
        found.filled,
        tuple(channels),
        channel,
        refused,
        None if daemon is None else literals.number(daemon),
        prepared,
        home,
        remains,
        despite,
    )


async def _channel(
    connection: Connection, tables: PositionTables, found_tables: FoundTables
) -> ChannelFacts | None:
    name = literals.name(tables.schema) + b".`slave_relay_log_info`"
    found = await connection.query(
        b"SELECT `Schema_version`, TIMESTAMPDIFF(SECOND, `Updated_at`, NOW(6)) FROM %b"
        b" WHERE `Channel_name` = %b" % (name, literals.text(tables.channel))
    )
    if not found:
        return None
    version, age = literals.number(found[0][0]), float(str(found[0][1]))
    if version not in KNOWN_VERSIONS:
        return ChannelFacts(version, _NOWHERE, (), "", "", age, ())
    rows = await connection.query(tables.select_channel())
    known = list(found_tables.columns) == [column.name for column in WORKER_COLUMNS]
    workers = await read_workers(connection, tables) if known else []
    doubts = await connection.query(tables.select_in_doubt())
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
        tuple(tables.in_doubt(doubt) for doubt in doubts),
        by_hand,
        stopped,
    )

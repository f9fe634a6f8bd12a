"""Reads the facts of a server: queries only, nothing is locked, written or registered."""

import asyncio
from collections.abc import Awaitable, Iterable
from math import inf
from time import monotonic, time
from typing import TypeVar

from mtsd.apply.position.other_schemas import positions_elsewhere
from mtsd.apply.position.position_tables import PositionTables
from mtsd.apply.session.binlog_allowed import allows_binlog
from mtsd.apply.session.pinning import pin
from mtsd.apply.session.session_state import pinned
from mtsd.apply.session.xa import listed_xids
from mtsd.apply.sql import literals
from mtsd.apply.tables.key_definitions import KeyDefinitions
from mtsd.apply.tables.table_keys import why_whole
from mtsd.config.start import FilePosition, Start
from mtsd.model.error_numbers import ER, NOT_ALLOWED
from mtsd.model.errors import NeedsPersonError, ServerError
from mtsd.model.gtid import GtidSet
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.position import BEGUN_UNKNOWN, FIRST_EVENT, Position
from mtsd.model.server import Flavour, ServerVersion, Version
from mtsd.operations.check.facts import (
    FAR_S,
    ServerFacts,
    SourceFacts,
    TargetFacts,
)
from mtsd.operations.check.reading.doubts import read_in_logs
from mtsd.operations.check.reading.positions import read_position
from mtsd.operations.check.reading.schemas import (
    columns_of,
    expressions_of,
    foreign_keys_of,
    read_generated,
    read_keys,
    read_names,
    read_reaching,
    read_transactional,
    read_triggers,
    tables_in,
    tables_of,
)
from mtsd.replica.guards.circles import read_feeding
from mtsd.source.binlog_files import read_begun
from mtsd.source.held_log import HELD, holds_its_log
from mtsd.source.place import starts_inside_group
from mtsd.source.read_state import (
    end_without_files,
    gtids_at,
    gtids_before,
    gtids_before_file,
    read_gtids,
)
from mtsd.wire.binlog_status import binlog_status
from mtsd.wire.connection import Connection
from mtsd.wire.exchange import Row
from mtsd.wire.family import SERVERS
from mtsd.wire.neutral_session import make_neutral
from mtsd.wire.replica_status import ReplicaStatus, own_channels, registered_replicas

T = TypeVar("T")

"""Errors of missing privileges, which have their own lines."""
_LONGEST_READ_S = 20.0
"""Less than the whole look at the source may take."""
_MAX_ROUND_TRIPS = 10
_OLDEST_WITH_ROLES_LISTED = (8, 0, 19)


async def read_source(
    connection: Connection,
    version: ServerVersion,
    position_schema: str,
    start: Start | None,
    file: str,
) -> SourceFacts:
    """Query the source, also about the place `start` and the `file` of the position, if any.

    Raises ServerError, ConnectionLostError.
    """
    await make_neutral(connection)
    keys = await read_keys(connection, version.flavour, position_schema)
    server = await _server(connection, version, position_schema, keys)
    files: tuple[tuple[str, int], ...] = ()
    files_refused = ""
    status: list[Row] = []
    if await holds_its_log(connection, version.flavour):
        files_refused = HELD
    else:
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
        last, offset, _, _, *gtids = status[0]
        position = Position(str(last), literals.number(offset))
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
    before_file = None
    if server.on("gtid_mode") and file in dict(files):
        before_file = await gtids_before_file(connection, file)
    file_begun = BEGUN_UNKNOWN
    if file in dict(files):
        file_begun = await read_begun(connection.endpoint, file)
    replicas = await _allowed(registered_replicas(connection, version.mysql))
    feeding, hidden = await read_feeding(connection)
    return SourceFacts(
        server,
        files,
        files_refused,
        end,
        await tables_in(connection, position_schema),
        filters,
        tuple((replica.server_id, replica.uuid) for replica in replicas),
        purged,
        await listed_xids(connection),
        inside,
        before,
        tuple(feeding),
        tuple(hidden),
        before_file,
        file_begun,
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
    await make_neutral(connection)
    known = await read_keys(connection, version.flavour, tables.schema)
    server = await _server(connection, version, tables.schema, known)
    position = await read_position(connection, tables)
    files: tuple[str, ...] | None = None
    if position.channel is not None and any(
        doubt.target_file for doubt in position.channel.in_doubt
    ):
        rows = await _allowed(connection.query("SHOW BINARY LOGS"))
        files = tuple(str(row[0]) for row in rows) or None
    in_logs = await read_in_logs(connection, tables, server, position, files)
    prepared = await listed_xids(connection)
    whole = {
        ".".join(name): why
        for name, keys in sorted(known.tables.items())
        if (why := why_whole(keys))
    }
    allowed = await allows_binlog(connection)
    reaching = await read_reaching(connection, tables.schema)
    elsewhere = await positions_elsewhere(connection, tables.schema)
    round_trip = await _round_trip(connection)
    session = await pin(connection, pinned(version), binary_log=binary_log)
    return TargetFacts(
        server,
        position,
        files,
        in_logs,
        prepared,
        allowed,
        whole,
        reaching,
        elsewhere,
        session,
        round_trip,
    )


async def _round_trip(connection: Connection) -> float:
    """Return how long the shortest of some round trips took, in seconds; the first quick one ends.

    On a busy machine a single one may take long.
    """
    shortest = inf
    for _ in range(_MAX_ROUND_TRIPS):
        began = monotonic()
        await connection.query("DO 0")
        shortest = min(shortest, monotonic() - began)
        if shortest < FAR_S:
            break
    return shortest


async def _server(
    connection: Connection, version: ServerVersion, position_schema: str, known: KeyDefinitions
) -> ServerFacts:
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
    triggers = await read_triggers(connection, position_schema)
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
        tables=tables_of(known, await read_transactional(connection)),
        foreign_keys_across=foreign_keys_of(known, lambda key: key.table[0] != key.parent[0]),
        triggers=tuple(triggers),
        events=await read_names(
            connection, "event", "events", position_schema, "status = 'ENABLED'"
        ),
        time_zones=(await connection.query(zones))[0][0] == 1,
        clock_offset=offset,
        threads_connected=int(status.get("threads_connected", 0)),
        own_channels=channels,
        columns=columns_of(known),
        flavour=version.flavour,
        cascades=foreign_keys_of(known, lambda key: key.cascades_deletes or key.cascades_updates),
        versioned=tuple(
            sorted(".".join(name) for name, table in known.tables.items() if table.versioned)
        ),
        expressions=expressions_of(known),
        triggers_on=triggers,
        generated=await read_generated(connection, version, position_schema),
        own_channels_refused=channels_refused,
    )


async def _inactive_roles(connection: Connection, version: Version) -> tuple[str, ...]:
    if version < _OLDEST_WITH_ROLES_LISTED:
        return ()
    try:
        rows = await connection.query(
            "SELECT role_name, role_host FROM information_schema.applicable_roles WHERE"
            " (role_name, role_host) NOT IN"
            " (SELECT role_name, role_host FROM information_schema.enabled_roles)"
        )
    except ServerError as error:
        # With another default_collation_for_utf8mb4 than its own, MySQL cannot read these views
        # of its own. All else can be checked.
        if error.number != ER.CANT_AGGREGATE_2COLLATIONS:
            raise
        return ()
    return tuple(sorted({f"'{name!s}'@'{host!s}'" for name, host in rows}))


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


async def _allowed(answer: Awaitable[list[T]]) -> list[T]:
    """Return the rows of an answer; none if it needs a privilege that is missing."""
    try:
        return await answer
    except ServerError as error:
        if error.number not in NOT_ALLOWED:
            raise
        return []

"""Facts of two servers that everything is well with, to be spoiled by tests one at a time."""

from collections.abc import Mapping
from dataclasses import replace

from mtsd.apply.position.position_schema import COLUMNS_OF
from mtsd.apply.position.position_tables import SCHEMA_VERSION
from mtsd.config import Settings
from mtsd.config.settings import SourceSettings
from mtsd.config.start import Earliest, Start
from mtsd.model.gtid import GtidSet
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.position import Position
from mtsd.operations.check.facts import (
    ChannelFacts,
    PositionFacts,
    ServerFacts,
    SourceFacts,
    TargetFacts,
    UserTable,
)
from mtsd.replica.guards.one_channel import Channel

SOURCE_UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
TARGET_UUID = "4f22fa47-71ca-11e1-9e33-c80aa9429562"
DAEMON_UUID = "5a33fa47-71ca-11e1-9e33-c80aa9429562"
MIB = 1 << 20

SETTINGS = Settings(source=SourceSettings(start=Earliest()))
EVERYTHING = (
    (
        "GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, RELOAD, REFERENCES, INDEX, ALTER,"
        " CREATE TEMPORARY TABLES, EXECUTE, REPLICATION SLAVE, REPLICATION CLIENT, CREATE VIEW,"
        " CREATE ROUTINE, ALTER ROUTINE, CREATE USER, EVENT, TRIGGER ON *.* TO `u`@`%`"
        " WITH GRANT OPTION"
    ),
    (
        "GRANT ALLOW_NONEXISTENT_DEFINER,REPLICATION_APPLIER,ROLE_ADMIN,SESSION_VARIABLES_ADMIN,"
        "SET_ANY_DEFINER,SYSTEM_USER,XA_RECOVER_ADMIN ON *.* TO `u`@`%`"
    ),
)
TABLE = UserTable("shop", "orders", transactional=True, keyed=True)


def _server(account: str, **variables: str) -> ServerFacts:
    return ServerFacts(
        version_text="9.7.0",
        version=(9, 7, 0),
        tls_version="TLSv1.3",
        tls_cipher="TLS_AES_128_GCM_SHA256",
        account=account,
        variables={
            "log_bin": "ON",
            "max_allowed_packet": str(64 * MIB),
            "gtid_mode": "ON",
            "gtid_purged": "",
            "enforce_gtid_consistency": "ON",
            "innodb_strict_mode": "ON",
            "default_storage_engine": "InnoDB",
            "lower_case_table_names": "0",
            "system_time_zone": "UTC",
            "time_zone": "SYSTEM",
            **variables,
        },
        grants=EVERYTHING,
        roles=(),
        tables=(TABLE,),
        foreign_keys_across=(),
        triggers=(),
        events=(),
        time_zones=True,
        clock_offset=0.0,
        threads_connected=3,
        own_channels=(),
    )


SOURCE = SourceFacts(
    server=_server(
        "'repl'@'%'",
        server_id="1",
        server_uuid=SOURCE_UUID,
        binlog_format="ROW",
        binlog_row_image="FULL",
        binlog_row_metadata="MINIMAL",
        binlog_row_value_options="",
        binlog_transaction_compression="OFF",
        binlog_checksum="CRC32",
        binlog_expire_logs_seconds="2592000",
        sync_binlog="1",
        gtid_executed=f"{SOURCE_UUID}:1-9",
    ),
    files=(("binlog.000001", 5000), ("binlog.000002", 900)),
    files_refused="",
    end=LowWaterMark(0, Position("binlog.000002", 900), GtidSet.parse(f"{SOURCE_UUID}:1-9")),
    position_schema=None,
    filters=(),
    replicas=(),
)
CHANNEL = ChannelFacts(
    schema_version=SCHEMA_VERSION,
    mark=LowWaterMark(7, Position("binlog.000002", 700), GtidSet.parse(f"{SOURCE_UUID}:1-7")),
    workers=(),
    source_uuid=SOURCE_UUID,
    daemon_uuid=DAEMON_UUID,
    age=1.0,
    in_doubt=(),
)
NO_POSITION = PositionFacts({}, {}, False, (), None, "", None)
POSITION = PositionFacts(
    engines=dict.fromkeys(
        ("slave_worker_info", "slave_relay_log_info", "slave_in_doubt"), "InnoDB"
    ),
    columns=COLUMNS_OF,
    filled=False,
    channels=(Channel("", SOURCE_UUID),),
    channel=CHANNEL,
    refused="",
    daemon=None,
)
TARGET = TargetFacts(
    server=_server(
        "'mtsd'@'%'",
        server_id="2",
        server_uuid=TARGET_UUID,
        read_only="OFF",
        super_read_only="OFF",
        max_connections="151",
        max_user_connections="0",
        event_scheduler="ON",
        log_bin_trust_function_creators="ON",
        binlog_format="ROW",
    ),
    position=NO_POSITION,
    files=None,
)


def source(variables: Mapping[str, str] | None = None, **server: object) -> SourceFacts:
    """Return the good source with other variables, or other facts of the server."""
    return replace(SOURCE, server=_spoiled(SOURCE.server, variables, server))


def target(variables: Mapping[str, str] | None = None, **server: object) -> TargetFacts:
    """Return the good target with other variables, or other facts of the server."""
    return replace(TARGET, server=_spoiled(TARGET.server, variables, server))


def at(
    *,
    position: Position = CHANNEL.mark.position,
    gtids: str | None = str(CHANNEL.mark.gtids),
    begun: int = 0,
    **changed: object,
) -> TargetFacts:
    """Return the good target with a position of the channel, spoiled."""
    known = None if gtids is None else GtidSet.parse(gtids)
    mark = LowWaterMark(7, position, known, begun=begun)
    channel = replace(CHANNEL, mark=mark, **changed)  # type: ignore[arg-type]
    return replace(TARGET, position=replace(POSITION, channel=channel))


def tables(**changed: object) -> TargetFacts:
    """Return the good target with position tables, spoiled."""
    return replace(TARGET, position=replace(POSITION, **changed))  # type: ignore[arg-type]


def starting(start: Start | None) -> Settings:
    """Return the good settings with another start."""
    return replace(SETTINGS, source=replace(SETTINGS.source, start=start))


def replica(**changed: object) -> Settings:
    """Return the good settings with other ones of [replica]."""
    return replace(SETTINGS, replica=replace(SETTINGS.replica, **changed))  # type: ignore[arg-type]


def filtered(**changed: object) -> Settings:
    """Return the good settings with other ones of [filter]."""
    return replace(SETTINGS, filter=replace(SETTINGS.filter, **changed))  # type: ignore[arg-type]


def source_settings(**changed: object) -> Settings:
    """Return the good settings with other ones of [source]."""
    return replace(SETTINGS, source=replace(SETTINGS.source, **changed))  # type: ignore[arg-type]


def target_settings(**changed: object) -> Settings:
    """Return the good settings with other ones of [target]."""
    return replace(SETTINGS, target=replace(SETTINGS.target, **changed))  # type: ignore[arg-type]


def _spoiled(
    server: ServerFacts, variables: Mapping[str, str] | None, changed: Mapping[str, object]
) -> ServerFacts:
    merged = {**server.variables, **(variables or {})}
    return replace(server, variables=merged, **changed)  # type: ignore[arg-type]

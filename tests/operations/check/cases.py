"""Facts that bring each line of `mtsd check`: a case at least for each."""

import socket
import ssl
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from mtsd.apply.position.failed_groups import StoppedGroup
from mtsd.apply.position.handed_over_table import HandedOver
from mtsd.apply.position.in_doubt_table import InDoubt
from mtsd.apply.position.position_schema import COLUMNS_OF
from mtsd.apply.position.position_tables import UNORDERED_VERSION
from mtsd.apply.position.prepared_table import PreparedRow
from mtsd.apply.position.target_identity import TargetIdentity
from mtsd.apply.position.unreadable import UNREADABLE
from mtsd.apply.session.pinning import CANNOT_LOG, CANNOT_PIN, Pinned
from mtsd.apply.session.session_state import THREAD_ID
from mtsd.apply.tables.table_columns import TableColumn, table_column
from mtsd.config import FilePosition, GtidStart, Latest, Settings
from mtsd.config.settings import EndpointSettings
from mtsd.filter.rules import Rules
from mtsd.model.errors import CannotConnectError, ConnectionLostError, ServerError
from mtsd.model.gtid import GtidSet
from mtsd.model.outcome.failed_group import FailedGroup
from mtsd.model.outcome.reason import Refused, refuse
from mtsd.model.position import Position
from mtsd.model.server import Flavour
from mtsd.model.xa_xid import XaXid
from mtsd.operations.check.facts import SourceFacts, TargetFacts, UserTable
from mtsd.operations.check.lines.catalogue import Kind
from mtsd.operations.check.lines.line import Line
from mtsd.operations.check.lines.refused_line import refused_line
from mtsd.operations.check.lines.unreachable import interrupted, unreachable
from mtsd.replica.guards.circles import Feeding
from mtsd.replica.guards.one_channel import Channel
from mtsd.replica.recovery.verdict import after_a_crash, in_another_log
from mtsd.schedule.done.executed_groups import ExecutedGroups
from mtsd.schedule.done.worker_row import WorkerRow
from mtsd.schedule.policies.automatic import ChosenPolicy
from mtsd.source.held_log import HELD
from mtsd.wire.neutral_session import other_version
from mtsd.wire.refusal import NoTlsError, SessionRefusedError
from mtsd.wire.replica_status import ReplicaStatus
from mtsd.wire.traits import supported
from tests.operations.check.good_facts import (
    DAEMON_UUID,
    EVERYTHING,
    MIB,
    SETTINGS,
    SOURCE,
    SOURCE_UUID,
    TARGET,
    TARGET_UUID,
    at,
    filtered,
    replica,
    source,
    source_settings,
    starting,
    tables,
    target,
    target_settings,
)

MYISAM = UserTable("shop", "log", transactional=False, keyed=True)
KEYLESS = UserTable("shop", "visits", transactional=True, keyed=False)
DOUBT = InDoubt(8, 1, Position("binlog.000002", 800), "ddl", "", "", "shop", b"ALTER TABLE t")
LOGGED = replace(DOUBT, target_file="log.000001", target_offset=4)
IN_ANOTHER_LOG = replace(at(in_doubt=(LOGGED,)), in_logs={8: in_another_log(LOGGED)})
CRASHED = replace(at(in_doubt=(LOGGED,)), in_logs={8: after_a_crash(LOGGED)})
EVIDENCE = f"{DAEMON_UUID}:8"
XID = XaXid(1, b"a", b"")
SPLITTING = replica(consistency="eventual", exec_mode="strict", split_transactions="row")
PAST = WorkerRow(
    1,
    None,
    Position("binlog.000002", 700),
    ExecutedGroups(8).with_numbers([10]),
    GtidSet.parse(f"{SOURCE_UUID}:10"),
    1,
)
UNORDERED = at(
    schema_version=UNORDERED_VERSION,
    workers=(replace(PAST, executed=ExecutedGroups(8).with_numbers([9]), gtids=GtidSet()),),
)
STOPPED = StoppedGroup(
    FailedGroup(8, Position("binlog.000002", 800), "", ("shop",), "rows", 1062),
    "error 1062, do this",
    datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
)
WITHOUT_DEFINERS = (
    EVERYTHING[0],
    "GRANT REPLICATION_APPLIER,SESSION_VARIABLES_ADMIN,XA_RECOVER_ADMIN ON *.* TO `u`@`%`",
)
KEPT = Pinned(frozenset({THREAD_ID, b"max_error_count"}), sets_gtids=False)
NATIVE = ReplicaStatus(
    channel="shop",
    host="db9",
    port=3306,
    user="repl",
    source_server_id=1,
    source_uuid=SOURCE_UUID,
    receiving=True,
    applying=True,
    received=Position("binlog.000002", 900),
    executed=Position("binlog.000002", 900),
    received_gtids="",
    executed_gtids="",
    by_gtid=True,
    error="",
)
FEEDING = Feeding("mtsd", "back", TARGET_UUID, runs=True, preserves=True)
REPLICATION = "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO `repl`@`%`"


@dataclass(frozen=True)
class Case:
    """Facts, and what is said of them: a line of the kind, whose text holds `says`."""

    kind: Kind
    says: str
    settings: Settings = SETTINGS
    source: SourceFacts | Line = SOURCE
    target: TargetFacts | Line = TARGET


def column(text: str, name: str = "c", collation: str = "") -> TableColumn:
    """Return a column as information_schema has it, without sizes."""
    kind = text.partition("(")[0].partition(" ")[0]
    return table_column((name, kind, text, None, None, None, None, collation, ""))


def columns(*definitions: TableColumn) -> dict[str, tuple[TableColumn, ...]]:
    return {"shop.orders": definitions}


MARIADB_SOURCE = replace(
    source(
        {"gtid_binlog_state": "0-1-9", "gtid_slave_pos": ""},
        flavour=Flavour.MARIADB,
        version=(11, 8, 1),
    ),
    purged=GtidSet.parse("0-1-2"),
)
IN_ENGINE = replace(
    MARIADB_SOURCE,
    server=replace(
        MARIADB_SOURCE.server,
        variables={**MARIADB_SOURCE.server.variables, "binlog_storage_engine": "innodb"},
    ),
    files=(),
)
IN_OUR_DOMAIN = source(
    {"gtid_binlog_state": "0-1-9", "gtid_slave_pos": "2-3-4"}, flavour=Flavour.MARIADB
)
MARIADB_TARGET = target(flavour=Flavour.MARIADB, version=(11, 8, 1))


def replaying(variables: dict[str, str] | None = None) -> TargetFacts:
    """Return a MariaDB whose user may set the GTID domain of its sessions."""
    grants = (*EVERYTHING, "GRANT BINLOG REPLAY ON *.* TO `u`@`%`")
    return target(variables, flavour=Flavour.MARIADB, grants=grants)


REPLAYING = replaying()

CASES = (
    Case(Kind.CONNECTED, "MariaDB 11.8.1 at", source=MARIADB_SOURCE, target=MARIADB_TARGET),
    Case(Kind.FAMILIES, "MariaDB to MySQL: rows are applied as SQL", source=MARIADB_SOURCE),
    Case(Kind.FAMILIES, "MySQL to MariaDB", target=MARIADB_TARGET),
    Case(
        Kind.DEFINERS, "lacks SET_ANY_DEFINER, ALLOW_NONEXISTENT_DEFINER, SYSTEM_USER",
        target=target(grants=WITHOUT_DEFINERS),
    ),
    Case(
        Kind.SESSION_KEPT, "may not set max_error_count, pseudo_thread_id",
        target=replace(TARGET, pinned=KEPT),
    ),
    Case(
        Kind.STATEMENTS_REFUSED, "SESSION_VARIABLES_ADMIN", target=replace(TARGET, pinned=KEPT),
        source=source({"binlog_format": "MIXED"}),
    ),
    Case(
        Kind.CANNOT_PIN, "x = 1",
        target=replace(
            TARGET, pinned=refuse(CANNOT_PIN, user="'m'", values="x = 1", privilege="P")
        ),
    ),
    Case(
        Kind.CANNOT_LOG, "set [target] binary_log = true",
        target=replace(
            TARGET,
            pinned=refuse(CANNOT_LOG, user="'m'", wanted="false", other="true", privilege="P"),
        ),
    ),
    Case(
        Kind.GTIDS_NOT_ALLOWED, "SESSION_VARIABLES_ADMIN", target_settings(gtid="preserve"),
        target=replace(TARGET, pinned=KEPT),
    ),
    Case(
        Kind.TARGET_WITHOUT_EVIDENCE, "nothing shows whether it was applied",
        target=replace(target({"log_bin": "OFF"}), pinned=KEPT),
    ),
    Case(
        Kind.BINLOG_NOT_ALLOWED, "rows are applied as SQL",
        target=replace(TARGET, binlog_allowed=False),
    ),
    Case(
        Kind.NOT_BY_BINLOG, 'apply_mode is "binlog"', target_settings(apply_mode="binlog"),
        MARIADB_SOURCE,
    ),
    Case(
        Kind.OTHER_GTIDS, "read by GTID; the source's", starting(GtidStart("0-1-5")),
        MARIADB_SOURCE,
    ),
    Case(
        Kind.OTHER_FAMILY_GTIDS, "which cannot have its GTIDs", target_settings(gtid="preserve"),
        MARIADB_SOURCE,
    ),
    Case(
        Kind.OTHER_FAMILY, "a MariaDB, but the position belongs to", source=MARIADB_SOURCE,
        target=at(),
    ),
    Case(
        Kind.MARIADB_TARGET_GTIDS, "the target is a MariaDB", target_settings(gtid="preserve"),
        MARIADB_SOURCE, MARIADB_TARGET,
    ),
    Case(
        Kind.MARIADB_GTIDS, "read by file and position",
        starting(FilePosition("binlog.000002", 700)), MARIADB_SOURCE, MARIADB_TARGET,
    ),
    Case(
        Kind.MARIADB_GTIDS, "read by GTID", starting(GtidStart("0-1-5")), MARIADB_SOURCE,
        MARIADB_TARGET,
    ),
    Case(Kind.OWN_DOMAIN, "the domain 2,", source=MARIADB_SOURCE, target=REPLAYING),
    Case(
        Kind.DOMAIN_SHARED, "domain of the source's; it has 0, 2", source=IN_OUR_DOMAIN,
        target=replaying({"gtid_strict_mode": "ON"}),
    ),
    Case(
        Kind.DOMAIN_SHARED_LOOSELY, "the GTID domain 2", source=IN_OUR_DOMAIN, target=REPLAYING,
    ),
    Case(
        Kind.CANNOT_LEAVE_DOMAIN, "own GTID domain 0,", source=IN_OUR_DOMAIN,
        target=target({"gtid_strict_mode": "ON"}, flavour=Flavour.MARIADB),
    ),
    Case(
        Kind.CANNOT_LEAVE_LOOSELY, "GRANT BINLOG REPLAY", source=IN_OUR_DOMAIN,
        target=MARIADB_TARGET,
    ),
    Case(
        Kind.OWN_GTIDS_AHEAD, "has written 0-2-8 itself", source=MARIADB_SOURCE,
        target=replace(
            replaying({"gtid_binlog_pos": "0-2-8,1-2-5,2-2-900,3-1-9"}),
            position=at(gtids="0-1-7,1-1-5,3-1-2", source_uuid="server_id 1").position,
        ),
    ),
    Case(Kind.START_PURGED, "0-1-2", source=MARIADB_SOURCE, target=MARIADB_TARGET),
    Case(
        Kind.TARGET_WITHOUT_EVIDENCE, "nothing shows", target_settings(binary_log=False),
        MARIADB_SOURCE, MARIADB_TARGET,
    ),
    Case(Kind.CONNECTED, "MySQL 9.7.0 at 127.0.0.1:3306 as repl"),
    Case(Kind.NOT_COMPARED, "", source=Kind.REFUSED.line(server="source", address="")),
    Case(
        Kind.OLDER_TARGET, "(9.7.0) is newer than the target (8.0.41)",
        target=target(version=(8, 0, 41), version_text="8.0.41"),
    ),
    Case(Kind.TLS_ON, "TLSv1.3, TLS_AES_128_GCM_SHA256, not verified, but within this machine"),
    Case(Kind.TLS_ON, ", verified", source_settings(host="db1", tls="verify_ca")),
    Case(Kind.TLS_LOCAL, "the loopback interface", source=source(tls_version="")),
    Case(Kind.TLS_NOT_VERIFIED, "an impostor", source_settings(host="db1.example")),
    Case(
        Kind.TLS_OFF, 'tls = "verify_identity"', source_settings(host="db1"),
        source(tls_version=""),
    ),
    Case(Kind.PRIVILEGES, "'mtsd'@'%' has what mtsd needs"),
    Case(
        Kind.PRIVILEGES_MISSING,
        "lacks REPLICATION SLAVE; GRANT REPLICATION SLAVE ON *.* TO 'repl'",
        source=source(grants=("GRANT SELECT, REPLICATION CLIENT ON *.* TO `repl`@`%`",)),
    ),
    Case(
        Kind.PRIVILEGES_MISSING,
        "lacks RELOAD; GRANT RELOAD ON *.* TO 'mtsd'@'%'",
        target=target(grants=(EVERYTHING[0].replace("RELOAD, ", ""), EVERYTHING[1])),
    ),
    Case(
        Kind.ROLES_INACTIVE, "'r'@'%' granted to 'mtsd'@'%', but not active",
        target=target(roles=("'r'@'%'",)),
    ),
    Case(
        Kind.FUNCTION_CREATORS, "1419", target=target({"log_bin_trust_function_creators": "OFF"})
    ),
    Case(
        Kind.UNSAFE_FUNCTIONS, "1418", source=source({"log_bin_trust_function_creators": "ON"}),
        target=target(
            {"log_bin_trust_function_creators": "OFF"},
            grants=("GRANT ALL PRIVILEGES ON *.* TO `u`@`%`",),
        ),
    ),
    Case(
        Kind.ACCOUNTS, "lacks CREATE USER; ",
        target=target(grants=(EVERYTHING[0].replace("CREATE USER, ", ""), EVERYTHING[1])),
    ),
    Case(
        Kind.SYSTEM_TABLES_WRITABLE, "'mtsd'@'%' may write to the tables of mysql: ",
        target=target(grants=(EVERYTHING[0].replace("CREATE USER, ", ""), EVERYTHING[1])),
    ),
    Case(Kind.BINARY_LOG, "ON"),
    Case(
        Kind.NO_BINARY_LOG, "no binary log; start it with log_bin",
        source=source({"log_bin": "OFF"}),
    ),
    Case(Kind.ROW_FORMAT, "ROW"),
    Case(
        Kind.STATEMENT_FORMAT, "MIXED: statements run again on the target, ordered",
        source=source({"binlog_format": "MIXED"}),
    ),
    Case(
        Kind.STATEMENT_FORMAT, "target, each alone",
        source=source(
            {"binlog_format": "MIXED", "gtid_binlog_state": "0-1-9", "gtid_slave_pos": ""},
            flavour=Flavour.MARIADB,
        ),
        target=MARIADB_TARGET,
    ),
    Case(Kind.ROW_IMAGE, "FULL"),
    Case(
        Kind.NUMBERS_INTERLEAVED, "1062",
        source=source({"binlog_format": "STATEMENT", "innodb_autoinc_lock_mode": "2"}),
    ),
    Case(
        Kind.DEFAULTS_NOT_LOGGED, "a REPLACE",
        source=replace(
            MARIADB_SOURCE,
            server=replace(
                MARIADB_SOURCE.server,
                variables={**MARIADB_SOURCE.server.variables, "binlog_row_image": "MINIMAL"},
            ),
        ),
        target=MARIADB_TARGET,
    ),
    Case(Kind.ROW_IMAGE_PARTIAL, "MINIMAL: ", source=source({"binlog_row_image": "MINIMAL"})),
    Case(Kind.ROW_METADATA, "MINIMAL: "),
    Case(
        Kind.EVENT_OPTIONS, "checksum CRC32, binlog_row_value_options PARTIAL_JSON: ",
        source=source({"binlog_row_value_options": "PARTIAL_JSON"}),
    ),
    Case(Kind.NO_CHECKSUM, "NONE", source=source({"binlog_checksum": "NONE"})),
    Case(
        Kind.BINLOG_FILTERED, "binlog_do_db = shop",
        source=replace(SOURCE, filters=("binlog_do_db = shop",)),
    ),
    Case(
        Kind.CHAIN_CUT, "itself a replica",
        source=source({"log_replica_updates": "OFF"}, own_channels=(NATIVE,)),
    ),
    Case(Kind.SYNC_BINLOG, "1000: ", source=source({"sync_binlog": "1000"})),
    Case(Kind.RETENTION, "after 30 days"),
    Case(
        Kind.RETENTION, "not purged automatically",
        source=source({"binlog_expire_logs_auto_purge": "OFF"}),
    ),
    Case(
        Kind.RETENTION_SHORT, "after 2 hours", source=source({"binlog_expire_logs_seconds": "7200"})
    ),
    Case(
        Kind.RETENTION_DELAY, "after 2 hours, but [replica] delay is 2 hours: ",
        settings=replica(delay=7200),
        source=source({"binlog_expire_logs_seconds": "7200"}),
    ),
    Case(
        Kind.SEMI_SYNC, "replica, 5 s at most",
        settings=source_settings(semi_sync="applied"),
        source=source({"rpl_semi_sync_source_enabled": "ON"}),
    ),
    Case(
        Kind.SEMI_SYNC_OFF, "PERSIST rpl_semi_sync_master_enabled",
        settings=source_settings(semi_sync="applied"),
        source=source({"rpl_semi_sync_master_enabled": "OFF"}),
    ),
    Case(
        Kind.SEMI_SYNC_NOT_THERE, "cannot wait", settings=source_settings(semi_sync="applied"),
    ),
    Case(
        Kind.RETENTION_NEAR, "for 20 days and is in binlog.000001",
        target=at(age=20 * 86400.0, position=Position("binlog.000001", 700)),
    ),
    Case(
        Kind.LOGS_UNSEEN, "Access denied",
        source=replace(SOURCE, files=(), files_refused="Access denied"),
    ),
    Case(
        Kind.LOGS_HELD, "its clients wait for a replica",
        source=replace(SOURCE, files=(), files_refused=HELD),
    ),
    Case(
        Kind.POSITION_SCHEMA_ON_SOURCE, "mtsd exists (orders): ",
        source=replace(SOURCE, position_schema=("orders", "slave_worker_info")),
    ),
    Case(
        Kind.POSITION_SCHEMA_ON_SOURCE, "no visible tables",
        source=replace(SOURCE, position_schema=()),
    ),
    Case(
        Kind.POSITION_SCHEMA_OF_ANOTHER, "an mtsd that writes to the source",
        source=replace(SOURCE, position_schema=("slave_worker_info",)),
    ),
    Case(Kind.SERVER_ID, "1; this replica's is 4201"),
    Case(Kind.NO_SERVER_ID, "0: ", source=source({"server_id": "0"})),
    Case(Kind.SERVER_ID_SAME, "also has server_id 4201", source=source({"server_id": "4201"})),
    Case(
        Kind.DAEMON_CONNECTED, "4201", target=tables(daemon=12),
        source=replace(SOURCE, replicas=((4201, DAEMON_UUID.upper()),)),
    ),
    Case(
        Kind.READ_BY_ANOTHER, "server_id 7,", target=at(),
        source=replace(SOURCE, replicas=((7, DAEMON_UUID.upper()),)),
    ),
    Case(
        Kind.SERVER_ID_TAKEN, TARGET_UUID, target=at(),
        source=replace(SOURCE, replicas=((7, DAEMON_UUID), (4201, TARGET_UUID))),
    ),
    Case(
        Kind.SERVER_ID_MAYBE_TAKEN, TARGET_UUID,
        source=replace(SOURCE, replicas=((4201, TARGET_UUID),)),
    ),
    Case(Kind.SERVER_ID_OF_TARGET, "4201, ", target=target({"server_id": "4201"})),
    Case(Kind.SAME_SERVER, SOURCE_UUID, target=target({"server_uuid": SOURCE_UUID.upper()})),
    Case(Kind.POSITION_TABLES_NEW, "the first start creates mtsd"),
    Case(
        Kind.POSITION_ELSEWHERE, "but former on the target has one",
        target=replace(TARGET, positions_elsewhere=(("former", SOURCE_UUID),)),
    ),
    Case(Kind.POSITION, f"binlog.000002:700, group 7, {SOURCE_UUID}:1-7", target=at()),
    Case(Kind.DAEMON_RUNS, "connection 12", target=tables(daemon=12)),
    Case(
        Kind.HANDED_OVER, "handed over to its own replica",
        target=tables(handed_over=HandedOver("its own replica", "takeover")),
    ),
    Case(Kind.START, "earliest"),
    Case(Kind.START, "latest", starting(Latest())),
    Case(Kind.START_MISSING, '"earliest", "latest"', starting(None)),
    Case(Kind.START, "gtid:", starting(GtidStart(f"{SOURCE_UUID}:1-3"))),
    Case(Kind.START_PURGED, f"{SOURCE_UUID}:1", source=source({"gtid_purged": f"{SOURCE_UUID}:1"})),
    Case(
        Kind.START_FILES_PURGED, "begins with binlog.000010",
        source=replace(source({"gtid_mode": "OFF"}), files=(("binlog.000010", 9),)),
    ),
    Case(
        Kind.START_WITHOUT_GTIDS, "is not ON", starting(GtidStart(f"{SOURCE_UUID}:1-3")),
        source({"gtid_mode": "OFF"}),
    ),
    Case(Kind.START_NOT_EXECUTED, f"{SOURCE_UUID}:10", starting(GtidStart(f"{SOURCE_UUID}:1-10"))),
    Case(
        Kind.START_NO_PLACE, "goes from binlog.000001 to binlog.000002:900",
        starting(FilePosition("binlog.000003", 4)),
    ),
    Case(
        Kind.START_NO_PLACE, "is binlog.000001:4", starting(FilePosition("binlog.000001", 4)),
        replace(SOURCE, files=(("binlog.000002", 900),)),
    ),
    Case(
        Kind.START_INSIDE_GROUP, "mtsd binlog --events binlog.000002",
        starting(FilePosition("binlog.000002", 4)), replace(SOURCE, starts_inside_group=True),
    ),
    Case(
        Kind.START_UNSEEN, "REPLICATION CLIENT",
        source=replace(SOURCE, files=(), files_refused="Access denied"),
    ),
    Case(
        Kind.START_WITHOUT_FILES, "binlog.000002:4", starting(FilePosition("binlog.000002", 4)),
        IN_ENGINE, MARIADB_TARGET,
    ),
    Case(
        Kind.POSITION_WITHOUT_FILES, "binlog.000002:700", source=IN_ENGINE,
        target=replace(
            at(gtids=None, source_uuid=MARIADB_SOURCE.server.identity), server=MARIADB_TARGET.server
        ),
    ),
    Case(Kind.START_UNSEEN, "latest", starting(Latest()), replace(SOURCE, end=None)),
    Case(Kind.POSITION_AVAILABLE, "", target=at()),
    Case(Kind.POSITION_AVAILABLE, "", starting(GtidStart(f"{SOURCE_UUID}:1-3"))),
    Case(Kind.POSITION_AVAILABLE, "", starting(FilePosition("binlog.000002", 4))),
    Case(
        Kind.POSITION_PURGED, f"{SOURCE_UUID}:8", target=at(position=Position("", 0)),
        source=source({"gtid_purged": f"{SOURCE_UUID}:1-8"}),
    ),
    Case(
        Kind.POSITION_FILE_PURGED, "begins with binlog.000003", target=at(),
        source=replace(
            source({"gtid_purged": f"{SOURCE_UUID}:1-8"}), files=(("binlog.000003", 900),)
        ),
    ),
    Case(
        Kind.POSITION_PURGED_BEHIND, "begins with binlog.000003, but a daemon runs",
        target=replace(at(), position=replace(at().position, daemon=12)),
        source=replace(
            source({"gtid_purged": f"{SOURCE_UUID}:1-8"}), files=(("binlog.000003", 900),)
        ),
    ),
    Case(
        Kind.POSITION_FILE_APPLIED, "begins with binlog.000003", target=at(),
        source=replace(
            source({"gtid_purged": f"{SOURCE_UUID}:1-7"}), files=(("binlog.000003", 900),)
        ),
    ),
    Case(
        Kind.SOURCE_BEHIND, f"{SOURCE_UUID}:5-7", target=at(),
        source=source({"gtid_executed": f"{SOURCE_UUID}:1-4"}),
    ),
    Case(
        Kind.SOURCE_BEHIND, f"{SOURCE_UUID}:10", target=at(workers=(PAST,)),
    ),
    Case(
        Kind.POSITION_PAST_END, "binlog.000002:900",
        target=at(gtids=None, position=Position("binlog.000002", 901)),
    ),
    Case(
        Kind.POSITION_PAST_END, "binlog.000002:900",
        target=at(gtids=None, position=Position("binlog.000003", 4)),
    ),
    Case(
        Kind.POSITION_REWRITTEN, "before binlog.000002, where the position binlog.000002:",
        target=at(), source=replace(SOURCE, before_file=GtidSet.parse(f"{SOURCE_UUID}:1-9")),
    ),
    Case(
        Kind.POSITION_FILE_REPLACED, "begun at 1970-01-01 00:00:01 UTC, this one at",
        target=at(begun=1), source=replace(SOURCE, file_begun=2),
    ),
    Case(
        Kind.POSITION_BY_GTID, "gtid_mode is not ON", target=at(position=Position("", 0)),
        source=source({"gtid_mode": "OFF"}),
    ),
    Case(
        Kind.ANOTHER_SOURCE, f"{SOURCE_UUID}, before it was {TARGET_UUID}",
        target=at(source_uuid=TARGET_UUID),
    ),
    Case(
        Kind.OTHER_SOURCE, f"{SOURCE_UUID}, but the position belongs to {TARGET_UUID}",
        source=source({"gtid_mode": "OFF"}),
        target=at(source_uuid=TARGET_UUID, gtids=None),
    ),
    Case(
        Kind.OTHER_SOURCE_NOT_KNOWN_BY_GTID, "where FLUSH BINARY LOGS makes it known",
        target=at(source_uuid=TARGET_UUID, gtids=None),
    ),
    Case(
        Kind.POSITION_RENAMED, "has another name now, binlog.000001",
        target=at(position=Position("former.000002", 700), gtids=None),
    ),
    Case(Kind.POSITION_WITHOUT_GTIDS, "binlog.000002:700 is not known", target=at(gtids=None)),
    Case(
        Kind.TARGET_EXECUTED_BEYOND, f"executed 2 of the source's transactions after the position"
        f" binlog.000002:700, which would be applied a second time: {SOURCE_UUID}:8-9;",
        target=replace(
            target({"gtid_executed": f"{SOURCE_UUID}:1-9"}), position=at().position
        ),
    ),
    Case(
        Kind.TARGET_EXECUTED_BEYOND, f"mtsd position set gtid:{SOURCE_UUID}:1-9 --forward;",
        starting(FilePosition("binlog.000002", 700)),
        replace(SOURCE, before=GtidSet.parse(f"{SOURCE_UUID}:1-7")),
        target({"gtid_executed": f"{SOURCE_UUID}:8-9"}),
    ),
    Case(
        Kind.OTHER_SOURCE_NOT_KNOWN_BY_GTID, "is not known by GTID",
        target=at(source_uuid=TARGET_UUID, in_doubt=(replace(DOUBT, statement=b"DROP TABLE t"),)),
    ),
    Case(
        Kind.OTHER_SOURCE_NOT_REPAIRED, f"groups 8 to 9 of the previous one, {TARGET_UUID}",
        target=at(
            source_uuid=TARGET_UUID, schema_version=UNORDERED_VERSION,
            workers=(replace(PAST, executed=ExecutedGroups(8).with_numbers([9]), gtids=GtidSet()),),
        ),
    ),
    Case(
        Kind.SOURCE_ON_ANOTHER_CHANNEL, "channel 'old' of this target",
        target=tables(channels=(Channel("", SOURCE_UUID), Channel("old", SOURCE_UUID.upper()))),
    ),
    Case(
        Kind.FILTERS_MEET, "let database shop pass",
        settings=filtered(do_db=("shop",)),
        target=tables(
            channels=(
                Channel("", SOURCE_UUID),
                Channel("old", SOURCE_UUID, Rules(ignore_db=("office",))),
            )
        ),
    ),
    Case(Kind.FILTER, "do_db = ['shop']; an XA", settings=filtered(do_db=("shop",))),
    Case(
        Kind.FILTER_BY_SESSION, "MIXED, and do_db judges",
        settings=filtered(do_db=("shop",)), source=source({"binlog_format": "MIXED"}),
    ),
    Case(
        Kind.FILTER_MATCHES_NOTHING, "matches do_db 'shpo', wild_ignore_table 'office.%'",
        settings=filtered(do_db=("shop", "shpo"), wild_ignore_table=("office.%", "shop.o%")),
    ),
    Case(
        Kind.FILTER_MATCHES_NOTHING, "rewrite_db 'store', rewrite_db 'SHOP'",
        settings=filtered(rewrite_db=(("store", "shop"), ("SHOP", "b"), ("shop", "c"))),
    ),
    Case(Kind.ROWS_AS_SQL, "position in the table", target_settings(apply_mode="sql")),
    Case(
        Kind.ROWS_AS_SQL, "their names", target_settings(apply_mode="sql"),
        source({"binlog_row_metadata": "FULL"}),
    ),
    Case(
        Kind.POSITION_TABLES_PARTIAL, "slave_worker_info, slave_in_doubt missing in",
        target=tables(engines={"slave_relay_log_info": "InnoDB"}, channel=None, filled=True),
    ),
    Case(
        Kind.POSITION_TABLES_NEW, "",
        target=tables(engines={"slave_relay_log_info": "InnoDB"}, channel=None),
    ),
    Case(Kind.POSITION_ROW_LOST, "channel '' in mtsd.", target=tables(channel=None, remains=True)),
    Case(Kind.POSITION_WORKERS_LOST, "workers 1, 2: nothing", target=at(worker_count=2)),
    Case(
        Kind.POSITION_UNREADABLE, "Executed_gtid_set of channel 'c' in mtsd.t holds 'x'",
        target=tables(
            channel=None,
            unreadable=refuse(
                UNREADABLE, column="Executed_gtid_set", channel="c", schema="mtsd", table="t",
                held="x",
            ),
        ),
    ),
    Case(
        Kind.POSITION_ROW_OLDER, "but to group 700 by slave_worker_info",
        target=at(workers=(replace(PAST, executed=ExecutedGroups(701)),)),
    ),
    Case(
        Kind.POSITION_COPIED, f"another server, {SOURCE_UUID} (old:3306)",
        target=tables(home=TargetIdentity(SOURCE_UUID, "old:3306")),
    ),
    Case(
        Kind.TARGET_MOVED, "was old:3306 at",
        target=tables(home=TargetIdentity(TARGET_UUID, "old:3306")),
    ),
    Case(
        Kind.POSITION_TABLES_ALTERED, "mtsd.slave_relay_log_info are not those",
        target=tables(columns={**COLUMNS_OF, "slave_relay_log_info": ("Id", "More")}),
    ),
    Case(Kind.POSITION_TABLES_VERSION, "version 99", target=at(schema_version=99)),
    Case(
        Kind.POSITION_TABLES_ENGINE, "slave_worker_info in mtsd are not InnoDB",
        target=tables(
            engines={**tables().position.engines, "slave_worker_info": "MyISAM"}
        ),
    ),
    Case(
        Kind.POSITION_UNSEEN, "SELECT command denied",
        target=tables(refused="SELECT command denied", channel=None),
    ),
    Case(
        Kind.REPAIR_LEFT, "until groups 8 to 9 have been applied",
        target=UNORDERED,
    ),
    Case(
        Kind.STOPPED_GROUP,
        "group 8, ending at binlog.000002:800, GTID none, stopped the replica at 2026-01-02"
        " 03:04:05 UTC, and the next start applies it again: error 1062",
        target=at(stopped=STOPPED),
    ),
    Case(Kind.IN_DOUBT, "8 (ddl)", target=at(in_doubt=(replace(DOUBT, evidence=EVIDENCE),))),
    Case(
        Kind.IN_DOUBT, "8 (ddl)", target=at(in_doubt=(replace(DOUBT, target_file="log.000001"),))
    ),
    Case(
        Kind.IN_DOUBT_WITHOUT_EVIDENCE, "mtsd resolve --group 8", target=at(in_doubt=(DOUBT,))
    ),
    Case(
        Kind.IN_DOUBT_LOG_PURGED, "purged log.000001",
        target=replace(
            at(in_doubt=(replace(DOUBT, target_file="log.000001"),)), files=("log.000002",)
        ),
    ),
    Case(
        Kind.IN_DOUBT_LOG_OTHER, "another binlog now at log.000001:4", target=IN_ANOTHER_LOG
    ),
    Case(Kind.IN_DOUBT_CRASHED, "been restarted since", target=CRASHED),
    Case(
        Kind.IN_DOUBT_NON_TRANSACTIONAL, "part of it may have been applied",
        target=at(in_doubt=(replace(DOUBT, kind="non_transactional", evidence=EVIDENCE),)),
    ),
    Case(
        Kind.POLICY_CHOSEN, '"auto" comes to "logical_clock": MySQL 9.7.0 logs which rows',
        replica(parallel_type="auto"),
    ),
    Case(
        Kind.CHANGED_AS_WHOLE, "changes of 1 table are applied", replica(parallel_type="auto"),
        source({"binlog_transaction_dependency_tracking": "COMMIT_ORDER"}, version=(8, 0, 40)),
        replace(
            TARGET,
            changed_as_whole={"a.t": "no key"},
            position=replace(TARGET.position, chosen=ChosenPolicy("row", "it was chosen before")),
        ),
    ),
    Case(
        Kind.NO_LOGICAL_CLOCK, "MariaDB 11.8.1 logs no logical clock",
        replica(parallel_type="logical_clock"), MARIADB_SOURCE, MARIADB_TARGET,
    ),
    Case(
        Kind.NO_LOGICAL_CLOCK, 'set [replica] parallel_type = "database" or "table"',
        replica(parallel_type="logical_clock"), source(version=(5, 6, 51)),
    ),
    Case(
        Kind.CLOCK_OF_COMMITS, "= 'WRITESET' on the source",
        replica(parallel_type="logical_clock"),
        source({"binlog_transaction_dependency_tracking": "COMMIT_ORDER"}, version=(8, 0, 40)),
    ),
    Case(
        Kind.NO_COMMIT_PARENT, "MySQL 5.6.51 logs no commit parents",
        replica(parallel_type="commit_parent"), source(version=(5, 6, 51)),
    ),
    Case(
        Kind.MERGED_WITHOUT_ORDER, "one database of several (a and b as x)",
        replace(
            filtered(rewrite_db=(("a", "x"), ("b", "x"), ("c", "z"))),
            replica=replica(parallel_type="logical_clock").replica,
        ),
    ),
    Case(
        Kind.MERGED_WITHOUT_ORDER, "one database of several (a and shop as shop)",
        replace(
            filtered(rewrite_db=(("a", "shop"),)),
            replica=replica(parallel_type="commit_parent").replica,
        ),
    ),
    Case(
        Kind.LOCKS_UNOBSERVED, "performance_schema is OFF",
        replica(consistency="any_time"),
        target=target(variables={"performance_schema": "OFF"}),
    ),
    Case(
        Kind.LOCKS_UNREADABLE, "GRANT PROCESS ON *.* TO 'mtsd'@'%'",
        replica(consistency="any_time"),
    ),
    Case(
        Kind.LOCKS_UNREADABLE, "GRANT SELECT ON `performance_schema`.* TO 'mtsd'@'%'",
        replica(consistency="any_time"),
        target=target(grants=(
            EVERYTHING[0].replace("SELECT, ", ""), EVERYTHING[1],
            "GRANT PROCESS ON *.* TO `u`@`%`",
        )),
    ),
    Case(
        Kind.KEYS_NOT_LOGGED, "binlog_row_image = MINIMAL leaves out former values of keys",
        replica(parallel_type="row"), source({"binlog_row_image": "MINIMAL"}),
    ),
    Case(
        Kind.ROWS_NOT_WHOLE, "binlog_row_image = MINIMAL: consistency",
        replica(consistency="eventual"), source({"binlog_row_image": "MINIMAL"}),
    ),
    Case(
        Kind.ROWS_NOT_WHOLE, "binlog_row_value_options = PARTIAL_JSON: consistency",
        replica(consistency="eventual"), source({"binlog_row_value_options": "PARTIAL_JSON"}),
    ),
    Case(
        Kind.NEWER_ROW_NOT_WHOLE, "binlog_row_image = NOBLOB, and newer_row_column",
        replica(consistency="eventual", newer_row_column="changed_at"),
        source({"binlog_row_image": "NOBLOB"}),
    ),
    Case(
        Kind.CHANGED_AS_WHOLE, "changes of 1 table are applied one after another: a.t (no key)",
        replica(parallel_type="row"),
        target=replace(TARGET, changed_as_whole={"a.t": "no key"}),
    ),
    Case(
        Kind.XA_UNLOGGED, "set [target] binary_log = true", target_settings(binary_log=False)
    ),
    Case(
        Kind.XA_ATTACHED, "version 8.0.28",
        target=target(version=(8, 0, 28), version_text="8.0.28"),
    ),
    Case(
        Kind.XA_UNLISTED, "GRANT XA_RECOVER_ADMIN ON *.* TO 'mtsd'@'%'",
        target=target(grants=(EVERYTHING[0], EVERYTHING[1].replace(",XA_RECOVER_ADMIN", ""))),
    ),
    Case(
        Kind.SPLIT_UNLOGGED, "set [target] binary_log = true",
        replace(SPLITTING, target=target_settings(binary_log=False).target),
    ),
    Case(
        Kind.SPLIT_ATTACHED, "version 8.0.28", SPLITTING,
        target=target(version=(8, 0, 28), version_text="8.0.28"),
    ),
    Case(
        Kind.SPLIT_UNLISTED, "GRANT XA_RECOVER_ADMIN ON *.* TO 'mtsd'@'%'", SPLITTING,
        target=target(grants=(EVERYTHING[0], EVERYTHING[1].replace(",XA_RECOVER_ADMIN", ""))),
    ),
    Case(
        Kind.SPLIT_ON_MARIADB, "needs a MySQL as the target", SPLITTING,
        target=MARIADB_TARGET,
    ),
    Case(
        Kind.PREPARED_BEFORE, "1 transaction already prepared: X'61',X'',1; ",
        starting(Latest()), source=replace(SOURCE, prepared=frozenset({XID})),
    ),
    Case(
        Kind.XIDS_TAKEN, "2 transactions prepared there, but not by mtsd: X'61',X'',1, X'62'",
        target=replace(TARGET, prepared=frozenset({XID, XID._replace(gtrid=b"b")})),
    ),
    Case(
        Kind.XID_FORMATS, "different format ids are prepared (1, 9)",
        source=replace(SOURCE, prepared=frozenset({XID._replace(format_id=9)})),
        target=replace(TARGET, prepared=frozenset({XID})),
    ),
    Case(
        Kind.XIDS_GONE, "1 transaction that mtsd has prepared there no longer prepared: X'61'",
        target=replace(
            tables(prepared=(PreparedRow(XID, 3, ("shop",), alone=False, changes=True),)),
            prepared=frozenset(),
        ),
    ),
    Case(Kind.GTIDS, "source ON, target ON; read by file and position; the target does not learn"),
    Case(Kind.GTIDS, "read by GTID", target=at(position=Position("", 0))),
    Case(Kind.GTIDS, "read by GTID", target=at(source_uuid=TARGET_UUID)),
    Case(Kind.GTIDS, "not read", starting(None)),
    Case(Kind.GTIDS, "read by file and position", target=at(gtids=None)),
    Case(Kind.GTIDS, "keep their GTIDs", target_settings(gtid="preserve")),
    Case(Kind.GTIDS, "at each checkpoint", target_settings(gtid="mirror", binary_log=False)),
    Case(
        Kind.SOURCE_GTIDS_PARTLY, "ON_PERMISSIVE", source=source({"gtid_mode": "ON_PERMISSIVE"})
    ),
    Case(Kind.TARGET_WITHOUT_GTIDS, "OFF: ", target=target({"gtid_mode": "OFF"})),
    Case(
        Kind.GTIDS_NEEDED, "the target's gtid_mode is not ON", target_settings(gtid="preserve"),
        target=target({"gtid_mode": "OFF"}),
    ),
    Case(Kind.MIRROR_WITH_BINLOG, "twice", target_settings(gtid="mirror")),
    Case(
        Kind.NOTHING_TO_MIRROR, "OFF: there", target_settings(gtid="mirror", binary_log=False),
        source({"gtid_mode": "OFF"}),
    ),
    Case(
        Kind.GTIDS_NEEDED, "the source's gtid_mode is not ON",
        target_settings(gtid="preserve"), source({"gtid_mode": "OFF"}),
    ),
    Case(
        Kind.GTID_CONSISTENCY, "WARN on the source",
        source=source({"enforce_gtid_consistency": "WARN"}),
    ),
    Case(Kind.WRITABLE, "OFF"),
    Case(
        Kind.WRITABLE, "ON, but 'mtsd'@'%' may write",
        target=target(
            {"read_only": "ON"}, grants=(*EVERYTHING, "GRANT CONNECTION_ADMIN ON *.* TO `mtsd`@`%`")
        ),
    ),
    Case(
        Kind.SUPER_READ_ONLY, "1290", target=target({"read_only": "ON", "super_read_only": "ON"})
    ),
    Case(Kind.READ_ONLY, "GRANT CONNECTION_ADMIN", target=target({"read_only": "ON"})),
    Case(
        Kind.READ_ONLY, "GRANT READ_ONLY ADMIN ON *.* TO 'mtsd'@'%'",
        target=target({"read_only": "ON"}, flavour=Flavour.MARIADB, version=(11, 8, 1)),
    ),
    Case(Kind.SECURE_TIMESTAMP, "1290", target=target({"secure_timestamp": "YES"})),
    Case(Kind.NATIVE_REPLICA, "channel 'shop' of its own", target=target(own_channels=(NATIVE,))),
    Case(
        Kind.NATIVE_REPLICA_CONFIGURED, "applies nothing now",
        target=target(own_channels=(replace(NATIVE, applying=False),)),
    ),
    Case(
        Kind.NATIVE_REPLICA_UNKNOWN, "is not connected",
        target=target(own_channels=(replace(NATIVE, source_uuid="", source_server_id=0),)),
    ),
    Case(
        Kind.NATIVE_REPLICA_UNSEEN, "Access denied",
        target=target(own_channels_refused="Access denied"),
    ),
    Case(
        Kind.PASSES_OVER, "slave_exec_mode = IDEMPOTENT", source=MARIADB_SOURCE,
        target=replace(
            MARIADB_TARGET, server=replace(
                MARIADB_TARGET.server,
                variables={**MARIADB_TARGET.server.variables, "slave_exec_mode": "IDEMPOTENT"},
            ),
        ),
    ),
    Case(Kind.PASSES_OVER, "holds for", target=target({"replica_skip_errors": "1032"})),
    Case(Kind.RENAMES, "a->b", target=target({"replicate_rewrite_db": "a->b"})),
    Case(Kind.OTHER_ENGINE, "Aria", target=target({"enforce_storage_engine": "Aria"})),
    Case(Kind.FIRES_TRIGGERS, "= YES", target=target({"slave_run_triggers_for_rbr": "YES"})),
    Case(Kind.CIRCLE, "channel 'back'", source=replace(SOURCE, feeding=(FEEDING,))),
    Case(
        Kind.CIRCLE_IF_BOTH_RUN, "does not run now",
        source=replace(SOURCE, feeding=(replace(FEEDING, runs=False),)),
    ),
    Case(
        Kind.CIRCLE_BY_REPLICA, "the source's own replica",
        source=source(own_channels=(replace(NATIVE, source_uuid=TARGET_UUID),)),
    ),
    Case(
        Kind.CIRCLE_UNSEEN, "GRANT SELECT ON mtsd.* on the source to user 'repl'@'%'",
        source=source(grants=(REPLICATION,)),
    ),
    Case(
        Kind.CIRCLE_UNSEEN, "SELECT ON other.*", source=replace(SOURCE, feeding_hidden=("other",)),
    ),
    Case(Kind.SESSIONS, "149 free, mtsd needs 5"),
    Case(
        Kind.SESSIONS, "149 free, mtsd needs 6", settings=replica(parallel_type="row"),
    ),
    Case(
        Kind.TOO_FEW_SESSIONS, "max_user_connections = 4, but mtsd needs 5",
        target=target({"max_user_connections": "4"}),
    ),
    Case(Kind.SESSIONS_SCARCE, "2 of 151", target=target(threads_connected=150)),
    Case(
        Kind.FAR_AWAY, "takes 21 ms", target=replace(target(), round_trip_s=0.0212),
    ),
    Case(Kind.PACKET, "64 MiB: row events up to 44.8 MiB"),
    Case(
        Kind.PACKET_SMALL, "4 MiB, less than the source's 64 MiB: a row event over 2.8 MiB",
        target=target({"max_allowed_packet": str(4 * MIB)}),
    ),
    Case(
        Kind.BATCH_CUT, "up to 2.8 MiB in one statement",
        target=target({"max_allowed_packet": str(4 * MIB)}),
    ),
    Case(Kind.PENDING, "64 MiB; "),
    Case(
        Kind.PENDING_SMALL, "pending_jobs_size_max = 67108864",
        replica(pending_jobs_size_max=32 * MIB),
    ),
    Case(
        Kind.TARGET_STATEMENT_FORMAT, "1665", target=target({"binlog_format": "STATEMENT"})
    ),
    Case(
        Kind.NO_LOCAL_FILES, "3948", source=source({"binlog_format": "STATEMENT"}),
        target=target({"local_infile": "OFF"}),
    ),
    Case(
        Kind.VARIABLE_DIFFERS, "InnoDB on the source, MyISAM on the target",
        target=target({"default_storage_engine": "MyISAM"}),
    ),
    Case(
        Kind.VARIABLE_DIFFERS, "OFF on the source, ON on the target",
        source=source({"innodb_strict_mode": "OFF"}),
    ),
    Case(
        Kind.VARIABLE_DIFFERS, "ON on the source, OFF on the target: a REVOKE of a part",
        source=source({"partial_revokes": "ON"}),
    ),
    Case(
        Kind.VARIABLE_DIFFERS, "4 on the source, 10 on the target: a division in a statement",
        source=source({"binlog_format": "MIXED", "div_precision_increment": "4"}),
        target=target({"div_precision_increment": "10"}),
    ),
    Case(
        Kind.DEFAULT_COLLATION, "SET GLOBAL character_set_collations = '' on the source",
        source=source(
            {
                "gtid_binlog_state": "", "gtid_slave_pos": "",
                "character_set_collations": "utf8mb3=utf8mb3_bin,utf8mb4=utf8mb4_uca1400_ai_ci",
            },
            flavour=Flavour.MARIADB,
        ),
        target=target(flavour=Flavour.MARIADB, version=(10, 11, 9)),
    ),
    Case(
        Kind.UTF8_DIFFERS, "let old_mode of the target have UTF8_IS_UTF8MB3",
        target=target(
            {"old_mode": "NO_PROGRESS_INFO"}, flavour=Flavour.MARIADB, version=(10, 11, 9)
        ),
    ),
    Case(
        Kind.UTF8_DIFFERS, "let old_mode of the source have UTF8_IS_UTF8MB3",
        source=source(
            {"gtid_binlog_state": "", "gtid_slave_pos": "", "old_mode": ""},
            flavour=Flavour.MARIADB, version=(10, 11, 9),
        ),
    ),
    Case(
        Kind.NAMES_COLLIDE, "2 tables of the source whose names",
        source=source(tables=(MYISAM, replace(MYISAM, name="LOG"))),
        target=target({"lower_case_table_names": "1"}),
    ),
    Case(
        Kind.LOWER_CASE, "1 on the source, 0 on the target: a definition or statement with",
        source=source({"lower_case_table_names": "1"}),
    ),
    Case(
        Kind.LOWER_CASE, "0 on the source, 1 on the target: tables whose names",
        target=target({"lower_case_table_names": "1"}),
    ),
    Case(Kind.TIME_ZONES, "known by name on the target"),
    Case(
        Kind.TIME_ZONES, "neither", source=source(time_zones=False), target=target(time_zones=False)
    ),
    Case(Kind.NO_TIME_ZONES, "1298", target=target(time_zones=False)),
    Case(
        Kind.TIME_ZONE_UNKNOWN, "Europe/Berlin", source=source({"time_zone": "Europe/Berlin"}),
        target=target(time_zones=False),
    ),
    Case(
        Kind.SYSTEM_TIME_ZONE, "CET there and UTC", source=source({"system_time_zone": "CET"})
    ),
    Case(Kind.CLOCK, "0.0 s"),
    Case(Kind.CLOCK_OFF, "61.0 s ahead of", source=source(clock_offset=61.0)),
    Case(Kind.TABLES, "1 table, all transactional and with a key"),
    Case(Kind.TABLES_UNSEEN, "'repl'@'%'", source=source(tables=(), grants=(REPLICATION,))),
    Case(
        Kind.NON_TRANSACTIONAL, "1 table not transactional: shop.log",
        source=source(tables=(MYISAM,)),
    ),
    Case(
        Kind.TARGET_ENGINE, "shop.log",
        source=source(tables=(replace(MYISAM, transactional=True),)),
        target=target(tables=(MYISAM,)),
    ),
    Case(
        Kind.BLACKHOLES, "shop.log",
        source=source(tables=(replace(MYISAM, transactional=True),)),
        target=target(tables=(replace(MYISAM, is_blackhole=True),)),
    ),
    Case(Kind.NO_KEY, "shop.visits", source=source(tables=(KEYLESS,))),
    Case(
        Kind.NO_KEY, "shop.visits", source=source(tables=(), grants=(REPLICATION,)),
        target=target(tables=(KEYLESS,)),
    ),
    Case(
        Kind.MISSING_TABLES, 'shop.orders; and mtsd starts at "latest"', starting(Latest()),
        target=target(tables=()),
    ),
    Case(
        Kind.MISSING_TABLES, 'starts at "binlog.000002:4"',
        starting(FilePosition("binlog.000002", 4)), target=target(tables=()),
    ),
    Case(
        Kind.MISSING_TABLES, 'starts at "gtid:', starting(GtidStart(f"{SOURCE_UUID}:1-5")),
        target=target(tables=()),
    ),
    Case(
        Kind.MISSING_TABLES, "continues at binlog.000002:700",
        target=replace(at(), server=target(tables=()).server),
    ),
    Case(Kind.NO_TABLES, "none yet", source=source(tables=())),
    Case(
        Kind.NOT_COPIED, 'starts at "latest"', starting(Latest()),
        source(tables=(), grants=(REPLICATION,)), target(tables=()),
    ),
    Case(
        Kind.FOREIGN_KEYS, "1 foreign key from another database: a.t -> b.u",
        source=source(foreign_keys_across=("a.t -> b.u",)),
    ),
    Case(
        Kind.FOREIGN_KEYS_JOIN,
        "2 foreign keys from one database to another: a.t -> c.u, a.t -> b.u",
        source=replace(
            MARIADB_SOURCE,
            server=replace(MARIADB_SOURCE.server, foreign_keys_across=("a.t -> b.u",)),
        ),
        target=target(foreign_keys_across=("a.t -> c.u",)),
    ),
    Case(
        Kind.CASCADES, "1 foreign key with cascades",
        target=target({"innodb_native_foreign_keys": "OFF"}, cascades=("a.t -> a.u",)),
    ),
    Case(
        Kind.VERSIONED, "1 table with system versioning",
        source=replace(
            MARIADB_SOURCE,
            server=replace(
                MARIADB_SOURCE.server, version=(11, 4, 9), versioned=("shop.orders", "shop.new"),
            ),
        ),
        target=target(flavour=Flavour.MARIADB, version=(11, 8, 1), versioned=("shop.orders",)),
    ),
    Case(
        Kind.VERSIONED_AS_SQL, "1 table with system versioning", source=MARIADB_SOURCE,
        target=target(flavour=Flavour.MARIADB, version=(11, 8, 1), versioned=("shop.orders",)),
        settings=target_settings(apply_mode="sql"),
    ),
    Case(
        Kind.NOT_GENERATED, "1 table with generated columns",
        source=replace(
            MARIADB_SOURCE, server=replace(MARIADB_SOURCE.server, generated=("shop.orders",)),
        ),
        target=target(flavour=Flavour.MARIADB, version=(10, 11, 9), tables=()),
    ),
    Case(Kind.TRIGGERS, "0 triggers"),
    Case(
        Kind.TRIGGERS, "1 trigger", source=source(triggers=("shop.t",)),
        target=target(triggers=("shop.t",)),
    ),
    Case(Kind.OWN_TRIGGERS, "shop.t;", target=target(triggers=("shop.t",))),
    Case(
        Kind.TRIGGERS_REFUSED, "shop.t;", target=target(triggers=("shop.t",)),
        settings=target_settings(apply_mode="sql"),
    ),
    Case(
        # What is applied once more is applied as SQL, whatever the setting.
        Kind.TRIGGERS_REFUSED, "shop.t;",
        target=replace(UNORDERED, server=replace(UNORDERED.server, triggers=("shop.t",))),
        settings=target_settings(apply_mode="binlog"),
    ),
    Case(
        Kind.POSITION_SCHEMA_REACHED, "through shop.v:",
        source=replace(
            MARIADB_SOURCE,
            server=replace(
                MARIADB_SOURCE.server,
                variables={**MARIADB_SOURCE.server.variables, "binlog_format": "MIXED"},
            ),
        ),
        target=replace(MARIADB_TARGET, reaching=("shop.v",)),
    ),
    Case(Kind.EVENTS, "OFF", target=target({"event_scheduler": "OFF"}, events=("shop.e",))),
    Case(Kind.EVENTS, "none", target=target(events=("shop.e",))),
    Case(
        Kind.EVENTS_TWICE, "1 event enabled: shop.e;", source=source(events=("shop.e",)),
        target=target(events=("shop.e", "shop.own")),
    ),
    Case(
        Kind.EVENTS_TWICE, "shop.e", source=source(grants=(REPLICATION,)),
        target=target(events=("shop.e",)),
    ),
    Case(
        Kind.COLUMNS, "1 table on both", source=source(columns=columns(column("int"))),
        target=target(columns=columns(column("int"), column("date", "extra"))),
    ),
    Case(
        Kind.COLUMNS_REFUSED,
        "1 column to which the target cannot apply the source's rows (1677): shop.orders.c"
        " (int; there bigint); give it the source's type (ALTER TABLE on the target), or SET"
        " PERSIST replica_type_conversions = 'ALL_NON_LOSSY' there; unless",
        source=source(columns=columns(column("int"))),
        target=target({"replica_type_conversions": ""}, columns=columns(column("bigint"))),
    ),
    Case(
        Kind.COLUMNS_REFUSED, "or SET GLOBAL slave_type_conversions = 'ALL_NON_LOSSY' there",
        source=source(columns=columns(column("int"))),
        target=target({"slave_type_conversions": ""}, columns=columns(column("bigint"))),
    ),
    Case(
        Kind.COLUMNS_REFUSED, "2 columns to which",
        source=source(columns=columns(column("date"), column("bigint", "d"), column("int", "e"))),
        target=target(
            {"replica_type_conversions": "ALL_NON_LOSSY"},
            columns=columns(column("int"), column("int", "d"), column("bigint", "e")),
        ),
    ),
    Case(
        Kind.COLUMNS_CUT, "shop.orders.c (bigint; there int)",
        source=source(columns=columns(column("bigint"))),
        target=target(
            {"replica_type_conversions": "ALL_LOSSY"}, columns=columns(column("int"))
        ),
    ),
    Case(
        Kind.COLUMNS_MISREAD, "shop.orders.c (int unsigned; there int)",
        source=source(columns=columns(column("int unsigned"))),
        target=target(columns=columns(column("int"))),
    ),
    Case(
        Kind.COLUMNS_MISREAD, "bytes have another meaning on the target: shop.orders.d",
        source=source(columns=columns(
            column("char(4)", "c", "utf8mb3_bin"), column("char(4)", "d", "latin1_bin"),
        )),
        target=target(columns=columns(
            column("char(4)", "c", "utf8mb4_bin"), column("char(4)", "d", "utf8mb4_bin"),
        )),
    ),
    Case(
        Kind.COLUMNS_MISREAD, "bytes have another meaning on the target: shop.orders.d",
        source=source(columns=columns(column("enum('a')"), column("enum('a','b')", "d"))),
        target=target(columns=columns(column("enum('a','b')"), column("enum('b','a')", "d"))),
    ),
    Case(
        Kind.COLUMNS_MOVED, "shop.orders.a (a; there b)",
        source=source(columns=columns(column("int", "a"), column("int", "b"))),
        target=target(columns=columns(column("int", "b"), column("int", "a"))),
    ),
    Case(
        Kind.COLUMNS_BY_ZONE, "1 column generated from a TIMESTAMP: shop.orders.d;",
        settings=replace(
            target_settings(apply_mode="sql"),
            replica=replace(SETTINGS.replica, newer_row_column="at"),
        ),
        source=source(columns=columns(column("timestamp", "at"), column("datetime", "d"))),
        target=target(
            columns=columns(column("timestamp", "at"), column("datetime", "d")),
            expressions={"shop.orders": {"d": "`at`", "e": "(`d` + 1)"}},
        ),
    ),
    Case(
        Kind.COLUMNS_BY_DEFAULT_ZONE, "in its own time_zone, SYSTEM (+05:00 on the source)",
        source=source(
            {"time_zone": "+05:00"},
            columns=columns(column("timestamp", "at"), column("datetime", "d")),
        ),
        target=target(
            {"time_zone": "SYSTEM"},
            columns=columns(column("timestamp", "at"), column("datetime", "d")),
            expressions={"shop.orders": {"d": "`at`"}},
        ),
    ),
    Case(
        Kind.COLUMNS_FEWER, "1 table with fewer columns than on the source: shop.orders",
        source=source(columns=columns(column("int", "a"), column("int", "b"))),
        target=target(columns=columns(column("int", "a"))),
    ),
)  # fmt: skip


def _lost(cause: BaseException) -> ConnectionLostError:
    error = CannotConnectError("source", f"127.0.0.1:3306: {cause}")
    error.__cause__ = cause
    return error


def _bad_certificate() -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError("certificate verify failed")
    error.verify_message = "self-signed certificate"
    return error


ENDPOINT = EndpointSettings(user="repl", host="db1", connect_timeout=2.0)


def _explained(error: SessionRefusedError | ServerError | ConnectionLostError) -> Line:
    return unreachable("source", ENDPOINT, error)


def _unsupported(server: str, version: str) -> Line:
    refused = supported(server, version)
    assert isinstance(refused, Refused)
    return refused_line(refused)


def _greeted(greeting: str, version: str) -> Line:
    refused = other_version("source", greeting, version)
    assert refused is not None
    return refused_line(refused)


UNREACHABLE: tuple[tuple[Kind, str, object], ...] = (
    (Kind.REFUSED, "db1:3306", _explained(_lost(ConnectionRefusedError(111, "refused")))),
    (Kind.REFUSED, "db1:3306", _explained(_lost(FileNotFoundError(2, "no such file")))),
    (
        Kind.UNKNOWN_HOST, "db1 cannot be resolved (Name or service not known)",
        _explained(_lost(socket.gaierror(-2, "Name or service not known"))),
    ),
    (Kind.NO_ANSWER, "db1:3306 in 2 s", _explained(_lost(TimeoutError()))),
    (Kind.UNREACHABLE, "No route", _explained(_lost(OSError(113, "No route to host")))),
    (
        Kind.ACCESS_DENIED, "user repl is refused: Access denied",
        _explained(ServerError(1045, "28000", "Access denied for user 'repl'@'h'")),
    ),
    (
        Kind.ACCESS_DENIED, "user repl is refused: Access denied",
        _explained(
            SessionRefusedError(
                "the source refuses", 1045, ServerError(1045, "28000", "Access denied")
            )
        ),
    ),
    (
        Kind.SERVER_REFUSES, "no such plugin",
        _explained(SessionRefusedError("no such plugin", 1251)),
    ),
    (
        Kind.HOST_REFUSED, "not allowed",
        _explained(ServerError(1130, "HY000", "Host 'h' is not allowed to connect")),
    ),
    (
        Kind.SERVER_REFUSES, "Too many connections (1040); raise max_connections on the source",
        _explained(ServerError(1040, "08004", "Too many connections")),
    ),
    (
        Kind.SERVER_REFUSES, "Account is locked (3118); unlock it on the server: ALTER USER",
        _explained(
            SessionRefusedError(
                "the source refuses", 3118, ServerError(3118, "HY000", "Account is locked.")
            )
        ),
    ),
    (
        Kind.TLS_NOT_OFFERED, "offers none",
        _explained(NoTlsError("the source db1 offers no TLS")),
    ),
    (
        Kind.TLS_REQUIRED, "encrypted",
        _explained(ServerError(3159, "HY000", "insecure transport are prohibited")),
    ),
    (
        Kind.TLS_WRONG_CERTIFICATE, "self-signed", _explained(_lost(_bad_certificate())),
    ),
    (
        Kind.TLS_FAILED, "no protocols",
        _explained(_lost(ssl.SSLError(1, "no protocols available"))),
    ),
    (
        Kind.CONNECTION_LOST, "gone",
        interrupted("target", ConnectionLostError("target", "gone")),
    ),
    (
        Kind.NOT_LOOKED_AT, "full (1021); free space on the disk of the target",
        interrupted("target", ServerError(1021, "HY000", "full")),
    ),
    (Kind.TOO_OLD, "MariaDB 10.5 or later", _unsupported("source", "5.5.5-10.4.1-MariaDB")),
    (Kind.TOO_OLD, "5.6 or later", _unsupported("source", "5.5.62")),
    (Kind.TOO_OLD, "MySQL 8.0 or later", _unsupported("target", "5.7.44-log")),
    (Kind.TOO_OLD, "who knows", _unsupported("target", "who knows")),
    (Kind.OTHER_VERSION, "greeted as version 9.7.0", _greeted("9.7.0", "11.8.9-MariaDB")),
)  # fmt: skip

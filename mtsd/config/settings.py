"""The settings: every key with its kind, range and default.

Each key is checked here by itself; `mtsd.config.load` checks them against each other, and against
what this version supports.
"""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, SecretStr, TypeAdapter
from pydantic.dataclasses import dataclass, is_pydantic_dataclass
from pydantic.fields import FieldInfo

from mtsd.config import kinds
from mtsd.config.kinds import Unit
from mtsd.model.parallel_type import PolicyName

Tls = Literal["disabled", "preferred", "required", "verify_ca", "verify_identity"]
SemiSync = Literal["off", "applied"]
ApplyMode = Literal["auto", "binlog", "sql"]
GtidMode = Literal["auto", "mirror", "preserve", "off"]
Definer = Literal["source", "current_user"]
SystemSchemas = Literal["refuse", "replicate"]
ParallelType = Literal["auto", PolicyName]
Consistency = Literal["any_time", "partition", "eventual"]
ExecMode = Literal["auto", "strict", "idempotent"]
OnError = Literal["exit", "stay"]
Ordering = Literal["partition", "alone"]
SplitTransactions = Literal["off", "table", "row"]
LogLevel = Literal["debug", "info", "warning", "error", "critical"]
LogFormat = Literal["auto", "console", "json"]

# What the servers allow for the settings with the same names (MySQL manual, "Replica Server
# Options and Variables") is allowed here too.
_YEAR = 31_536_000
_MILLISECONDS_IN_U32 = 4_294_967.295
_GIB = 2**30


_STRICT = ConfigDict(
    extra="forbid",
    strict=True,
    allow_inf_nan=False,
    hide_input_in_errors=True,
)


@dataclass(frozen=True, slots=True, kw_only=True, config=_STRICT)
class EndpointSettings:
    """How to reach a server; source and target share these keys."""

    host: kinds.Host = "127.0.0.1"
    """Name or address of the server. Not together with unix_socket."""

    port: kinds.Port = 3306
    """TCP port of the server."""

    unix_socket: kinds.SocketPath = None
    """Path of the server's Unix socket, instead of host and port."""

    user: kinds.User = "mtsd"
    """Account to log in with."""

    password: kinds.Secret = SecretStr("")
    """The account's password. Not together with password_file. After loading, it is here
    regardless of where it came from."""

    password_file: kinds.FilePath = None
    """A file that contains the password and nothing else; a trailing newline is dropped."""

    tls: Tls = "preferred"
    """Encryption, as with the servers' --ssl-mode: only verify_ca and verify_identity protect
    against an impostor, who else gets the password."""

    tls_ca: kinds.FilePath = None
    """PEM file of the certificate authorities to trust; "": the system's."""

    tls_cert: kinds.FilePath = None
    """PEM file of the certificate to present to the server. Together with tls_key."""

    tls_key: kinds.FilePath = None
    """PEM file of the key of tls_cert, without a passphrase."""

    server_public_key: kinds.FilePath = None
    """A copy of the server's public_key.pem: without TLS, the password is encrypted with it."""

    get_public_key: bool = False
    """Without TLS and server_public_key: encrypt the password with the key that the server sends,
    as with the servers' --get-server-public-key. An impostor sends his own."""

    clear_password: bool = False
    """Send the password in clear text if the server asks for it (mysql_clear_password), as with
    the servers' --enable-cleartext-plugin, also without verify_ca and verify_identity."""

    connect_timeout: Annotated[float, Unit("seconds"), Field(ge=0.1, le=3600)] = 10.0
    """How long to wait for the connection and login."""

    @property
    def address(self) -> str:
        """The address for display: HOST:PORT, or the socket's path."""
        return str(self.unix_socket) if self.unix_socket else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True, config=_STRICT)
class SourceSettings(EndpointSettings):
    """The server whose binary log is read."""

    user: kinds.User = "repl"
    """Account to log in with."""

    server_id: Annotated[int, Field(ge=1, le=2**32 - 1)] = 4201
    """This replica's own id, which must be unique among all servers and replicas."""

    start: kinds.StartText = None
    """Where to begin; needed while the target has no position, ignored afterwards."""

    allow_partial_history: bool = False
    """Let start = "earliest" begin at what is left if the source has purged its beginning."""

    heartbeat_period: Annotated[
        float, Unit("seconds"), Field(ge=0.001, le=_MILLISECONDS_IN_U32)
    ] = 5.0
    """How often an idle source sends a sign of life. mtsd reconnects if no byte arrives for
    three periods while it is reading."""

    semi_sync: SemiSync = "off"
    """applied: acknowledge a transaction to the source once the target has committed it."""

    semi_sync_limit: Annotated[float, Unit("seconds"), Field(ge=0.1, le=3600)] = 5.0
    """How long the source may wait for an acknowledgement before mtsd withdraws, until it has
    caught up."""


@dataclass(frozen=True, slots=True, kw_only=True, config=_STRICT)
class TargetSettings(EndpointSettings):
    """The server that transactions are applied to."""

    port: kinds.Port = 3307
    """TCP port of the server."""

    schema: kinds.PositionSchema = "mtsd"
    """Where the position tables live. It never replicates."""

    apply_mode: ApplyMode = "auto"
    """How rows are applied: by BINLOG statements, by SQL, or by whichever the servers allow."""

    binary_log: bool = True
    """Whether the target writes what is applied to its own binary log; false: SET
    sql_log_bin=0."""

    gtid_domain_id: Annotated[int, Field(ge=0, le=2**32 - 1)] = 0
    """MariaDB: the GTID domain of what mtsd writes to the target's binary log; 0: the target's
    server_id. It must not be a domain of the source."""

    gtid: GtidMode = "auto"
    """What the target learns of the source's GTIDs. mirror: they are added at each checkpoint;
    refused if the target writes what is applied to a binary log. preserve: each transaction is
    applied under its own GTID and none are combined. auto: mirror if the target writes no binary
    log, else off."""

    definer: Definer = "source"
    """Whose rights views, routines, triggers and events have. source: the account that they have
    on the source. current_user: [target] user, as if the source's statement named none."""


@dataclass(frozen=True, slots=True, kw_only=True, config=_STRICT)
class ReplicaSettings:
    """How transactions are scheduled and applied."""

    channel: kinds.Channel = ""
    """Name of this replication channel; needed if several replicas share a target."""

    parallel_workers: Annotated[int, Field(ge=0, le=1024)] = 4
    """Workers that apply in parallel; 0: one worker applies everything, in order."""

    parallel_type: ParallelType = "database"
    """What keeps two transactions in order: a database, table or row that both update, or what the
    source has logged of the order of their commits. auto: chosen at the first start by what both
    servers say, and kept."""

    consistency: Consistency = "partition"
    """What a reader of the target may see: any_time: only states that the source had;
    partition: the same for each partition; eventual: nothing is guaranteed before the end, as
    transactions of rows keep no order."""

    newer_row_column: kinds.ColumnName = ""
    """With consistency = "eventual": the column, of whichever tables have it, by which the newer
    row wins: a row of which the target has a greater value stays."""

    batch_groups: Annotated[int, Unit("transactions"), Field(ge=1, le=524_280)] = 512
    """Maximum number of source transactions combined into one of the target; 1: never combine."""

    batch_bytes: Annotated[int, Unit("bytes"), Field(ge=1024, le=_GIB)] = 4_194_304
    """Maximum number of binary log bytes combined into one transaction of the target."""

    pending_jobs_size_max: Annotated[int, Unit("bytes"), Field(ge=1024, le=1024 * _GIB)] = (
        67_108_864
    )
    """Bytes that may wait in the queues of all workers; a larger transaction is applied while it
    is read. The default is the source's default max_allowed_packet, so that any one event fits."""

    checkpoint_group: Annotated[int, Unit("transactions"), Field(ge=32, le=524_280)] = 8192
    """Length of the group assigned queue: maximum number of transactions between checkpoints."""

    checkpoint_period: Annotated[
        float, Unit("seconds"), Field(ge=0.001, le=_MILLISECONDS_IN_U32)
    ] = 0.3
    """Maximum time between two checkpoints."""

    transaction_retries: Annotated[int, Field(ge=0, le=2**32 - 1)] = 10
    """How often a transaction is retried after a deadlock, a lock wait timeout, an
    interruption, or while a disk of the target is full."""

    exec_mode: ExecMode = "auto"
    """idempotent: a row that already exists, or does not exist, is not an error. auto:
    idempotent if consistency is eventual, else strict."""

    skip_errors: kinds.ErrorNumbers = ()
    """The server's error numbers after which the one transaction is skipped."""

    on_error: OnError = "exit"
    """What the daemon does once an error has stopped the replica that needs a person. exit: it ends
    with exit status 3; stay: it applies nothing more, and goes on answering, so that monitoring
    sees what has happened. Restart it afterwards."""

    ddl: Ordering = "partition"
    """Whether a DDL statement is ordered within its database, or runs alone."""

    statements: Ordering = "partition"
    """The same for statement-based DML, which may read databases that the source does not list."""

    split_transactions: SplitTransactions = "off"
    """Apply the parts of one transaction in parallel. Needs consistency = "eventual"."""

    delay: Annotated[int, Unit("seconds"), Field(ge=0, le=2**31 - 1)] = 0
    """How far to stay behind the source deliberately. What has not been applied is still to be
    read: the source must keep its binary log that long."""

    stop_timeout: Annotated[float, Unit("seconds"), Field(ge=0, le=_YEAR)] = 60.0
    """How long a graceful stop may take to finish what has begun, before it is rolled back."""

    bind: kinds.NameSets = ()
    """Sets of databases; all databases of a set share one worker queue."""

    pin: kinds.Pins = ()
    """Databases with the number of the worker that applies what updates them, from 1."""

    weigh: kinds.Weights = ()
    """Databases with a weight: how many others each counts for if the least occupied worker is
    chosen."""


@dataclass(frozen=True, slots=True, kw_only=True, config=_STRICT)
class FilterSettings:
    """What is replicated, under which name. All empty: everything, under its own name."""

    do_db: kinds.Names = ()
    """Databases to replicate, and no others."""

    ignore_db: kinds.Names = ()
    """Databases not to replicate."""

    do_table: kinds.TableNames = ()
    """Tables to replicate, and no others."""

    ignore_table: kinds.TableNames = ()
    """Tables not to replicate."""

    wild_do_table: kinds.TablePatterns = ()
    """Patterns of tables to replicate, and no others."""

    wild_ignore_table: kinds.TablePatterns = ()
    """Patterns of tables not to replicate."""

    rewrite_db: kinds.Renames = ()
    """Databases that have a different name on the target."""

    system_schemas: SystemSchemas = "refuse"
    """Rows of mysql, sys and the like, on a target that asks for no grants before it applies them
    (MariaDB, MySQL before 8.0.18). refuse: the replica stops; replicate: the source is trusted."""


@dataclass(frozen=True, slots=True, kw_only=True, config=_STRICT)
class StatusSettings:
    """How to query a running daemon."""

    socket: kinds.SocketPath = Path("mtsd.sock")
    """Unix socket where the daemon answers HTTP, created with mode 0600; "": none."""

    listen: kinds.ListenAddress = ""
    """TCP address that serves /metrics, /healthz and /readyz; "": none."""

    exporter_names: bool = False
    """Let /metrics also say what mysqld_exporter says of a server's own replica, under its names
    and with the source's host: mysql_slave_status_…"""

    tables: bool = False
    """Write the state to two tables of the position schema every 5 seconds, not to the target's
    binary log: replication_applier_status_by_worker, and heartbeat as pt-heartbeat has it."""


@dataclass(frozen=True, slots=True, kw_only=True, config=_STRICT)
class LogSettings:
    """What is logged, to standard error."""

    level: LogLevel = "info"
    """The lowest level that is written."""

    format: LogFormat = "auto"
    """auto: console on a terminal, else json, one record per line."""

    summary_period: Annotated[float, Unit("seconds"), Field(ge=0, le=_YEAR)] = 600.0
    """How often one line, of level info, says how replication goes; 0: never."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings. The sections check themselves, so their checks are built once, not twice."""

    source: SourceSettings = dataclasses.field(default_factory=SourceSettings)
    target: TargetSettings = dataclasses.field(default_factory=TargetSettings)
    replica: ReplicaSettings = dataclasses.field(default_factory=ReplicaSettings)
    filter: FilterSettings = dataclasses.field(default_factory=FilterSettings)
    status: StatusSettings = dataclasses.field(default_factory=StatusSettings)
    log: LogSettings = dataclasses.field(default_factory=LogSettings)


SECTIONS: Mapping[str, type] = MappingProxyType(
    {
        "source": SourceSettings,
        "target": TargetSettings,
        "replica": ReplicaSettings,
        "filter": FilterSettings,
        "status": StatusSettings,
        "log": LogSettings,
    }
)
"""The tables of the TOML file."""


def _fields(section: type) -> Mapping[str, FieldInfo]:
    return section.__pydantic_fields__ if is_pydantic_dataclass(section) else {}


FIELDS: Mapping[str, FieldInfo] = MappingProxyType(
    {
        f"{section}.{name}": field
        for section, kind in SECTIONS.items()
        for name, field in _fields(kind).items()
    }
)
"""Every key by its path, for example `source.host`, in the order of the documentation."""


def document(settings: Settings) -> dict[str, object]:
    """Return settings by key, with types that TOML and JSON have; a secret as `kinds.HIDDEN`."""
    sections = TypeAdapter(Settings).dump_python(settings, mode="json")
    return {
        f"{section}.{name}": value
        for section, values in sections.items()
        for name, value in values.items()
    }

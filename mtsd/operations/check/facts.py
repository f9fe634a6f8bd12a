"""What was read from the two servers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from mtsd.apply.position.failed_groups import StoppedGroup
from mtsd.apply.position.handed_over_table import HandedOver
from mtsd.apply.position.in_doubt_table import InDoubt
from mtsd.apply.position.prepared_table import PreparedRow
from mtsd.apply.position.split_table import SPLIT
from mtsd.apply.position.target_identity import TargetIdentity
from mtsd.apply.session.pinning import Pinned
from mtsd.apply.tables.table_columns import TableColumn
from mtsd.model.gtid import GtidSet
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.outcome.reason import Refused
from mtsd.model.position import BEGUN_UNKNOWN
from mtsd.model.server import Flavour, ServerVersion, identity_of
from mtsd.model.xa_xid import XaXid
from mtsd.replica.guards.circles import Feeding
from mtsd.replica.guards.one_channel import Channel
from mtsd.replica.recovery.left_prepared import is_of_xa, xid_in_doubt
from mtsd.replica.recovery.left_split import branch_xids
from mtsd.replica.recovery.verdict import Verdict
from mtsd.schedule.done.worker_row import WorkerRow
from mtsd.schedule.policies.automatic import ChosenPolicy
from mtsd.wire.replica_status import ReplicaStatus

FAR_S: Final = 0.003
"""A round trip to the target that takes as long slows definitions down: see docs/benchmarks.md."""


@dataclass(frozen=True, slots=True)
class UserTable:
    """A user's table: whether it can roll back, and whether its rows can be identified."""

    schema: str
    name: str
    transactional: bool
    keyed: bool
    """Whether it has a primary key, or a unique one over columns that cannot be NULL."""
    is_blackhole: bool = False
    """Whether it keeps no rows, see `mtsd.apply.tables.blackholes`."""

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What is read from either server. Names are "schema.name"; system schemas are left out."""

    version_text: str
    version: tuple[int, int, int]
    tls_version: str
    """Such as "TLSv1.3"; "" if the connection is not encrypted."""
    tls_cipher: str
    account: str
    """The account that the server authenticated mtsd as, such as "'mtsd'@'%'"."""
    variables: Mapping[str, str]
    """Global variables by their names in lower case."""
    grants: tuple[str, ...]
    """The result of SHOW GRANTS, including active roles."""
    roles: tuple[str, ...]
    """Roles that are granted but not active."""
    tables: tuple[UserTable, ...]
    """Those that the user can see."""
    foreign_keys_across: tuple[str, ...]
    """"a.t -> b.u" for each foreign key from one database to another."""
    triggers: tuple[str, ...]
    events: tuple[str, ...]
    """Enabled ones."""
    time_zones: bool
    """Whether time zones are known by name."""
    clock_offset: float
    """Seconds that the server's clock is ahead of this machine's."""
    threads_connected: int
    own_channels: tuple[ReplicaStatus, ...]
    """The channels of the server's own replica."""
    columns: Mapping[str, Sequence[TableColumn]] = field(default_factory=dict)
    """The columns of each of `tables`, by "schema.name"."""
    flavour: Flavour = Flavour.MYSQL
    versioned: tuple[str, ...] = ()
    """Tables with system versioning."""
    cascades: tuple[str, ...] = ()
    """"a.t -> a.u" for each foreign key that changes rows of its table (CASCADE, SET NULL)."""
    expressions: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By table: the expressions of its generated columns, by name."""
    triggers_on: Mapping[str, str] = field(default_factory=dict)
    """The table of each of `triggers`."""
    generated: tuple[str, ...] = ()
    """Tables of a MariaDB with STORED generated columns, or with others and no primary key."""
    own_channels_refused: str = ""
    """Why its own replica could not be seen; "" if it could."""

    @property
    def server(self) -> ServerVersion:
        """The family and the version."""
        return ServerVersion(self.flavour, self.version)

    @property
    def identity(self) -> str:
        """What tells it from other servers, as the position tables have it."""
        return identity_of(self.flavour, self.variables)

    @property
    def place(self) -> str:
        """HOST:PORT, as it says itself."""
        return f"{self.variables.get('hostname', '')}:{self.variables.get('port', '')}"

    def on(self, variable: str) -> bool:
        """Return whether a variable exists and is ON."""
        return self.variables.get(variable, "OFF").upper() in {"ON", "1"}

    def number(self, variable: str, default: int = 0) -> int:
        """Return a variable's value as a number; `default` if it is not one."""
        text = self.variables.get(variable, "")
        return int(text) if text.isdecimal() else default


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """The source."""

    server: ServerFacts
    files: tuple[tuple[str, int], ...]
    """Its binary log files, oldest first, with their sizes in bytes."""
    files_refused: str
    """Why they could not be listed; "" if they could."""
    end: LowWaterMark | None
    """Its end, as a mark; None if the user may not query it."""
    position_schema: tuple[str, ...] | None
    """Tables of its database with the position schema's name; None if none is visible."""
    filters: tuple[str, ...]
    """binlog_do_db and binlog_ignore_db, if they are set."""
    replicas: tuple[tuple[int, str], ...]
    """server_id and UUID of each replica that reads from it, as far as the user may see them."""
    purged: GtidSet = field(default_factory=GtidSet)
    """MariaDB: what it has executed before its first binary log file."""
    prepared: frozenset[XaXid] | None = None
    """The XA transactions that it has prepared; None if the user may not list them."""
    starts_inside_group: bool = False
    """Whether [source] start is a place that is not between transactions."""
    before: GtidSet | None = None
    """What it has executed before [source] start, if that is FILE:POS; None if not known."""
    feeding: tuple[Feeding, ...] = ()
    """The positions on it of each mtsd that writes to it."""
    feeding_hidden: tuple[str, ...] = ()
    """Schemas with positions that the user may not read."""
    before_file: GtidSet | None = None
    """MySQL: the GTIDs with which the file of the position begins; None if not known."""
    file_begun: int = BEGUN_UNKNOWN
    """When that file was begun, in seconds since 1970."""


@dataclass(frozen=True, slots=True)
class ChannelFacts:
    """The channel's row on the target, and what belongs to it."""

    schema_version: int
    mark: LowWaterMark
    workers: tuple[WorkerRow, ...]
    source_uuid: str
    daemon_uuid: str
    age: float
    """Seconds since it was written."""
    in_doubt: tuple[InDoubt, ...]
    skipped: frozenset[int] = frozenset()
    """The groups that a person has skipped."""
    stopped: StoppedGroup | None = None
    """The group that stopped the last run, if it is still to be applied."""
    worker_count: int = 0
    """The workers of the last run, each of which has a row; 0: none has run from this position."""


@dataclass(frozen=True, slots=True)
class PositionFacts:
    """The position tables."""

    engines: Mapping[str, str]
    """Engine by table, of those that exist."""
    columns: Mapping[str, Sequence[str]]
    """Those of slave_worker_info."""
    filled: bool
    """Whether any table has a row, if not all tables exist."""
    channels: tuple[Channel, ...]
    """All of them, with their sources and filters."""
    channel: ChannelFacts | None
    refused: str
    """Why they could not be read; "" if they could."""
    daemon: int | None
    """The connection of the daemon that is running on the channel."""
    prepared: tuple[PreparedRow, ...] = ()
    """What any channel has prepared."""
    home: TargetIdentity | None = None
    """The server on which the channel's position is recorded to be at home."""
    remains: bool = False
    """Whether the channel has no row, but rows that prove something about it."""
    despite_executed: GtidSet = field(default_factory=GtidSet)
    """What a person wants applied, although the target has executed it."""
    chosen: ChosenPolicy | None = None
    """What parallel_type = "auto" has come to for the channel."""
    handed_over: HandedOver | None = None
    """Who applies the source instead of the channel."""
    unreadable: Refused | None = None
    """Why the channel's rows cannot be read."""

    @property
    def xids_in_doubt(self) -> frozenset[XaXid]:
        """The xids of the channel's in-doubt groups."""
        doubts = self.channel.in_doubt if self.channel is not None else ()
        xids = {xid_in_doubt(doubt) for doubt in doubts if is_of_xa(doubt)}
        if self.channel is not None:
            for doubt in doubts:
                if doubt.kind == SPLIT:
                    xids |= set(branch_xids(self.channel.daemon_uuid, doubt))
        return frozenset(xids)


@dataclass(frozen=True, slots=True)
class TargetFacts:
    """The target."""

    server: ServerFacts
    position: PositionFacts
    files: tuple[str, ...] | None
    """Its own binary log files, if they are evidence for an in-doubt group; None: not listed."""
    in_logs: Mapping[int, Verdict | Refused] = field(default_factory=dict)
    """By number, for groups in doubt of which they tell: what its binary log files show."""
    prepared: frozenset[XaXid] | None = None
    """The XA transactions that it has prepared; None if the user may not list them."""
    binlog_allowed: bool = True
    """Whether the user may run BINLOG statements."""
    changed_as_whole: Mapping[str, str] = field(default_factory=dict)
    """Tables whose keys do not tell which changes conflict, "schema.name", and why."""
    reaching: tuple[str, ...] = ()
    """Views that can be updated, triggers and routines whose text names the position schema from
    elsewhere, "schema.name", as far as the user may read it."""
    positions_elsewhere: tuple[tuple[str, str], ...] = ()
    """Other schemas with positions of mtsd, and the UUID of the source of each."""
    pinned: Pinned | Refused = field(default_factory=Pinned)
    """What a session of mtsd can be given there."""
    round_trip_s: float = 0.0
    """How long a round trip to it takes, in seconds: the shortest of some."""

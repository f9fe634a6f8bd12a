"""What was read of the two servers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mtsd.model.low_water_mark import LowWaterMark
from mtsd.schedule.worker_row import WorkerRow
from mtsd.target.position_tables import InDoubt
from mtsd.target.table_columns import TableColumn


@dataclass(frozen=True, slots=True)
class TableFacts:
    """A table of a user's: whether it can roll back, and whether its rows can be told apart."""

    schema: str
    name: str
    transactional: bool
    keyed: bool
    """It has a primary key, or a unique one over columns that cannot be NULL."""

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What is read of either server. Names are "schema.name"; system schemas are left out."""

    version_text: str
    version: tuple[int, int, int]
    tls_version: str
    """Such as "TLSv1.3"; "" where the connection is not encrypted."""
    tls_cipher: str
    account: str
    """The account that the server took us for, such as "'mtsd'@'%'"."""
    variables: Mapping[str, str]
    """Global variables by their names in lower case."""
    grants: tuple[str, ...]
    """What SHOW GRANTS says, active roles included."""
    roles: tuple[str, ...]
    """Roles that are granted and not active."""
    tables: tuple[TableFacts, ...]
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
    replicates_from: tuple[str, ...]
    """server_uuids of the sources that the server's own replica applies from right now."""
    columns: Mapping[str, Sequence[TableColumn]] = field(default_factory=dict)
    """Those of each of `tables`, by "schema.name"."""

    def on(self, variable: str) -> bool:
        """Tell whether a variable is there and ON."""
        return self.variables.get(variable, "OFF").upper() in {"ON", "1"}

    def number(self, variable: str, default: int = 0) -> int:
        """Return a variable's value as a number; `default` where it is none."""
        text = self.variables.get(variable, "")
        return int(text) if text.isdecimal() else default


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """The source."""

    server: ServerFacts
    files: tuple[tuple[str, int], ...]
    """Its binary log files, oldest first, with their sizes in bytes."""
    files_refused: str
    """Why they could not be listed; "" where they could."""
    end: LowWaterMark | None
    """Its end, as a mark; None where we may not know."""
    position_schema: tuple[str, ...] | None
    """Tables of its database with the position schema's name; None where none is seen."""
    filters: tuple[str, ...]
    """binlog_do_db and binlog_ignore_db, where they are set."""
    replicas: tuple[tuple[int, str], ...]
    """server_id and UUID of each replica that reads from it, as far as we may know."""


@dataclass(frozen=True, slots=True)
class ChannelFacts:
    """The channel's row in the target, and what belongs to it."""

    schema_version: int
    mark: LowWaterMark
    workers: tuple[WorkerRow, ...]
    source_uuid: str
    daemon_uuid: str
    age: float
    """Seconds since it was written."""
    in_doubt: tuple[InDoubt, ...]


@dataclass(frozen=True, slots=True)
class PositionFacts:
    """The position tables."""

    engines: Mapping[str, str]
    """Engine by table, of those that are there."""
    columns: tuple[str, ...]
    """Those of slave_worker_info."""
    filled: bool
    """Whether a table has a row, where not all tables are there."""
    sources: tuple[tuple[str, str], ...]
    """All channels: name, and UUID of the source."""
    channel: ChannelFacts | None
    refused: str
    """Why they could not be read; "" where they could."""
    daemon: int | None
    """Connection of the daemon that runs on the channel."""


@dataclass(frozen=True, slots=True)
class TargetFacts:
    """The target."""

    server: ServerFacts
    position: PositionFacts
    files: tuple[str, ...] | None
    """Its own binary log files, where they tell of a group in doubt; None: not listed."""

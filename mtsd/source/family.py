"""What differs between the families of servers as a source, beside their logs."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from mtsd.binlog.events import dialect
from mtsd.binlog.events.dialect import Dialect
from mtsd.model.server import NEVER, Flavour, Version


@dataclass(frozen=True, slots=True)
class SourceFamily:
    """A family of servers, as a replica finds it."""

    dialect: Dialect
    shows_binary_log: str
    """The privilege that lets a user see which files there are, and their end."""
    begins_by_state: bool
    """A dump by GTID begins where the session's variable @slave_connect_state says."""
    tells_replicas_apart: bool
    """Its list of replicas has their UUIDs."""
    marks_referred_tables: bool
    """Its log says of a table whether foreign keys refer to it."""
    names_databases: bool
    """Its log says which databases a statement changes."""
    states_timestamp_defaults: bool
    """Each statement in its log says how explicit_defaults_for_timestamp was set."""
    logs_defaults: bool
    """A minimal image of a row has the columns to which an INSERT gave their default."""
    clock_since: Version
    """Since when last_committed and sequence_number are in its log."""
    commit_parents_since: Version
    """Since when its log says which groups were prepared together."""
    without_clock: str
    """The policies to use instead of the logical clock, as a person would set them."""


_MYSQL: Final = SourceFamily(
    dialect=dialect.MYSQL,
    shows_binary_log="REPLICATION CLIENT",
    begins_by_state=False,
    tells_replicas_apart=True,
    marks_referred_tables=True,
    names_databases=True,
    states_timestamp_defaults=False,
    logs_defaults=True,
    clock_since=(5, 7, 0),
    commit_parents_since=(5, 7, 0),
    without_clock='"database" or "table"',
)
_MARIADB: Final = SourceFamily(
    dialect=dialect.MARIADB,
    shows_binary_log="BINLOG MONITOR",
    begins_by_state=True,
    # The list needs a privilege of its own, too.
    tells_replicas_apart=False,
    marks_referred_tables=False,
    names_databases=False,
    states_timestamp_defaults=True,
    logs_defaults=False,
    clock_since=NEVER,
    commit_parents_since=(0, 0, 0),
    without_clock='"commit_parent" or "database"',
)
SOURCES: Final[Mapping[Flavour, SourceFamily]] = MappingProxyType({
    Flavour.MYSQL: _MYSQL,
    Flavour.MARIADB: _MARIADB,
})  # fmt: skip

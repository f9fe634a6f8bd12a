"""What differs between the families of servers in any session, on the source and on the target.

The log has its own differences (`mtsd.binlog.events.dialect`), and so have a source
(`mtsd.source.family`) and a target (`mtsd.apply.session.family`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from mtsd.model.server import Flavour, Version
from mtsd.wire.replica_words import (
    MARIADB_REPLICA,
    MYSQL_REPLICA,
    MYSQL_SLAVE,
    SAYS_SOURCE,
    ReplicaWords,
)


@dataclass(frozen=True, slots=True)
class ServerFamily:
    """A family of servers, as any session finds it."""

    oldest: Mapping[str, Version]
    """The oldest supported version of a "source", and of a "target"."""
    supported_account: str
    """How an account is identified that mtsd can log in to, as CREATE USER has it."""
    unlimited: bytes
    """The statement that ends limits which the server sets for clients."""
    unlimited_since: Version
    """Earlier versions have no such limits."""
    replica_status: tuple[tuple[Version, str], ...]
    """The statement that shows its own replica's channels, by version, the newest first."""
    replica_words: tuple[tuple[Version, ReplicaWords], ...]
    """The other statements about its own replica, by version, the newest first."""
    shows_replica: str
    """The privilege that lets a user see them."""
    set_for_good: str
    """How a variable is set for longer than until the next restart."""
    has_domains: bool
    """Its GTIDs are of domains, which sessions choose, and all that it logs has one."""
    has_history: bool
    """Tables may have system versioning."""
    rules_ignore_case: bool
    """Its own replica's rules for tables do not distinguish names by case."""
    rules_stop_at_databases: bool
    """Its own replica's rules for tables have no say in CREATE, ALTER and DROP DATABASE."""


_MYSQL: Final = ServerFamily(
    oldest={"source": (5, 6, 0), "target": (8, 0, 0)},
    supported_account="IDENTIFIED WITH caching_sha2_password",
    # It also ends the wait for a lock.
    unlimited=b"SET @@session.max_execution_time=0",
    unlimited_since=(5, 7, 8),
    replica_status=(((8, 0, 22), "SHOW REPLICA STATUS"), ((0, 0, 0), "SHOW SLAVE STATUS")),
    replica_words=((SAYS_SOURCE, MYSQL_REPLICA), ((0, 0, 0), MYSQL_SLAVE)),
    shows_replica="REPLICATION CLIENT",
    set_for_good="SET PERSIST",
    has_domains=False,
    has_history=False,
    rules_ignore_case=False,
    rules_stop_at_databases=True,
)
_MARIADB: Final = ServerFamily(
    oldest={"source": (10, 5, 0), "target": (10, 5, 0)},
    supported_account="IDENTIFIED VIA mysql_native_password",
    # The latter, else a replica of the server may pass over what the session has logged.
    unlimited=b"SET @@session.max_statement_time=0,@@session.skip_replication=0",
    unlimited_since=(0, 0, 0),
    # Without ALL, only of the connection without a name.
    replica_status=(((0, 0, 0), "SHOW ALL SLAVES STATUS"),),
    replica_words=(((0, 0, 0), MARIADB_REPLICA),),
    shows_replica="SLAVE MONITOR",
    set_for_good="in its option file, and with SET GLOBAL:",
    has_domains=True,
    has_history=True,
    rules_ignore_case=True,
    rules_stop_at_databases=False,
)
SERVERS: Final[Mapping[Flavour, ServerFamily]] = MappingProxyType({
    Flavour.MYSQL: _MYSQL,
    Flavour.MARIADB: _MARIADB,
})  # fmt: skip

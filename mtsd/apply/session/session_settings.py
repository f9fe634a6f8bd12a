"""What a session on the target is opened with."""

from dataclasses import dataclass

from mtsd.model.server import Flavour
from mtsd.wire.traits import ServerTraits


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """What a session is opened with."""

    binary_log: bool
    """Whether the session's changes are written to the target's own binlog."""
    gtid_domain_id: int = 0
    """The domain of what it writes to the binlog of a MariaDB; 0: the target's server_id."""
    sql_mode: bytes = b"0"
    """The SQL mode between statements of the source, as an expression."""
    source: Flavour | None = None
    """The family of the source; None if it is the target's."""
    rows_as_sql: bool = False
    """Whether rows are applied as SQL, which may cascade."""
    keeps_definers: bool = True
    """Whether views, routines, triggers and events keep the definer that the source gives them."""
    about: tuple[tuple[str, str], ...] = ()
    """Attributes by which people find out whose session it is; see `Connection.open`."""
    known: ServerTraits | None = None
    """What another session of the run has found the server to be; None: it is asked."""

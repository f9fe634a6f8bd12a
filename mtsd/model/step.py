"""What a group consists of: steps, each parsed once, by the reader of the binary log."""

import enum
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mtsd.model.session import SessionContext

_DOUBLE = struct.Struct("<d")


class StatementKind(enum.Enum):
    """What kind of statement a Query event holds, as far as replication has to know."""

    BEGIN = "begin"
    COMMIT = "commit"
    ROLLBACK = "rollback"
    ROLLBACK_TO = "rollback_to"
    SAVEPOINT = "savepoint"
    RELEASE_SAVEPOINT = "release_savepoint"
    XA_START = "xa_start"
    XA_END = "xa_end"
    XA_PREPARE = "xa_prepare"
    XA_COMMIT = "xa_commit"
    XA_COMMIT_ONE_PHASE = "xa_commit_one_phase"
    XA_ROLLBACK = "xa_rollback"
    CREATE_SELECT = "create_select"
    """`CREATE TABLE … START TRANSACTION`: the rows of its SELECT follow, then Xid."""
    EVENT_DDL = "event_ddl"
    """CREATE EVENT or ALTER EVENT: see `mtsd.binlog.statement.disable_on_replica`."""
    TEMPORARY = "temporary"
    """CREATE TEMPORARY TABLE: commits nothing, and binds its source session."""
    DROP_TEMPORARY = "drop_temporary"
    """DROP TEMPORARY TABLE: commits nothing either."""
    DDL = "ddl"
    """Anything else that commits by itself."""
    DML = "dml"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class QueryEvent:
    """A statement as the source ran it.

    `exec_time` is in seconds, `timestamp` in seconds since 1970 with `microseconds` beside it
    (None: the statement did not depend on them). `updated_databases` is None where the source
    does not say; with `over_max` it says only that they are too many to be named. `invoker` is
    the (user, host) that the source ran a definition as. `ddl_xid` is the storage engines'
    transaction number of an atomic DDL.
    """

    thread_id: int
    exec_time: int
    error_code: int
    context: SessionContext
    microseconds: int | None
    database: str
    statement: bytes
    updated_databases: tuple[str, ...] | None
    over_max: bool
    invoker: tuple[bytes, bytes] | None
    ddl_xid: int | None
    timestamp: int


class IntvarKind(enum.IntEnum):
    """Which session value an Intvar event sets."""

    LAST_INSERT_ID = 1
    """What LAST_INSERT_ID() returns."""
    INSERT_ID = 2
    """The first value that AUTO_INCREMENT gives."""


@dataclass(frozen=True, slots=True)
class Intvar:
    """A session value for the next statement."""

    kind: IntvarKind
    value: int


@dataclass(frozen=True, slots=True)
class Rand:
    """The seeds of RAND() for the next statement."""

    seed1: int
    seed2: int


class UserVarType(enum.IntEnum):
    """The type of a user variable's value."""

    STRING = 0
    REAL = 1
    INT = 2
    DECIMAL = 4


@dataclass(frozen=True, slots=True)
class UserVar:
    """A user variable that the next statement reads.

    `raw` holds the value as it was written, None for NULL: bytes of the collation's character
    set, a double, an integer of 8 bytes, or precision u8, scale u8 and a packed decimal.
    """

    name: bytes
    type: UserVarType
    collation: int
    raw: bytes | None
    unsigned: bool

    def number(self) -> int | float | None:
        """Return the value of a REAL or INT variable, None for NULL and the other types."""
        if self.raw is None:
            return None
        if self.type is UserVarType.REAL:
            value: float = _DOUBLE.unpack(self.raw)[0]
            return value
        if self.type is UserVarType.INT:
            return int.from_bytes(self.raw, "little", signed=not self.unsigned)
        return None


Satellite = Intvar | Rand | UserVar
"""What the source wrote before a statement, of the session that it ran in."""


class Rows(NamedTuple):
    """Row events with the table maps before them, raw and in order, without their checksums.

    The lengths in their headers still count the checksum. A tuple, as one is made for nearly every
    transaction.
    """

    events: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement, and all that it takes from the session that it ran in.

    `flags` are those of its event's common header (`mtsd.binlog.event_type`). `satellites` are in
    the order in which the source wrote them.
    """

    query: QueryEvent
    kind: StatementKind
    flags: int
    satellites: tuple[Satellite, ...] = ()


class LoadFile(NamedTuple):
    """One event of a LOAD DATA in statement format, raw, without its checksum.

    A piece of the file, or the statement behind its last piece; `satellites` are that one's. A
    file comes in as many steps as the source wrote events, so that a large one can be streamed.
    """

    event: bytes
    satellites: tuple[Satellite, ...] = ()


Step = Rows | Statement | LoadFile


def row_events(steps: Sequence[Step]) -> tuple[bytes, ...]:
    """Return all the row events and table maps among the steps, raw, in order."""
    if len(steps) == 1:
        (step,) = steps
        return step.events if isinstance(step, Rows) else ()
    return tuple(event for step in steps if isinstance(step, Rows) for event in step.events)

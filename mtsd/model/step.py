"""What a group consists of: steps, each parsed once, by the binary log reader."""

import enum
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, final

from mtsd.model.session import RowState, SessionContext
from mtsd.model.statement_text import StatementText

_DOUBLE = struct.Struct("<d")


class StatementKind(enum.Enum):
    """The kind of statement in a Query event, as far as replication needs to know."""

    # Members are one of a kind: the enum's own would hash the name, in Python.
    __hash__ = object.__hash__

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
    """CREATE EVENT or ALTER EVENT: see `mtsd.binlog.sql.statement.disable_on_replica`."""
    TEMPORARY = "temporary"
    """CREATE TEMPORARY TABLE: commits nothing, and belongs to its session on the source."""
    DROP_TEMPORARY = "drop_temporary"
    """DROP TEMPORARY TABLE: commits nothing either."""
    DDL = "ddl"
    """Anything else that commits implicitly."""
    DML = "dml"
    OTHER = "other"


class AlterPhase(enum.Enum):
    """The part that a group plays in an ALTER TABLE that MariaDB logs twice.

    Each has the whole statement, which has its effect in the second one.
    """

    START = "start"
    COMMIT = "commit"
    ROLLBACK = "rollback"


class QueryEvent(NamedTuple):
    """A statement as the source ran it: its `text`, in its session.

    `exec_time` is in seconds; `timestamp` is in seconds since 1970, and `microseconds` its fraction
    (None: the statement did not depend on them). `updated_databases` is None if the source does
    not list them; `over_max` means that there are too many to list. `invoker` is the
    (user, host) that the source ran a definition as. `ddl_xid` is the storage engines'
    transaction number of an atomic DDL statement of MySQL. `table_map_for_update` has a bit for
    each table of a multi-table UPDATE that it updates, by their order in its text. `alter_phase` is
    set for a part of MariaDB's two-phase ALTER TABLE.
    """

    thread_id: int
    exec_time: int
    error_code: int
    text: StatementText
    microseconds: int | None
    database: str
    updated_databases: tuple[str, ...] | None
    over_max: bool
    invoker: tuple[bytes, bytes] | None
    ddl_xid: int | None
    timestamp: int
    table_map_for_update: int | None = None
    alter_phase: AlterPhase | None = None

    @property
    def statement(self) -> bytes:
        """Its text as it is."""
        return self.text.raw

    @property
    def context(self) -> SessionContext:
        """That of its session."""
        return self.text.context

    def in_session(self, context: SessionContext) -> "QueryEvent":
        """Return it as it runs in another session."""
        return self._replace(text=self.text.in_session(context))


class IntvarKind(enum.IntEnum):
    """Which session value an Intvar event sets."""

    LAST_INSERT_ID = 1
    """What LAST_INSERT_ID() returns."""
    INSERT_ID = 2
    """The first value generated for AUTO_INCREMENT."""


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

    `raw` holds the value as written, None for NULL: bytes in the collation's character
    set, a double, an integer of 8 bytes, or precision u8, scale u8 and a packed decimal.
    `geometry`: a MariaDB's type of a geometry, such as "point"; the bytes are its SRID and WKB.
    """

    name: bytes
    type: UserVarType
    collation: int
    raw: bytes | None
    unsigned: bool
    geometry: str = ""

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
"""Session state that the source writes before the statement that needs it."""


@final
@dataclass(slots=True, init=False)
class Rows:
    """Row events preceded by their table maps, raw and in order, without their checksums.

    The lengths in their headers still include the checksum. `state` is that of the session of the
    source; None if it is not known. Its constructor is as that of `mtsd.model.group.Group`.
    """

    events: Final[tuple[bytes, ...]]
    state: Final[RowState | None]

    def __init__(
        self,
        events: tuple[bytes, ...],
        state: RowState | None = None,
    ) -> None:
        self.events = events
        self.state = state


class Duplicates(enum.IntEnum):
    """What LOAD DATA does with a row whose key exists."""

    ERROR = 0
    IGNORE = 1
    REPLACE = 2


class FromFile(NamedTuple):
    """The file that a LOAD DATA statement reads, see `LoadFile`.

    In the statement, everything from its word INFILE to INTO is at `name_start` to `name_end`.
    """

    file_id: int
    name_start: int
    name_end: int
    duplicates: Duplicates


class Statement(NamedTuple):
    """A statement, and everything that it needs from the session it ran in.

    `flags` are those of its event's common header (`mtsd.binlog.bytes.event_type`). `satellites`
    are in the order in which the source wrote them. `file` is that of a LOAD DATA.
    """

    query: QueryEvent
    kind: StatementKind
    flags: int
    satellites: tuple[Satellite, ...] = ()
    file: FromFile | None = None


class LoadFile(NamedTuple):
    """A block of the file of a LOAD DATA, or its removal: an event, raw, without its checksum.

    A file arrives in as many steps as the source wrote events, so that a large one can be streamed;
    the statement comes after it.
    """

    event: bytes


Step = Rows | Statement | LoadFile


def state_of_rows(steps: Sequence[Step]) -> RowState | None:
    """Return the state of the first rows among the steps: without statements all have the same."""
    for step in steps:
        if isinstance(step, Rows):
            return step.state
    return None


def row_events(steps: Sequence[Step]) -> tuple[bytes, ...]:
    """Return all row events and table maps of the steps, raw, in order."""
    if len(steps) == 1:
        (step,) = steps
        return step.events if isinstance(step, Rows) else ()
    return tuple(event for step in steps if isinstance(step, Rows) for event in step.events)

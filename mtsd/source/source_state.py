"""What a source says about its binary log: all that decides whether a replica can read from it."""

from dataclasses import dataclass, field

from mtsd.model.gtid import GtidSet
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.position import BEGUN_UNKNOWN
from mtsd.model.server import flavour_of_identity
from mtsd.source.family import SOURCES


@dataclass(frozen=True, slots=True)
class BinlogFile:
    """One file as SHOW BINARY LOGS lists it; `size` in bytes."""

    name: str
    size: int


def mariadb_state(logged: str, applied: str) -> GtidSet:
    """Return everything that a MariaDB has executed: what it has logged, and applied as a replica.

    They are gtid_binlog_state and gtid_slave_pos: a replica that does not log what it applies can
    still be asked for what comes next.
    """
    state = GtidSet.parse(logged)
    beyond = [str(gtid) for gtid in GtidSet.parse(applied).places() if gtid not in state]
    return GtidSet.parse(",".join([logged, *beyond]))


@dataclass(frozen=True, slots=True)
class SourceState:
    """A source at one moment."""

    uuid: str
    gtid_mode: bool
    """Whether every transaction has a GTID (on MySQL: gtid_mode = ON)."""
    executed: GtidSet = field(default_factory=GtidSet)
    """Everything that it has executed or is committing: a replica may already have that."""
    purged: GtidSet = field(default_factory=GtidSet)
    """Executed, and not in its binary log (on MySQL: gtid_purged)."""
    files: tuple[BinlogFile, ...] | None = None
    """Oldest first; None if they may not be listed."""
    end: LowWaterMark | None = None
    """Its end as a mark whose number is 0, if that was asked for."""
    by_gtid: bool = False
    """MariaDB: a GTID names a place as exactly as file and offset do, and is asked for instead."""
    without_files: bool = False
    """Its binary log is read by GTID only: `files` is None, and what is purged is not known."""
    inside_group: bool = False
    """Whether the place that was asked about is not between transactions."""
    before: GtidSet | None = None
    """Everything executed before that place, if that was asked for."""
    before_file: GtidSet | None = None
    """What the file that was asked about says is executed before it; None: not asked, not known."""
    file_begun: int = BEGUN_UNKNOWN
    """When that file was begun, in seconds since 1970, if that was asked for."""

    @property
    def privilege(self) -> str:
        """What a user needs to list the files and to see the end."""
        return SOURCES[flavour_of_identity(self.uuid)].shows_binary_log

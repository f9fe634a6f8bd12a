"""The low-water mark: the point up to which everything has been applied."""

from dataclasses import dataclass

from mtsd.model.gtid import GtidSet
from mtsd.model.position import BEGUN_UNKNOWN, Position
from mtsd.model.temporary_tables import NOT_KNOWN, TemporaryTables


@dataclass(frozen=True, slots=True)
class LowWaterMark:
    """All groups up to `number` have committed, and the stream continues at `position`.

    `gtids` is everything executed up to here; None if that is not yet known (started at a
    position, no Previous_gtids event seen). It is not shared: nothing changes it later.
    `temporary` is what is known about the source's temporary tables at `position`. `begun` is when
    the source began the file of `position`, in seconds since 1970, or BEGUN_UNKNOWN.
    """

    number: int
    position: Position
    gtids: GtidSet | None
    temporary: TemporaryTables = NOT_KNOWN
    begun: int = BEGUN_UNKNOWN

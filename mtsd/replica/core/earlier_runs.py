"""What a process keeps from one run to the next: from a lost target to the new connection."""

from dataclasses import dataclass, field

from mtsd.apply.position.target_identity import TargetIdentity
from mtsd.apply.tables.key_definitions import TableName
from mtsd.schedule.applied import Applied
from mtsd.source.rivalry import Rivalry
from mtsd.source.semi_sync import Acknowledged


@dataclass(slots=True)
class EarlierRuns:
    """`home` is the target of the last run; None before the first one.

    `applied` and `acknowledged` count on over all of them; branches have met in
    the tables `met_in`.
    """

    rivalry: Rivalry = field(default_factory=Rivalry)
    home: TargetIdentity | None = None
    applied: Applied = field(default_factory=Applied)
    acknowledged: Acknowledged = field(default_factory=Acknowledged)
    met_in: set[TableName] = field(default_factory=set)

"""The one place where a policy is chosen."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from mtsd.schedule.assignment import Policy
from mtsd.schedule.commit_parent_policy import CommitParentPolicy
from mtsd.schedule.database_policy import DatabasePolicy
from mtsd.schedule.logical_clock_policy import LogicalClockPolicy
from mtsd.schedule.sequential_policy import SequentialPolicy

Bind = Sequence[Sequence[str]]
"""Sets of databases, each of which is one partition."""

POLICIES: Mapping[str, Callable[[int, Bind], Policy]] = MappingProxyType(
    {
        "database": DatabasePolicy,
        "logical_clock": lambda *_: LogicalClockPolicy(),
        "commit_parent": lambda *_: CommitParentPolicy(),
    }
)
"""By `parallel_type`: the factory of a policy for a number of workers.

What goes by the source's clock has no use for bound databases: `mtsd.config` refuses them there.
"""


def choose_policy(parallel_type: str, parallel_workers: int, bind: Bind = ()) -> Policy:
    """Return a new policy; without parallel workers there is one worker, in the stream's order.

    Raises KeyError for a `parallel_type` that is not in POLICIES.
    """
    if parallel_workers == 0:
        return SequentialPolicy()
    return POLICIES[parallel_type](parallel_workers, bind)

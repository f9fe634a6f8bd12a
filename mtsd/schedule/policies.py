"""The one place where a policy is chosen."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from mtsd.schedule.assignment import Policy
from mtsd.schedule.database_policy import DatabasePolicy
from mtsd.schedule.sequential_policy import SequentialPolicy

Bind = Sequence[Sequence[str]]
"""Sets of databases that are one partition each."""

POLICIES: Mapping[str, Callable[[int, Bind], Policy]] = MappingProxyType(
    {"database": DatabasePolicy}
)
"""By `parallel_type`: what makes a policy for a number of workers."""


def choose_policy(parallel_type: str, parallel_workers: int, bind: Bind = ()) -> Policy:
    """Return a new policy; with no parallel workers there is one, and the order is the stream's.

    Raises KeyError for a `parallel_type` that is not among POLICIES.
    """
    if parallel_workers == 0:
        return SequentialPolicy()
    return POLICIES[parallel_type](parallel_workers, bind)

"""The one place where a policy is chosen."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from mtsd.schedule.policies.assignment import Policy
from mtsd.schedule.policies.commit_parent_policy import CommitParentPolicy
from mtsd.schedule.policies.database_policy import DatabasePolicy
from mtsd.schedule.policies.eventual_policy import EventualPolicy
from mtsd.schedule.policies.first_available import FirstAvailable
from mtsd.schedule.policies.foreign_key_families import NO_FOREIGN_KEYS, ForeignKeys
from mtsd.schedule.policies.logical_clock_policy import LogicalClockPolicy
from mtsd.schedule.policies.row_policy import RowPolicy
from mtsd.schedule.policies.sequential_policy import SequentialPolicy
from mtsd.schedule.policies.table_policy import TablePolicy

Bind = Sequence[Sequence[str]]
"""Sets of databases, each of which is one partition."""

Runs = FirstAvailable | None
"""What distributes groups in runs; None: as the policy does by itself."""

POLICIES: Mapping[str, Callable[[int, Bind, ForeignKeys | None, Runs], Policy]] = MappingProxyType(
    {
        "database": DatabasePolicy,
        "logical_clock": lambda _workers, _bind, _keys, runs: LogicalClockPolicy(runs),
        "commit_parent": lambda _workers, _bind, _keys, runs: CommitParentPolicy(runs),
        "table": lambda workers, bind, keys, runs: TablePolicy(
            workers, bind, keys or NO_FOREIGN_KEYS, runs
        ),
        "row": lambda _workers, _bind, _keys, runs: RowPolicy(distribution=runs),
    }
)
"""By `parallel_type`: the factory of a policy for a number of workers.

Those in `mtsd.model.parallel_type.BY_THE_SOURCE` are not given bound databases. The row policy
does not look at them: they are in the keys of groups (`mtsd.apply.tables.changed_keys`).
"""


def choose_policy(
    parallel_type: str,
    parallel_workers: int,
    bind: Bind = (),
    foreign_keys: ForeignKeys | None = None,
    *,
    in_order: bool = False,
    eventual: bool = False,
    deletes_in_turn: bool = False,
) -> Policy:
    """Return a new policy; without parallel workers there is one worker, in the stream's order.

    `foreign_keys` are the target's, for a policy by tables or, where the source does not tell which
    databases they join, by databases. With `in_order`, groups commit in the
    stream's order over all workers, so what commits together has to follow each other in the
    stream: every policy distributes runs, and only the dependencies differ. With `eventual`, groups
    of rows keep no order, whatever the `parallel_type`, except with `deletes_in_turn` those that
    delete rows; everything else has to run alone. Raises KeyError for a `parallel_type` that is not
    in POLICIES.
    """
    if parallel_workers == 0:
        return SequentialPolicy()
    if eventual:
        return EventualPolicy(deletes_in_turn=deletes_in_turn)
    runs = FirstAvailable(keeps_runs=True) if in_order else None
    return POLICIES[parallel_type](parallel_workers, bind, foreign_keys, runs)

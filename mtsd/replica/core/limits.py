"""The scheduler's limits, and the distribution of databases over workers, from the settings."""

from collections.abc import Mapping

from mtsd.config import ReplicaSettings, Settings
from mtsd.model.distribution import Distribution
from mtsd.model.server import Flavour
from mtsd.schedule.limits import Limits
from mtsd.schedule.policies.foreign_key_families import ForeignKeys, disjoint
from mtsd.source.family import SOURCES


def limits_of(settings: Settings) -> Limits:
    """Return the limits; where each group keeps its own GTID, groups are not combined."""
    replica = settings.replica
    return Limits(
        checkpoint_group=replica.checkpoint_group,
        pending_jobs_size_max=replica.pending_jobs_size_max,
        batch_groups=1 if settings.target.gtid == "preserve" else replica.batch_groups,
        batch_bytes=replica.batch_bytes,
    )


def sessions_of(replica: ReplicaSettings) -> int:
    """Return how many sessions a run has on the target at a time, at most.

    XA transactions on a MariaDB, each of which has one of its own for a moment, do not count.
    """
    return 1 + max(replica.parallel_workers, 1) + goes_by_keys(replica) + splits(replica)


def goes_by_keys(replica: ReplicaSettings) -> bool:
    """Return whether the policy needs the keys of groups, which are those of the target."""
    return replica.parallel_type == "row" and replica.parallel_workers > 0


def goes_by_foreign_keys(replica: ReplicaSettings, source: Flavour) -> bool:
    """Return whether the policy needs the foreign keys of the target.

    By databases it does unless the source tells which tables others refer to, as a MySQL does.
    """
    return reads_foreign_keys(replica) and (
        replica.parallel_type == "table" or not SOURCES[source].marks_referred_tables
    )


def reads_foreign_keys(replica: ReplicaSettings) -> bool:
    """Return whether the policy goes by names, and so has to know which of them belong together."""
    return replica.parallel_workers > 0 and replica.parallel_type in {"database", "table"}


def referred_in(
    replica: ReplicaSettings, foreign_keys: ForeignKeys
) -> Mapping[str, frozenset[str]] | None:
    """Return the databases in which others refer to tables, each with all that these may be in.

    A group that changes such a table concerns all of these: its rows may change theirs, or need
    them. None: all databases, and such a group runs alone. The source marks tables with foreign
    keys, of which it depends on its version whether those within a database count. In the stream's
    order, and by the source's clock or the target's tables, nothing else is needed; by databases,
    only what `foreign_keys` of the target join.
    """
    if replica.parallel_workers <= 1:
        return {}
    if replica.consistency == "eventual" or replica.parallel_type == "row":
        # By row, the keys decide where they are known, and the source where they are not.
        return None
    if replica.parallel_type == "database":
        return {name: joined for joined in disjoint(foreign_keys.databases) for name in joined}
    return {}


def splits(replica: ReplicaSettings) -> bool:
    """Return whether large transactions are split: there have to be several workers."""
    return replica.split_transactions != "off" and replica.parallel_workers > 1


def distribution_of(settings: Settings, *, fold_case: bool = False) -> Distribution:
    """Return how databases are to be distributed over the workers.

    With `fold_case`, by their names on a target that has them in lower case, as groups have them.
    """
    replica = settings.replica
    given = Distribution(replica.bind, replica.pin, replica.weigh)
    return given.in_lower_case() if fold_case else given

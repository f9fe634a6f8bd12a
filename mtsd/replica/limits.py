"""The scheduler's limits, and the distribution of databases over workers, from the settings."""

from mtsd.config import Settings
from mtsd.model.distribution import Distribution
from mtsd.schedule.limits import Limits


def limits_of(settings: Settings) -> Limits:
    """Return the limits; where each group keeps its own GTID, groups are not combined."""
    replica = settings.replica
    return Limits(
        checkpoint_group=replica.checkpoint_group,
        pending_jobs_size_max=replica.pending_jobs_size_max,
        batch_groups=1 if settings.target.gtid == "preserve" else replica.batch_groups,
        batch_bytes=replica.batch_bytes,
    )


def distribution_of(settings: Settings) -> Distribution:
    """Return how databases are to be distributed over the workers."""
    replica = settings.replica
    return Distribution(replica.bind, replica.pin, replica.weigh)

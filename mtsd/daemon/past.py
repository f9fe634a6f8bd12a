"""What the runs of a daemon have left: a status has it while none is active."""

from dataclasses import dataclass
from typing import Final

from mtsd.apply.position.failed_groups import SkippedGroup
from mtsd.control.place import NOWHERE, Place
from mtsd.replica.run.statistics import ReplicaStatistics
from mtsd.replica.run.totals import NO_TOTALS, Totals
from mtsd.source.source_log import NOT_ASKED, SourceLog
from mtsd.wire.steady_clock import steady


@dataclass(frozen=True, slots=True)
class Needs:
    """What a replica needs of its source's log.

    `since` is the commit time of the oldest transaction that is not applied yet, or a moment before
    which there is none, in seconds since 1970; `retention_s` how long the source keeps its files.
    None where that is not known.
    """

    since: float | None = None
    retention_s: float | None = None

    def over(self, earlier: "Needs") -> "Needs":
        """Return what is known, with what was known earlier of the rest."""
        return Needs(
            earlier.since if self.since is None else self.since,
            earlier.retention_s if self.retention_s is None else self.retention_s,
        )

    def left(self, now: float) -> float | None:
        """Return for how many seconds from `now` on it is kept for certain; None: unknown."""
        if self.since is None or self.retention_s is None:
            return None
        return round(self.retention_s - (now - self.since), 1)


NEEDS_NOTHING: Final = Needs()


def needs_of(statistics: ReplicaStatistics) -> Needs:
    """Return what a run needs now."""
    since: float | None = statistics.heard_at
    if statistics.oldest_commit_time is not None:
        since = statistics.oldest_commit_time / 1_000_000
    elif statistics.connected:
        since = steady() + statistics.clock_offset
    return Needs(since, statistics.source_log.retention_s)


@dataclass(frozen=True, slots=True)
class Past:
    """What the runs of a daemon have left, for a status while none is active.

    `received`, `executed` and `needs` are as at the end of the last one.
    """

    received: Place = NOWHERE
    executed: Place = NOWHERE
    needs: Needs = NEEDS_NOTHING
    source_log: SourceLog = NOT_ASKED
    heard_at: float | None = None
    """When the source has last sent something, in seconds since 1970."""
    totals: Totals = NO_TOTALS
    skipped_ever: tuple[SkippedGroup, ...] | None = None
    """What people have skipped on this channel; None before the first run."""

    def with_run(self, run: ReplicaStatistics) -> "Past":
        """Return it with a run that has ended."""
        needs = needs_of(run).over(self.needs)
        return Past(
            received_of(run),
            executed_of(run),
            needs,
            self.asked(run.source_log),
            run.heard_at or self.heard_at,
            self.totals.with_run(run),
            run.skipped_ever,
        )

    def asked(self, now: SourceLog) -> SourceLog:
        """Return what the source has said of itself: a run that begins has not asked it yet."""
        return self.source_log if now.server_id is None else now


NO_PAST: Final = Past()


def received_of(statistics: ReplicaStatistics) -> Place:
    """Return how far a run has read."""
    return Place.of(statistics.received, statistics.received_gtids)


def executed_of(statistics: ReplicaStatistics) -> Place:
    """Return the low-water mark of a run."""
    return Place.of(statistics.executed, statistics.executed_gtids)

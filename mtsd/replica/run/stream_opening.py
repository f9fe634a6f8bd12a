"""The stream of a run: the source's groups, and what looks at the source before they are read."""

from collections.abc import Callable
from dataclasses import dataclass

from mtsd.config import Settings
from mtsd.config.settings import ReplicaSettings, SourceSettings
from mtsd.filter.filter import Filter
from mtsd.model.fault_points import FaultHook
from mtsd.model.gtid import GtidSet
from mtsd.model.outcome.reason import Refused
from mtsd.model.server import flavour_of_identity
from mtsd.model.until import Goal, Until, refuse_other_family
from mtsd.replica.core.coordinator import Coordinator
from mtsd.replica.core.earlier_runs import EarlierRuns
from mtsd.replica.core.endpoints import endpoint, identity
from mtsd.replica.core.limits import (
    referred_in,
)
from mtsd.replica.guards.domain_watch import DomainWatch
from mtsd.replica.guards.guard import Guard
from mtsd.replica.recovery.recovery import Recovered
from mtsd.replica.stages.skipped_groups import AsSkipped, GroupStream
from mtsd.replica.stages.until_stage import UntilStage
from mtsd.schedule.policies.foreign_key_families import ForeignKeys
from mtsd.source.handshake import SourceSession
from mtsd.source.semi_sync import Acknowledged, SemiSync
from mtsd.source.stream import SourceStream
from mtsd.source.stream_settings import StreamSettings
from mtsd.wire.link import Link
from mtsd.wire.traits import ServerTraits


@dataclass(frozen=True, slots=True)
class SourceGates:
    """What a source has to pass each time that it is connected, before anything is read of it."""

    coordinator: Coordinator
    guard: Guard
    domains: DomainWatch
    refused_by: Callable[[GtidSet], Refused | None]
    """Says why a source that has executed these GTIDs is refused at the first connection."""

    async def check(self, source: SourceSession) -> None:
        """Raise NeedsPersonError if it may not be read; what was found out is stored soon."""
        await self.guard.check_source(source)
        self.coordinator.checkpoint_due.set()


def stream_settings(
    replica: ReplicaSettings, replicated: Filter, foreign_keys: ForeignKeys
) -> StreamSettings:
    """Return how the groups of a stream are put together."""
    return StreamSettings(
        hold_bytes=replica.pending_jobs_size_max,
        chunk_bytes=replica.batch_bytes,
        replicated=replicated,
        referred_in=referred_in(replica, foreign_keys),
    )


def open_stream(
    settings: Settings,
    target: ServerTraits,
    recovered: Recovered,
    groups: StreamSettings,
    gates: SourceGates,
    earlier: EarlierRuns,
    link: Link,
    reached: FaultHook,
) -> SourceStream:
    """Return the stream that goes on after what was recovered; it connects when it is read."""
    return SourceStream(
        endpoint("source", settings.source),
        identity(settings.source, recovered.daemon_uuid, settings.replica.channel, target.reported),
        groups,
        recovered.mark,
        recovered.source_uuid,
        executed=recovered.gtids,
        pulse=gates.coordinator.pulse,
        rivalry=earlier.rivalry,
        watch=gates.domains.check,
        link=link,
        reached=reached,
        refusal=gates.refused_by,
        check=gates.check,
        semi_sync=_semi_sync(settings.source, recovered.mark.number, earlier.acknowledged),
    )


def _semi_sync(source: SourceSettings, applied: int, acknowledged: Acknowledged) -> SemiSync | None:
    if source.semi_sync == "off":
        return None
    return SemiSync(source.semi_sync_limit, applied, acknowledged)


def groups_until(stream: SourceStream, recovered: Recovered, until: Until | None) -> GroupStream:
    """Return the source's groups, up to where the run is to end."""
    groups = AsSkipped(stream, recovered.skipped)
    if until is None or recovered.repair is not None:
        return groups
    refuse_other_family(until, flavour_of_identity(recovered.source_uuid))
    goal = Goal(until, recovered.mark, recovered.executed.highest, recovered.gtids)
    return UntilStage(groups, goal)

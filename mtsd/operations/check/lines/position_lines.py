"""Lines about where replication begins or continues, and whether the source still has it."""

from collections.abc import Iterator
from typing import Final

from mtsd.apply.position.in_doubt_table import InDoubt
from mtsd.apply.position.position_tables import KNOWN_VERSIONS, SHOWN_VERSIONS
from mtsd.apply.position.target_identity import TargetIdentity, copied
from mtsd.config import Settings
from mtsd.model.gtid import GtidSet
from mtsd.model.outcome.reason import Refused
from mtsd.operations.check.decisions import (
    Decision,
    damage,
    executed_beyond,
    repair_due_at_start,
    state_of,
    verdicts,
)
from mtsd.operations.check.facts import ChannelFacts, SourceFacts, TargetFacts
from mtsd.operations.check.lines.catalogue import Kind
from mtsd.operations.check.lines.line import Line, duration, listed
from mtsd.operations.check.lines.refused_line import refused_line
from mtsd.replica.core.filters import rules_of
from mtsd.replica.guards.handed_over import fenced
from mtsd.replica.guards.one_channel import Channel, rival
from mtsd.source.continuation import PURGED, PURGED_APPLIED, PURGED_FILE, Adopt
from mtsd.source.source_log import retention_of
from mtsd.wire.family import SERVERS

_LONGEST_SET = 300

_PURGED: Final = (PURGED, PURGED_FILE, PURGED_APPLIED)


def position_lines(settings: Settings, target: TargetFacts) -> Iterator[Line]:
    """Yield the lines about the position tables and their contents."""
    facts = target.position
    schema = settings.target.schema
    if facts.daemon is not None:
        yield Kind.DAEMON_RUNS.line(connection=facts.daemon)
    if facts.refused:
        yield Kind.POSITION_UNSEEN.line(
            reason=facts.refused, schema=schema, user=target.server.account
        )
        return
    damaged = damage(settings, target)
    if damaged is not None:
        yield refused_line(damaged)
        return
    if facts.unreadable is not None:
        yield refused_line(facts.unreadable)
        return
    channel = facts.channel
    if channel is None:
        yield Kind.POSITION_TABLES_NEW.line(schema=schema)
        return
    if channel.schema_version not in KNOWN_VERSIONS:
        yield Kind.POSITION_TABLES_VERSION.line(
            schema=schema, version=channel.schema_version, known=SHOWN_VERSIONS
        )
        return
    now = TargetIdentity(target.server.identity, target.server.place)
    refused = copied(schema, facts.home, now)
    if refused is not None:
        yield refused_line(refused)
    elif facts.home is not None and facts.home != now:
        yield Kind.TARGET_MOVED.line(before=facts.home.place, now=now.place)
    given_away = fenced(facts.handed_over)
    if given_away is not None:
        yield refused_line(given_away)
    mark = channel.mark
    gtids = f", {_shown(mark.gtids)}" if mark.gtids else ""
    yield Kind.POSITION.line(position=mark.position, number=mark.number, gtids=gtids)
    if facts.daemon is None:
        yield from _stopped(channel)
        yield from _in_doubt(channel, target)
        repair = repair_due_at_start(target)
        if repair is not None:
            yield Kind.REPAIR_LEFT.line(first=repair.first, last=repair.last)


def reach_lines(
    settings: Settings, source: SourceFacts, target: TargetFacts, way: Decision | None
) -> Iterator[Line]:
    """Yield the lines about whether the source still has what is needed; `way` is `way_of`."""
    channel = target.position.channel
    if way is None:
        return
    if isinstance(way, Refused):
        line = refused_line(way)
        if way.reason in _PURGED and target.position.daemon is not None:
            # One that lags has received more than its position tells.
            line = Kind.POSITION_PURGED_BEHIND.line(found=line.found)
        yield line
    else:
        if channel is None:
            yield Kind.START.line(start=settings.source.start)
        if isinstance(way, Adopt):
            uuid = source.server.identity
            yield Kind.ANOTHER_SOURCE.line(former=way.former, uuid=uuid)
        if source.files:
            yield Kind.POSITION_AVAILABLE.line()
    if channel is None:
        for schema, uuid in target.positions_elsewhere:
            if uuid == source.server.identity.lower():
                yield Kind.POSITION_ELSEWHERE.line(schema=schema, uuid=uuid)
    beyond = executed_beyond(settings, source, target, way)
    if beyond is not None:
        yield refused_line(beyond)
    yield from _rivals(settings, source, target)
    if channel is not None and channel.mark.gtids is None and state_of(source).gtid_mode:
        yield Kind.POSITION_WITHOUT_GTIDS.line(position=channel.mark.position)
    if channel is not None and not isinstance(way, Refused):
        yield from _retention_near(source, channel)


def _rivals(settings: Settings, source: SourceFacts, target: TargetFacts) -> Iterator[Line]:
    channel = target.position.channel
    own = settings.replica.channel
    uuid = source.server.identity
    # A start claims the source of the position, and then the one that it continues with.
    for claimed in dict.fromkeys([channel.source_uuid if channel is not None else uuid, uuid]):
        refused = rival(
            target.position.channels,
            Channel(own, claimed, rules_of(settings.filter)),
            fold_case=target.server.number("lower_case_table_names") != 0
            or SERVERS[target.server.flavour].rules_ignore_case,
        )
        if refused is not None:
            yield refused_line(refused)
            return


def _stopped(channel: ChannelFacts) -> Iterator[Line]:
    if (stopped := channel.stopped) is not None:
        yield Kind.STOPPED_GROUP.line(
            group=stopped.group,
            time=f"{stopped.time:%Y-%m-%d %H:%M:%S} UTC",
            message=stopped.message,
        )


def _in_doubt(channel: ChannelFacts, target: TargetFacts) -> Iterator[Line]:
    unsettled: list[InDoubt] = []
    for doubt, verdict in verdicts(channel, target):
        if isinstance(verdict, Refused):
            yield refused_line(verdict)
        else:
            unsettled.append(doubt)
    if unsettled:
        groups = listed([f"{doubt.number} ({doubt.kind})" for doubt in unsettled])
        yield Kind.IN_DOUBT.line(groups=groups)


def _retention_near(source: SourceFacts, channel: ChannelFacts) -> Iterator[Line]:
    seconds = retention_of(source.server.variables)
    file = channel.mark.position.file
    if (
        seconds is not None
        and channel.age > seconds / 2
        and file
        and file not in dict(source.files[-1:])
    ):
        yield Kind.RETENTION_NEAR.line(
            age=duration(channel.age), file=file, period=duration(seconds)
        )


def _shown(gtids: GtidSet) -> str:
    text = str(gtids)
    return text if len(text) <= _LONGEST_SET else text[: _LONGEST_SET - 1] + "…"

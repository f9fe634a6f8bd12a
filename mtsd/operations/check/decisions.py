"""What the daemon would decide, based on the facts: by the very same functions."""

from collections.abc import Collection, Iterable, Iterator

from mtsd.apply.position.executed_gtids import mariadb_held
from mtsd.apply.position.in_doubt_table import InDoubt
from mtsd.apply.position.position_schema import defect, inconsistent, lost_row
from mtsd.apply.position.position_tables import KNOWN_VERSIONS, UNORDERED_VERSION
from mtsd.config import Settings
from mtsd.model.gtid import GtidSet
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.outcome.reason import Refused
from mtsd.operations.check.facts import ChannelFacts, ServerFacts, SourceFacts, TargetFacts
from mtsd.operations.check.visible import sees_position_schema
from mtsd.replica.core.apply_mode import applies_sql, in_repair
from mtsd.replica.core.gtid_mode import Gtids, decide_gtids
from mtsd.replica.guards.circles import cannot_see, circle
from mtsd.replica.guards.executed_beyond import HeldGtids, refusal
from mtsd.replica.guards.lenient_target import lenient
from mtsd.replica.guards.own_replica import KnownServer, beside, unseen
from mtsd.replica.recovery.recovery import gtids_beyond, unsettled
from mtsd.replica.recovery.verdict import Verdict, judge
from mtsd.schedule.done.executed_groups import recovered
from mtsd.schedule.done.repair import Repair, repair_due
from mtsd.source.continuation import ChannelPlace, Way, continuation
from mtsd.source.source_state import BinlogFile, SourceState, mariadb_state
from mtsd.source.start import beginning
from mtsd.wire.family import SERVERS

Decision = Way | LowWaterMark
"""How the channel continues, or the mark that it begins with."""


def way_of(settings: Settings, source: SourceFacts, target: TargetFacts) -> Decision | None:
    """Decide how a start would continue; None if the position is unknown."""
    position = target.position
    if position.refused or damage(settings, target) is not None:
        return None
    state = state_of(source)
    channel = position.channel
    if channel is None:
        executed = GtidSet()
        gtids = gtids_of(settings, source, target)
        if gtids is Gtids.MIRROR or gtids is Gtids.PRESERVE:
            executed = GtidSet.parse(target.server.variables.get("gtid_executed", ""))
        allow = settings.source.allow_partial_history
        start = settings.source.start
        return beginning(start, state, allow_partial_history=allow, executed=executed)
    if channel.schema_version not in KNOWN_VERSIONS:
        return None
    return continuation(_channel(channel, target), state)


def damage(settings: Settings, target: TargetFacts) -> Refused | None:
    """Decide what prevents mtsd from using the position tables."""
    facts = target.position
    schema = settings.target.schema
    name = settings.replica.channel
    refused = defect(schema, facts.engines, facts.columns, filled=facts.filled)
    refused = refused or lost_row(schema, name, remains=facts.remains)
    channel = facts.channel
    if refused is not None or channel is None:
        return refused
    return inconsistent(schema, name, channel.mark, channel.worker_count, channel.workers)


def gtids_of(settings: Settings, source: SourceFacts, target: TargetFacts) -> Gtids | Refused:
    """Decide what the setting `target.gtid` amounts to."""
    server = target.server
    gtid_mode = server.variables.get("gtid_mode") == "ON"
    logged = server.on("log_bin") and settings.target.binary_log
    return decide_gtids(
        settings.target.gtid,
        source.server.flavour,
        server.flavour,
        gtid_mode=gtid_mode,
        logged=logged,
        allowed=may_set_gtids(target),
    )


def may_set_gtids(target: TargetFacts) -> bool:
    """Return whether mtsd's user may give transactions GTIDs, if the target has them."""
    return isinstance(target.pinned, Refused) or target.pinned.sets_gtids


def guarded(
    settings: Settings, source: SourceFacts, target: TargetFacts, *, by_binlog: bool
) -> tuple[Refused, ...]:
    """Decide what stops the daemon or is a warning of its: see `mtsd.replica.guards.guard`."""
    read, written = (
        KnownServer(facts.server.identity, facts.server.number("server_id"), where.host, where.port)
        for facts, where in ((source, settings.source), (target, settings.target))
    )
    preserves = gtids_of(settings, source, target) is Gtids.PRESERVE
    findings = circle(source.feeding, source.server.own_channels, written, preserves=preserves)
    schema = settings.target.schema
    seen = source.feeding_hidden or sees_position_schema(source.server, schema)
    for hidden in source.feeding_hidden if seen else (schema,):
        findings |= cannot_see(hidden, source.server.account)
    if target.server.own_channels_refused:
        findings |= unseen(target.server.flavour, target.server.own_channels_refused)
    else:
        findings |= beside(target.server.own_channels, read)
    findings |= lenient(target.server.variables, target.server.flavour, by_binlog=by_binlog)
    return findings.stops + findings.warns


def rows_as_sql(
    settings: Settings, source: SourceFacts | None, target: TargetFacts
) -> bool | Refused:
    """Decide whether rows are applied as SQL; without a source, as from one of the same family."""
    if repair_due_at_start(target) is not None:
        settings = in_repair(settings)
    family = target.server.flavour if source is None else source.server.flavour
    return applies_sql(settings, family, target.server.flavour, allowed=target.binlog_allowed)


def verdicts(
    channel: ChannelFacts, target: TargetFacts
) -> Iterator[tuple[InDoubt, Verdict | Refused]]:
    """Yield the groups that are still in doubt, and what a start would decide about each."""
    known = GtidSet.parse(target.server.variables.get("gtid_executed", ""))
    for doubt, verdict in judged(channel, known, target.files):
        yield doubt, target.in_logs.get(doubt.number, verdict)


def judged(
    channel: ChannelFacts, known: GtidSet, files: Collection[str] | None
) -> Iterator[tuple[InDoubt, Verdict | Refused]]:
    """Yield the groups that are still in doubt, and what is known without the target's files.

    The target has executed the GTIDs `known`.
    """
    for doubt in unsettled(channel.in_doubt, channel.mark, channel.workers):
        done = bool(doubt.evidence) and GtidSet.parse(doubt.evidence).issubset(known)
        yield doubt, judge(doubt, executed=done, logs=files)


def state_of(source: SourceFacts) -> SourceState:
    """Return what decides whether the source can be read."""
    variables = source.server.variables
    files = None
    if not source.files_refused:
        files = tuple(BinlogFile(name, size) for name, size in source.files)
    uuid = source.server.identity
    if SERVERS[source.server.flavour].has_domains:
        logged, applied = variables["gtid_binlog_state"], variables["gtid_slave_pos"]
        executed = mariadb_state(logged, applied)
        return SourceState(
            uuid,
            True,
            executed,
            source.purged,
            files,
            source.end,
            by_gtid=True,
            without_files=bool(variables.get("binlog_storage_engine")),
            inside_group=source.starts_inside_group,
            before=source.before,
            file_begun=source.file_begun,
        )
    gtid_mode = variables.get("gtid_mode") == "ON"

    def gtids(name: str) -> GtidSet:
        return GtidSet.parse(variables.get(name, "")) if gtid_mode else GtidSet()

    return SourceState(
        uuid=uuid,
        gtid_mode=gtid_mode,
        executed=gtids("gtid_executed"),
        purged=gtids("gtid_purged"),
        files=files,
        end=source.end,
        inside_group=source.starts_inside_group,
        before=source.before,
        before_file=source.before_file,
        file_begun=source.file_begun,
    )


def executed_beyond(
    settings: Settings, source: SourceFacts, target: TargetFacts, way: Decision | None
) -> Refused | None:
    """Decide whether the target has executed what a start would apply; `way` is `way_of`."""
    mode = gtids_of(settings, source, target)
    if way is None or isinstance(way, Refused) or isinstance(mode, Refused):
        return None
    held = HeldGtids(_held(target.server), target.position.despite_executed)
    executed = state_of(source).executed
    if isinstance(way, LowWaterMark):
        return refusal(mode, held, way.gtids, settings.source.start, executed)
    channel = target.position.channel
    if channel is None:
        return None
    known = _channel(channel, target)
    return refusal(mode, held, known.executed, known.position, executed)


def _held(server: ServerFacts) -> GtidSet:
    variables = server.variables
    if not SERVERS[server.flavour].has_domains:
        return GtidSet.parse(variables.get("gtid_executed", ""))
    logged, applied = (variables.get(f"gtid_{name}", "") for name in ("binlog_state", "slave_pos"))
    return mariadb_held(logged, applied, server.number("server_id"))


def repair_left(
    channel: ChannelFacts, judgements: Iterable[tuple[InDoubt, Verdict | Refused]]
) -> Repair | None:
    """Return what the next start applies once more; `judgements` are the `verdicts`."""
    if channel.schema_version != UNORDERED_VERSION:
        return None
    number = channel.mark.number
    done = recovered(number, (row.executed for row in channel.workers))
    done = done.with_numbers(
        doubt.number for doubt, verdict in judgements if verdict is Verdict.APPLIED
    )
    return repair_due(number, done, channel.skipped)[1]


def repair_due_at_start(target: TargetFacts) -> Repair | None:
    """Return what the next start applies once more, unless a daemon is running."""
    channel = target.position.channel
    if channel is None or target.position.daemon is not None:
        return None
    return repair_left(channel, verdicts(channel, target))


def _channel(channel: ChannelFacts, target: TargetFacts) -> ChannelPlace:
    judgements = list(verdicts(channel, target))
    applied = [doubt.source_gtid for doubt, verdict in judgements if verdict is Verdict.APPLIED]
    mark = channel.mark
    executed = None
    if mark.gtids is not None:
        executed = mark.gtids.union(gtids_beyond(mark, channel.workers, applied))
    repair = repair_left(channel, judgements)
    shown = any(verdict is Verdict.SHOWS_ITSELF for _, verdict in judgements)
    return ChannelPlace(
        mark.position, mark.gtids, channel.source_uuid, executed, not shown, repair, mark.begun
    )

"""Lines about where replication begins or goes on, and whether the source still has it."""

from collections.abc import Iterator, Sequence

from mtsd.binlog.repeatable import errors_of_a_second_time
from mtsd.config import Earliest, FilePosition, GtidStart, Settings
from mtsd.model.gtid import GtidSet
from mtsd.model.position import Position
from mtsd.operations.check.catalogue import Kind
from mtsd.operations.check.facts import ChannelFacts, PositionFacts, SourceFacts, TargetFacts
from mtsd.operations.check.line import Line, duration, listed
from mtsd.operations.check.source_lines import retention
from mtsd.target.position_tables import FIRST_TABLES, SCHEMA_VERSION, InDoubt
from mtsd.target.worker_info import COLUMNS

_LONGEST_SET = 300


def position_lines(settings: Settings, target: TargetFacts) -> Iterator[Line]:
    """Yield the lines about the position tables and what they hold."""
    facts = target.position
    schema = settings.target.schema
    if facts.daemon is not None:
        yield Kind.DAEMON_RUNS.line(connection=facts.daemon)
    if facts.refused:
        yield Kind.POSITION_UNSEEN.line(
            reason=facts.refused, schema=schema, user=target.server.account
        )
        return
    missing = [name for name in FIRST_TABLES if name not in facts.engines]
    if facts.engines and missing:
        yield Kind.POSITION_TABLES_PARTIAL.line(missing=", ".join(missing), schema=schema)
        return
    yield from _definitions(facts, schema)
    channel = facts.channel
    if channel is None:
        yield Kind.POSITION_TABLES_NEW.line(schema=schema)
        return
    if channel.schema_version != SCHEMA_VERSION:
        yield Kind.POSITION_TABLES_VERSION.line(
            version=channel.schema_version, known=SCHEMA_VERSION
        )
        return
    gtids = f", {_shown(channel.gtids)}" if channel.gtids else ""
    yield Kind.POSITION.line(position=channel.position, number=channel.number, gtids=gtids)
    if facts.daemon is None:
        yield from _in_doubt(channel.in_doubt)


def reach_lines(settings: Settings, source: SourceFacts, target: TargetFacts) -> Iterator[Line]:
    """Yield the lines about whether the source still has what comes next."""
    channel = target.position.channel
    if channel is None:
        if not target.position.refused:
            yield from _start(settings, source)
    elif channel.schema_version == SCHEMA_VERSION:
        yield from _goes_on(source, channel)


def _definitions(facts: PositionFacts, schema: str) -> Iterator[Line]:
    others = [name for name, engine in facts.engines.items() if engine.upper() != "INNODB"]
    if others:
        yield Kind.POSITION_TABLES_ENGINE.line(tables=", ".join(sorted(others)))
    if facts.engines and list(facts.columns) != [column.name for column in COLUMNS]:
        yield Kind.POSITION_TABLES_ALTERED.line(schema=schema, columns=", ".join(facts.columns))


def _in_doubt(records: Sequence[InDoubt]) -> Iterator[Line]:
    for kind, of_kind in (
        (Kind.IN_DOUBT, [record for record in records if _can_be_told(record)]),
        (
            Kind.IN_DOUBT_WITHOUT_EVIDENCE,
            [record for record in records if not _can_be_told(record)],
        ),
    ):
        if of_kind:
            yield kind.line(
                groups=listed([f"{record.number} ({record.kind})" for record in of_kind])
            )


def _can_be_told(record: InDoubt) -> bool:
    """Tell whether the next start can settle a group in doubt, as far as its record says."""
    return bool(
        record.evidence
        or record.target_file
        or record.resolution
        or errors_of_a_second_time(record.statement) is not None
    )


def _start(settings: Settings, source: SourceFacts) -> Iterator[Line]:
    start = settings.source.start
    server = source.server
    mode = server.variables.get("gtid_mode", "OFF")
    purged = server.variables.get("gtid_purged", "") if mode == "ON" else ""
    if start is None:
        yield Kind.START_MISSING.line()
    elif isinstance(start, GtidStart) and mode != "ON":
        yield Kind.START_WITHOUT_GTIDS.line(mode=mode)
    elif isinstance(start, GtidStart):
        yield from _by_gtid(source, GtidSet.parse(start.text))
    elif isinstance(start, FilePosition):
        yield from _by_file(source, Position(start.file, start.pos))
    elif isinstance(start, Earliest) and not settings.source.allow_partial_history:
        first = source.files[0][0] if source.files else ""
        begins_later = first.rpartition(".")[2].strip("0") not in {"", "1"} and mode != "ON"
        if purged or begins_later:
            yield Kind.START_PURGED.line(
                purged=_shown(purged) if purged else f"its first file is {first}"
            )
        else:
            yield Kind.START.line(start=start)
    else:
        yield Kind.START.line(start=start)


def _goes_on(source: SourceFacts, channel: ChannelFacts) -> Iterator[Line]:
    server = source.server
    uuid = server.variables.get("server_uuid", "").lower()
    if uuid != channel.source_uuid:
        yield Kind.OTHER_SOURCE.line(recorded=channel.source_uuid, uuid=uuid)
        return
    if channel.gtids is not None and server.variables.get("gtid_mode") == "ON":
        yield from _by_gtid(source, GtidSet.parse(channel.gtids))
    else:
        yield from _by_file(source, channel.position)
    seconds = retention(source)
    file = channel.position.file
    if (
        seconds is not None
        and channel.age > seconds / 2
        and file
        and file not in dict(source.files[-1:])
    ):
        yield Kind.RETENTION_NEAR.line(
            age=duration(channel.age), file=file, period=duration(seconds)
        )


def _by_gtid(source: SourceFacts, executed: GtidSet) -> Iterator[Line]:
    variables = source.server.variables
    lost = executed.minus(GtidSet.parse(variables.get("gtid_executed", "")))
    gone = GtidSet.parse(variables.get("gtid_purged", "")).minus(executed)
    if lost:
        yield Kind.SOURCE_BEHIND.line(missing=_shown(str(lost)))
    elif gone:
        yield Kind.POSITION_PURGED.line(missing=_shown(str(gone)))
    else:
        yield Kind.POSITION_AVAILABLE.line()


def _by_file(source: SourceFacts, position: Position) -> Iterator[Line]:
    sizes = dict(source.files)
    if not sizes:
        return  # Not listed: another line says so.
    if position.file in sizes:
        if position.offset > sizes[position.file]:
            yield Kind.SOURCE_BEHIND.line(
                missing=f"{position}, and the file ends at {sizes[position.file]}"
            )
        else:
            yield Kind.POSITION_AVAILABLE.line()
    elif position > Position(source.files[-1][0], 0):
        yield Kind.SOURCE_BEHIND.line(missing=f"{position}, and the last is {source.files[-1][0]}")
    else:
        yield Kind.POSITION_PURGED.line(
            missing=f"{position}, and the first is {source.files[0][0]}"
        )


def _shown(gtids: str) -> str:
    text = gtids.replace("\n", "")
    return text if len(text) <= _LONGEST_SET else text[: _LONGEST_SET - 1] + "…"

"""The check as a whole: connects to both servers, and collects the lines."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from typing import TypeVar

from mtsd.apply.position.position_tables import PositionTables
from mtsd.apply.rows.row_states import keeps_zones
from mtsd.config import EndpointSettings, Settings
from mtsd.config.start import Start
from mtsd.model.errors import ConnectionLostError, NeedsPersonError, ServerError
from mtsd.model.outcome.reason import Refused
from mtsd.model.server import Flavour, ServerVersion
from mtsd.operations.check.decisions import rows_as_sql, way_of
from mtsd.operations.check.facts import SourceFacts, TargetFacts
from mtsd.operations.check.lines.catalogue import Kind
from mtsd.operations.check.lines.column_lines import column_lines, zone_lines
from mtsd.operations.check.lines.filter_lines import filter_lines
from mtsd.operations.check.lines.line import Line
from mtsd.operations.check.lines.misread_lines import misread_lines
from mtsd.operations.check.lines.pair_lines import collision_lines, pair_lines
from mtsd.operations.check.lines.policy_lines import choice, commit_order_lines, policy_lines
from mtsd.operations.check.lines.position_lines import position_lines, reach_lines
from mtsd.operations.check.lines.refused_line import refused_line
from mtsd.operations.check.lines.server_lines import server_lines
from mtsd.operations.check.lines.source_lines import source_lines
from mtsd.operations.check.lines.status_socket import status_socket_lines
from mtsd.operations.check.lines.target_lines import target_lines
from mtsd.operations.check.lines.unreachable import interrupted, unreachable
from mtsd.operations.check.lines.xa_lines import xa_lines
from mtsd.operations.check.reading.servers import read_source, read_target
from mtsd.operations.check.replicated import (
    as_on_target,
    in_lower_case,
    only_changed,
    only_replicated,
)
from mtsd.replica.core.endpoints import endpoint
from mtsd.replica.core.filters import filter_of
from mtsd.replica.run.policy_choice import with_policy
from mtsd.schedule.policies.automatic import SEQUENTIAL
from mtsd.wire.connection import Connection
from mtsd.wire.family import SERVERS
from mtsd.wire.neutral_session import OtherServerError
from mtsd.wire.refusal import SessionRefusedError
from mtsd.wire.traits import supported

_READ_TIMEOUT_S = 60.0
_UNKNOWN = ServerVersion(Flavour.MYSQL, (999, 0, 0))
"""A target out of reach is taken for the newest."""
_CASE = "lower_case_table_names"

Facts = TypeVar("Facts", SourceFacts, TargetFacts)


async def check(settings: Settings) -> list[Line]:
    """Check both servers and return all lines; if one is out of reach, those of the other.

    Nothing is written on either, and no lock of a running daemon is taken.
    """
    schema = settings.target.schema
    tables = PositionTables(schema, settings.replica.channel)
    async with asyncio.TaskGroup() as reads:
        target = reads.create_task(
            _read_server(
                "target",
                settings.target,
                lambda connection, version: read_target(
                    connection, version, tables, binary_log=settings.target.binary_log
                ),
            )
        )
        # A running daemon moves on: a position read later would be past the source's end.
        source = reads.create_task(
            _read_server(
                "source",
                settings.source,
                lambda connection, version: read_source(
                    connection,
                    version,
                    schema,
                    _first_start(settings, target.result()),
                    _file(target.result()),
                ),
                after=target,
            )
        )
    checked = list(lines(settings, source.result(), target.result()))
    return [*checked, *await status_socket_lines(settings)]


def _first_start(settings: Settings, target: TargetFacts | Line) -> Start | None:
    """Return the start, if the next run begins there, as far as is known."""
    begun = isinstance(target, TargetFacts) and target.position.channel is not None
    return None if begun else settings.source.start


def _file(target: TargetFacts | Line) -> str:
    """Return the file of the source that the position is in; "" if there is none."""
    channel = target.position.channel if isinstance(target, TargetFacts) else None
    return "" if channel is None else channel.mark.position.file


def lines(
    settings: Settings, source: SourceFacts | Line, target: TargetFacts | Line
) -> Iterator[Line]:
    """Yield all lines for the facts; a Line stands for a server that could not be read."""
    for line in _lines(settings, source, target):
        facts = source if line.subject.startswith("source") else target
        if isinstance(facts, Line):
            yield line
        else:
            how = SERVERS[facts.server.flavour].set_for_good
            yield replace(line, remedy=line.remedy.replace("SET PERSIST", how))


def _lines(
    settings: Settings, source: SourceFacts | Line, target: TargetFacts | Line
) -> Iterator[Line]:
    known_source = None if isinstance(source, Line) else source
    known_target = None if isinstance(target, Line) else target
    fold_case = known_target is not None and known_target.server.number(_CASE) != 0
    server = _UNKNOWN if known_target is None else known_target.server.server
    if known_target is not None and fold_case:
        target = known_target = replace(known_target, server=in_lower_case(known_target.server))
    rules = filter_of(settings, fold_case=fold_case, target=server)
    if isinstance(source, Line):
        yield source
    else:
        everything = source.server
        source = replace(source, server=only_replicated(everything, rules))
        yield from server_lines("source", settings.source, source.server)
        yield from filter_lines(everything, rules)
        yield from source_lines(settings, source, known_target)
        chosen = choice(settings, source.server, known_target)
        if chosen is not None:
            settings = with_policy(settings, chosen)
            if chosen != SEQUENTIAL:
                yield Kind.POLICY_CHOSEN.line(policy=chosen.parallel_type, because=chosen.because)
        yield from policy_lines(settings, source.server, known_target, rules)
        named = as_on_target(source.server, rules)
        if fold_case:
            yield from collision_lines(named)
        known_source = replace(source, server=in_lower_case(named) if fold_case else named)
    if isinstance(target, Line):
        yield target
    else:
        target = replace(target, server=only_changed(target.server, rules))
        yield from server_lines("target", settings.target, target.server)
        yield from target_lines(settings, target, known_source)
        yield from position_lines(settings, target)
        yield from commit_order_lines(settings, target.server)
        yield from xa_lines(settings, target, known_source)
    if known_source is None or known_target is None:
        yield Kind.NOT_COMPARED.line()
        return
    way = way_of(settings, known_source, known_target)
    yield from reach_lines(settings, known_source, known_target, way)
    yield from pair_lines(settings, known_source, known_target, way)
    as_sql = rows_as_sql(settings, known_source, known_target) is True
    yield from column_lines(known_source.server, known_target.server, as_sql=as_sql)
    newer = settings.replica.newer_row_column
    in_utc = as_sql and not keeps_zones(known_target.server.server, newer)
    yield from zone_lines(known_source.server, known_target.server, in_utc=in_utc)
    yield from misread_lines(known_source.server, known_target.server, as_sql=as_sql)


async def _read_server(
    server: str,
    settings: EndpointSettings,
    read: Callable[[Connection, ServerVersion], Awaitable[Facts]],
    *,
    after: asyncio.Task[TargetFacts | Line] | None = None,
) -> Facts | Line:
    """Connect and read, the latter after another read has ended."""
    try:
        where = endpoint(server, settings)
    except NeedsPersonError as error:
        return Kind.TLS_FILE.line(server=server, reason=error)
    try:
        connection = await Connection.open(where, program_name="mtsd check")
    except (SessionRefusedError, ServerError, ConnectionLostError) as error:
        return unreachable(server, settings, error)
    try:
        version = supported(server, connection.server_version)
        if isinstance(version, Refused):
            return refused_line(version)
        if after is not None:
            await after
        async with asyncio.timeout(_READ_TIMEOUT_S):
            return await read(connection, version)
    except OtherServerError as error:
        return refused_line(error.refused)
    except (ServerError, ConnectionLostError) as error:
        return interrupted(server, error)
    except TimeoutError:
        late = ConnectionLostError(server, f"no answer in {_READ_TIMEOUT_S:g} s")
        return interrupted(server, late)
    finally:
        connection.close()

"""Lines that compare the source with the target."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from mtsd.apply.session.own_domain import own_ahead, own_domain, shared_domain
from mtsd.config import Earliest, Settings
from mtsd.model.gtid import GtidSet
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.names import folded
from mtsd.model.outcome.reason import Refused
from mtsd.operations.check.decisions import (
    Decision,
    gtids_of,
    guarded,
    may_set_gtids,
    rows_as_sql,
    state_of,
)
from mtsd.operations.check.facts import ServerFacts, SourceFacts, TargetFacts
from mtsd.operations.check.lines.catalogue import Kind
from mtsd.operations.check.lines.character_set_lines import character_set_lines
from mtsd.operations.check.lines.line import Line, listed, size
from mtsd.operations.check.lines.refused_line import refused_line
from mtsd.operations.check.lines.server_lines import counted, table_lines
from mtsd.operations.check.lines.target_lines import row_bytes
from mtsd.operations.check.privileges import HeldPrivileges
from mtsd.operations.check.visible import sees_tables
from mtsd.replica.core.apply_mode import is_idempotent
from mtsd.replica.core.gtid_mode import Gtids
from mtsd.source.continuation import ByFile
from mtsd.wire.family import SERVERS

_BY_NAME = "their names, which the source logs (binlog_row_metadata = FULL)"
_BY_PLACE = "their position in the table, because the source does not log their names"
_UTC = frozenset({"UTC", "GMT", "ETC/UTC", "ETC/GMT", "UCT", "ZULU"})


def pair_lines(
    settings: Settings, source: SourceFacts, target: TargetFacts, way: Decision | None
) -> Iterator[Line]:
    """Yield the lines about what has to be compatible on both servers; `way` is `way_of`."""
    families = source.server.flavour, target.server.flavour
    as_sql = rows_as_sql(settings, source, target)
    if isinstance(as_sql, Refused):
        yield refused_line(as_sql)
    elif families[0] is not families[1]:
        yield Kind.FAMILIES.line(source=families[0].value, target=families[1].value)
    if as_sql is True:
        named = source.server.variables.get("binlog_row_metadata") == "FULL"
        yield Kind.ROWS_AS_SQL.line(how=_BY_NAME if named else _BY_PLACE)
    uuid = target.server.identity
    if uuid and uuid == source.server.identity:
        yield Kind.SAME_SERVER.line(uuid=uuid)
    else:
        for refused in guarded(settings, source, target, by_binlog=as_sql is not True):
            yield refused_line(refused)
    if target.server.number("server_id") == settings.source.server_id:
        yield Kind.SERVER_ID_OF_TARGET.line(value=settings.source.server_id)
    newer = source.server.version[:2] > target.server.version[:2]
    if newer and families[0] is families[1]:
        yield Kind.OLDER_TARGET.line(
            source=source.server.version_text, target=target.server.version_text
        )
    yield from _gtids(settings, source, target, way)
    yield from _packets(settings, source.server, target.server)
    yield from _variables(source.server, target.server)
    yield from character_set_lines(source.server, target.server)
    yield from _time_zones(source.server, target.server)
    yield from _tables(settings, source, target)


def _gtids(
    settings: Settings, source: SourceFacts, target: TargetFacts, way: Decision | None
) -> Iterator[Line]:
    gtids = gtids_of(settings, source, target)
    if isinstance(gtids, Refused):
        yield refused_line(gtids)
    if source.server.flavour is not target.server.flavour:
        by_gtid = SERVERS[source.server.flavour].has_domains
        yield Kind.OTHER_GTIDS.line(way=_way(way, by_gtid=by_gtid))
        yield from _evidence(settings, target)
        return
    if SERVERS[target.server.flavour].has_domains:
        yield Kind.MARIADB_GTIDS.line(way=_way(way, by_gtid=True))
        yield from _own_domain(settings, source, target)
        yield from _evidence(settings, target)
        return
    modes = {
        "source": source.server.variables.get("gtid_mode", "OFF"),
        "target": target.server.variables.get("gtid_mode", "OFF"),
    }
    setting = settings.target.gtid
    if modes["source"] != "ON" and gtids is Gtids.PRESERVE:
        yield Kind.GTIDS_NEEDED.line(setting=setting, server="source")
    if modes["source"] != "ON" and setting == "mirror" and gtids is Gtids.MIRROR:
        yield Kind.NOTHING_TO_MIRROR.line(value=modes["source"])
    logged = modes["source"] == "ON"
    yield Kind.GTIDS.line(
        source=modes["source"],
        target=modes["target"],
        way=_way(way),
        meaning=_MEANING[gtids if isinstance(gtids, Gtids) and logged else Gtids.OFF],
    )
    if modes["source"] not in {"ON", "OFF"}:
        yield Kind.SOURCE_GTIDS_PARTLY.line(value=modes["source"])
    yield from _evidence(settings, target)
    if modes["target"] == "ON":
        enforced = source.server.variables.get("enforce_gtid_consistency", "OFF")
        if enforced not in {"ON", "1"}:
            yield Kind.GTID_CONSISTENCY.line(source=enforced)


def _own_domain(settings: Settings, source: SourceFacts, target: TargetFacts) -> Iterator[Line]:
    """Yield the lines about the domain in which mtsd writes to the binary log of a MariaDB."""
    server = target.server
    server_id = server.number("server_id")
    logged = server.on("log_bin") and settings.target.binary_log
    domain = own_domain(settings.target.gtid_domain_id, server.flavour, server_id, logged=logged)
    if domain is None:
        return
    may_set = HeldPrivileges.of(server.grants).has(("BINLOG REPLAY", "SUPER"))
    if not may_set:
        domain = server.number("gtid_domain_id")
    shared = shared_domain(domain, state_of(source).executed, may_set=may_set)
    if shared is None:
        yield Kind.OWN_DOMAIN.line(domain=domain)
    elif server.on("gtid_strict_mode"):
        yield refused_line(shared)
    else:
        loosely = Kind.DOMAIN_SHARED_LOOSELY if may_set else Kind.CANNOT_LEAVE_LOOSELY
        yield loosely.line(**shared.facts)
    channel = target.position.channel
    if channel is not None and channel.mark.gtids is not None:
        logged_gtids = GtidSet.parse(server.variables.get("gtid_binlog_pos", ""))
        ahead = own_ahead(logged_gtids, server_id, channel.mark.gtids)
        if ahead:
            yield Kind.OWN_GTIDS_AHEAD.line(gtids=ahead, position=channel.mark.gtids)


def _evidence(settings: Settings, target: TargetFacts) -> Iterator[Line]:
    """Yield what is missing to tell whether an interrupted definition was applied."""
    server = target.server
    if SERVERS[server.flavour].has_domains or not may_set_gtids(target):
        if not (server.on("log_bin") and settings.target.binary_log):
            yield Kind.TARGET_WITHOUT_EVIDENCE.line()
    elif server.variables.get("gtid_mode", "OFF") != "ON":
        yield Kind.TARGET_WITHOUT_GTIDS.line(value=server.variables.get("gtid_mode", "OFF"))


_MEANING = {
    Gtids.PRESERVE: "transactions keep their GTIDs on the target, and are not combined",
    Gtids.MIRROR: "the target learns the source's GTIDs at each checkpoint",
    Gtids.OFF: "the target does not learn the source's GTIDs",
}


def _way(way: Decision | None, *, by_gtid: bool = False) -> str:
    if way is None or isinstance(way, Refused):
        return "not read"
    by_file = isinstance(way, ByFile)
    if isinstance(way, LowWaterMark):
        by_file = bool(way.position.file) and not (by_gtid and way.gtids is not None)
    return "read by file and position" if by_file else "read by GTID"


def _packets(settings: Settings, source: ServerFacts, target: ServerFacts) -> Iterator[Line]:
    of_source, of_target = source.number("max_allowed_packet"), target.number("max_allowed_packet")
    row = size(row_bytes(target))
    if of_target < of_source:
        yield Kind.PACKET_SMALL.line(
            value=size(of_target), source=size(of_source), row=row, wanted=of_source
        )
    else:
        yield Kind.PACKET.line(value=size(of_target), row=row)
    pending = settings.replica.pending_jobs_size_max
    kind = Kind.PENDING if pending >= of_source else Kind.PENDING_SMALL
    yield kind.line(value=size(pending), source=size(of_source), wanted=of_source)


_DIFFERING = (
    ("default_storage_engine", "CREATE TABLE without ENGINE creates another kind of table"),
    ("innodb_page_size", "definitions of long rows and keys may be refused on the target"),
    ("default_table_encryption", "CREATE DATABASE from the source is refused (1227)"),
)
"""Variables that a statement's event does not contain, or that mtsd's user may not set."""
_COMPUTING = (
    ("block_encryption_mode", "AES_ENCRYPT() in a statement gives other bytes on the target"),
    ("default_week_format", "WEEK() in a statement is another number on the target"),
    ("div_precision_increment", "a division in a statement has other digits on the target"),
    ("group_concat_max_len", "GROUP_CONCAT() in a statement may be cut, or refused (1260)"),
    ("cte_max_recursion_depth", "a statement WITH RECURSIVE may be refused (3636)"),
    ("max_recursive_iterations", "a statement WITH RECURSIVE may be refused (1931)"),
)
"""Variables by which a server computes what a statement says, and which no event contains."""
_REFUSING = (
    (
        "innodb_strict_mode",
        ("OFF", "ON"),
        "definitions that the source accepts with a warning are refused on the target",
    ),
    (
        "partial_revokes",
        ("ON", "OFF"),
        "a REVOKE of a part of what an account may do everywhere is refused on the target (1141)",
    ),
)
"""Switches that refuse something only where they are so on the source and on the target."""


_KEEPS_CASE: Final = (
    "a definition or statement with capitals in a name is not about the table whose rows come in"
    " lower case: it stops the replica (1049, 1146), or does nothing where it says IF EXISTS"
)
_FOLDS_CASE: Final = (
    "tables whose names differ only in case are one on the target, and views that name tables in"
    " capitals have them in lower case"
)


def collision_lines(source: ServerFacts) -> Iterator[Line]:
    """Yield the line about the source's tables that are one on a target that folds names."""
    tables = [str(table) for table in source.tables]
    names = Counter(map(folded, tables))
    same = [table for table in tables if names[folded(table)] > 1]
    if same:
        yield Kind.NAMES_COLLIDE.line(count=counted(len(same), "table"), tables=listed(same))


def _variables(source: ServerFacts, target: ServerFacts) -> Iterator[Line]:
    computing = () if source.variables.get("binlog_format", "ROW") == "ROW" else _COMPUTING
    for name, why in (*_DIFFERING, *computing):
        of_source, of_target = source.variables.get(name), target.variables.get(name)
        if of_source is not None and of_target is not None and of_source != of_target:
            yield Kind.VARIABLE_DIFFERS.line(name=name, source=of_source, target=of_target, why=why)
    for name, refusing, why in _REFUSING:
        found = tuple("ON" if server.on(name) else "OFF" for server in (source, target))
        if found == refusing:
            yield Kind.VARIABLE_DIFFERS.line(name=name, source=found[0], target=found[1], why=why)
    cases = [server.number("lower_case_table_names") for server in (source, target)]
    if cases[0] != cases[1]:
        why = _KEEPS_CASE if cases[1] == 0 else _FOLDS_CASE
        yield Kind.LOWER_CASE.line(source=cases[0], target=cases[1], why=why)


def _time_zones(source: ServerFacts, target: ServerFacts) -> Iterator[Line]:
    zone = source.variables.get("time_zone", "SYSTEM")
    named = zone != "SYSTEM" and zone[:1] not in {"+", "-"}
    if target.time_zones:
        yield Kind.TIME_ZONES.line(found="known by name on the target")
    elif named:
        yield Kind.TIME_ZONE_UNKNOWN.line(name=zone)
    elif source.time_zones:
        yield Kind.NO_TIME_ZONES.line()
    else:
        yield Kind.TIME_ZONES.line(found="neither server knows any by name")
    of_source, of_target = (
        server.variables.get("system_time_zone", "").upper() for server in (source, target)
    )
    if zone == "SYSTEM" and of_source != of_target and not {of_source, of_target} <= _UTC:
        yield Kind.SYSTEM_TIME_ZONE.line(source=of_source, target=of_target)


def _tables(settings: Settings, source: SourceFacts, target: TargetFacts) -> Iterator[Line]:
    if not sees_tables(source.server):
        # The target's tables are the next best: most of them have come from the source.
        yield from table_lines("target", target.server, source.server.flavour)
        if not target.server.tables and (begins := _begins(settings, target)):
            yield Kind.NOT_COPIED.line(begins=begins)
        return
    there = {(table.schema, table.name): table for table in target.server.tables}
    unsafe: list[str] = []
    absent: list[str] = []
    empty: list[str] = []
    for table in source.server.tables:
        on_target = there.get((table.schema, table.name))
        if on_target is None:
            absent.append(str(table))
        elif on_target.is_blackhole and not (table.is_blackhole or is_idempotent(settings.replica)):
            empty.append(str(table))
        elif table.transactional and not on_target.transactional:
            unsafe.append(str(table))
    if unsafe:
        yield Kind.TARGET_ENGINE.line(count=counted(len(unsafe), "table"), tables=listed(unsafe))
    if empty:
        yield Kind.BLACKHOLES.line(count=counted(len(empty), "table"), tables=listed(empty))
    if absent and (begins := _begins(settings, target)):
        yield Kind.MISSING_TABLES.line(
            count=counted(len(absent), "table"), tables=listed(absent), begins=begins
        )


def _begins(settings: Settings, target: TargetFacts) -> str:
    """Return what mtsd does not begin with the source's history with; "" if it does."""
    channel = target.position.channel
    if channel is not None:
        # Of a channel that has only begun, the history is still to be read.
        return f"continues at {channel.mark.position}" if channel.mark.number else ""
    start = settings.source.start
    if start is None or isinstance(start, Earliest):
        return ""
    return f'starts at "{start}"'

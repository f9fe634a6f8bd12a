"""Lines that compare the source with the target."""

from collections.abc import Iterator

from mtsd.config import Latest, Settings
from mtsd.operations.check.catalogue import Kind
from mtsd.operations.check.facts import ServerFacts, SourceFacts, TargetFacts
from mtsd.operations.check.line import Line, listed, size
from mtsd.operations.check.privileges import mirrors
from mtsd.operations.check.server_lines import counted, sees_tables, table_lines
from mtsd.operations.check.target_lines import row_bytes

_UTC = frozenset({"UTC", "GMT", "ETC/UTC", "ETC/GMT", "UCT", "ZULU"})


def pair_lines(settings: Settings, source: SourceFacts, target: TargetFacts) -> Iterator[Line]:
    """Yield the lines about what has to fit on the two servers."""
    ours, theirs = source.server, target.server
    uuid = theirs.variables.get("server_uuid", "").lower()
    if uuid and uuid == ours.variables.get("server_uuid", "").lower():
        yield Kind.SAME_SERVER.line(uuid=uuid)
    elif ours.variables.get("server_uuid", "").lower() in theirs.replicates_from:
        yield Kind.NATIVE_REPLICA.line()
    if theirs.number("server_id") == settings.source.server_id:
        yield Kind.SERVER_ID_OF_TARGET.line(value=settings.source.server_id)
    if ours.version[:2] > theirs.version[:2]:
        yield Kind.OLDER_TARGET.line(source=ours.version_text, target=theirs.version_text)
    yield from _gtids(settings, source, target)
    yield from _packets(settings, ours, theirs)
    yield from _variables(ours, theirs)
    yield from _time_zones(ours, theirs)
    yield from _tables(settings, source, target)


def _gtids(settings: Settings, source: SourceFacts, target: TargetFacts) -> Iterator[Line]:
    modes = {
        "source": source.server.variables.get("gtid_mode", "OFF"),
        "target": target.server.variables.get("gtid_mode", "OFF"),
    }
    setting = settings.target.gtid
    channel = target.position.channel
    by_gtid = modes["source"] == "ON" and (channel is None or channel.gtids is not None)
    logs = target.server.on("log_bin") and settings.target.binary_log
    if setting in {"mirror", "preserve"}:
        wrong = [(server, mode) for server, mode in modes.items() if mode != "ON"]
        for server, mode in wrong:
            yield Kind.GTIDS_NEEDED.line(setting=setting, server=server, value=mode)
        if setting == "mirror" and logs and not wrong:
            yield Kind.MIRROR_WITH_BINLOG.line()
    if setting == "preserve":
        meaning = "transactions keep their GTIDs on the target, and none are combined"
    elif mirrors(settings, logs=logs) and set(modes.values()) == {"ON"}:
        meaning = "the target learns the source's GTIDs at each checkpoint"
    else:
        meaning = "the target does not learn the source's GTIDs"
    yield Kind.GTIDS.line(
        source=modes["source"],
        target=modes["target"],
        way="GTID" if by_gtid else "file and position",
        meaning=meaning,
    )
    if modes["source"] not in {"ON", "OFF"}:
        yield Kind.SOURCE_GTIDS_PARTLY.line(value=modes["source"])
    if modes["target"] != "ON":
        yield Kind.TARGET_WITHOUT_GTIDS.line(value=modes["target"])
    else:
        enforced = source.server.variables.get("enforce_gtid_consistency", "OFF")
        if enforced not in {"ON", "1"}:
            yield Kind.GTID_CONSISTENCY.line(source=enforced)


def _packets(settings: Settings, ours: ServerFacts, theirs: ServerFacts) -> Iterator[Line]:
    here, there = ours.number("max_allowed_packet"), theirs.number("max_allowed_packet")
    row = size(row_bytes(theirs))
    if there < here:
        yield Kind.PACKET_SMALL.line(value=size(there), source=size(here), row=row, wanted=here)
    else:
        yield Kind.PACKET.line(value=size(there), row=row)
    pending = settings.replica.pending_jobs_size_max
    kind = Kind.PENDING if pending >= here else Kind.PENDING_SMALL
    yield kind.line(value=size(pending), source=size(here), wanted=here)


_DIFFERING = (
    ("default_storage_engine", "CREATE TABLE without ENGINE makes another kind of table"),
    ("innodb_page_size", "definitions of long rows and keys may be refused on the target"),
    ("default_table_encryption", "CREATE DATABASE from the source is refused (1227)"),
)
"""Variables that a statement's event does not carry, or that our user may not set."""


def _variables(ours: ServerFacts, theirs: ServerFacts) -> Iterator[Line]:
    for name, why in _DIFFERING:
        here, there = ours.variables.get(name), theirs.variables.get(name)
        if here is not None and there is not None and here != there:
            yield Kind.VARIABLE_DIFFERS.line(name=name, source=here, target=there, why=why)
    if theirs.on("innodb_strict_mode") and not ours.on("innodb_strict_mode"):
        yield Kind.VARIABLE_DIFFERS.line(
            name="innodb_strict_mode",
            source="OFF",
            target="ON",
            why="definitions that the source takes with a warning are refused on the target",
        )
    cases = [server.number("lower_case_table_names") for server in (ours, theirs)]
    if cases[0] != cases[1]:
        yield Kind.LOWER_CASE.line(source=cases[0], target=cases[1])


def _time_zones(ours: ServerFacts, theirs: ServerFacts) -> Iterator[Line]:
    zone = ours.variables.get("time_zone", "SYSTEM")
    named = zone != "SYSTEM" and zone[:1] not in {"+", "-"}
    if theirs.time_zones:
        yield Kind.TIME_ZONES.line(found="known by name on the target")
    elif named:
        yield Kind.TIME_ZONE_UNKNOWN.line(name=zone)
    elif ours.time_zones:
        yield Kind.NO_TIME_ZONES.line()
    else:
        yield Kind.TIME_ZONES.line(found="neither server knows any by name")
    here, there = (
        server.variables.get("system_time_zone", "").upper() for server in (ours, theirs)
    )
    if zone == "SYSTEM" and here != there and not {here, there} <= _UTC:
        yield Kind.SYSTEM_TIME_ZONE.line(source=here, target=there)


def _tables(settings: Settings, source: SourceFacts, target: TargetFacts) -> Iterator[Line]:
    if not sees_tables(source.server):
        # What is on the target is the next best: most of it has come from the source.
        yield from table_lines("target", target.server)
        return
    there = {(table.schema, table.name): table for table in target.server.tables}
    unsafe: list[str] = []
    absent: list[str] = []
    for table in source.server.tables:
        found = there.get((table.schema, table.name))
        if found is None:
            absent.append(str(table))
        elif table.transactional and not found.transactional:
            unsafe.append(str(table))
    if unsafe:
        yield Kind.TARGET_ENGINE.line(count=counted(len(unsafe), "table"), tables=listed(unsafe))
    begins = target.position.channel is None and isinstance(settings.source.start, Latest)
    if absent and begins:
        yield Kind.MISSING_TABLES.line(count=counted(len(absent), "table"), tables=listed(absent))

"""Lines about the source: its binary log, and who reads it."""

from collections.abc import Iterator

from mtsd.apply.position.position_schema import STATUS_TABLES, TABLES
from mtsd.config import Settings
from mtsd.operations.check.facts import ServerFacts, SourceFacts, TargetFacts
from mtsd.operations.check.lines.catalogue import Kind
from mtsd.operations.check.lines.line import Line, duration, listed
from mtsd.operations.check.lines.server_lines import table_lines
from mtsd.operations.check.privileges import SOURCE, HeldPrivileges, grant, missing
from mtsd.operations.check.visible import sees_tables
from mtsd.source.family import SOURCES
from mtsd.source.handshake import SEMI_SYNC_ENABLED
from mtsd.source.held_log import HELD
from mtsd.source.source_log import retention_of

_DAY = 86_400
_INTERLEAVED = 2
"""innodb_autoinc_lock_mode: no statement waits for another one's numbers."""
_ORDERED = (
    "ordered by the databases that the source lists with them; one that reads a database that is"
    " not listed may see it at a different moment"
)
_ALONE = "each alone, because MariaDB does not say which databases they change"


def source_lines(
    settings: Settings, facts: SourceFacts, target: TargetFacts | None
) -> Iterator[Line]:
    """Yield the lines about the source; `target` is None if it could not be read."""
    server = facts.server
    lacking = missing(HeldPrivileges.of(server.grants), SOURCE, server.server)
    if lacking:
        yield Kind.PRIVILEGES_MISSING.line(
            server="source",
            user=server.account,
            missing=", ".join(lacking),
            grants=grant(lacking, server.account),
        )
    else:
        yield Kind.PRIVILEGES.line(server="source", user=server.account)
    yield from _binary_log(settings, facts)
    yield from _retention(facts, settings.replica.delay)
    yield from _semi_sync(settings, server)
    yield from _server_ids(settings, facts, target)
    yield from _position_schema(settings.target.schema, facts)
    if sees_tables(server):
        yield from table_lines("source", server, server.flavour)
    else:
        yield Kind.TABLES_UNSEEN.line(server="source", user=server.account)


def _binary_log(settings: Settings, facts: SourceFacts) -> Iterator[Line]:
    server = facts.server
    variables = server.variables
    if not server.on("log_bin"):
        yield Kind.NO_BINARY_LOG.line(address=settings.source.address)
        return
    yield Kind.BINARY_LOG.line()
    family = SOURCES[server.flavour]
    binlog_format = variables.get("binlog_format", "ROW")
    if binlog_format == "ROW":
        yield Kind.ROW_FORMAT.line()
    else:
        order = _ORDERED if family.names_databases else _ALONE
        yield Kind.STATEMENT_FORMAT.line(value=binlog_format, order=order)
    if binlog_format == "STATEMENT" and server.number("innodb_autoinc_lock_mode") == _INTERLEAVED:
        yield Kind.NUMBERS_INTERLEAVED.line()
    image = variables.get("binlog_row_image", "FULL")
    if image == "FULL":
        yield Kind.ROW_IMAGE.line()
    else:
        yield Kind.ROW_IMAGE_PARTIAL.line(value=image)
    if image == "MINIMAL" and not family.logs_defaults:
        yield Kind.DEFAULTS_NOT_LOGGED.line()
    yield Kind.ROW_METADATA.line(value=variables.get("binlog_row_metadata", "not there"))
    checksum = variables.get("binlog_checksum", "NONE")
    options = [f"checksum {checksum}"]
    options += [
        f"{name} {variables[name]}"
        for name in ("binlog_row_value_options", "binlog_transaction_compression")
        if variables.get(name, "OFF") not in {"", "OFF"}
    ]
    yield Kind.EVENT_OPTIONS.line(options=", ".join(options))
    if checksum == "NONE":
        yield Kind.NO_CHECKSUM.line()
    if facts.filters:
        yield Kind.BINLOG_FILTERED.line(filters=", ".join(facts.filters))
    updates = variables.get("log_replica_updates", variables.get("log_slave_updates", "ON"))
    if any(each.applying for each in server.own_channels) and updates == "OFF":
        yield Kind.CHAIN_CUT.line()
    if server.number("sync_binlog", 1) != 1:
        yield Kind.SYNC_BINLOG.line(value=server.number("sync_binlog"))


def _retention(facts: SourceFacts, delay: int) -> Iterator[Line]:
    if not facts.server.on("log_bin"):
        return
    if facts.files_refused == HELD:
        yield Kind.LOGS_HELD.line()
    elif facts.files_refused:
        yield Kind.LOGS_UNSEEN.line(
            reason=facts.files_refused,
            privilege=SOURCES[facts.server.flavour].shows_binary_log,
            user=facts.server.account,
        )
    seconds = retention_of(facts.server.variables)
    if seconds is None:
        yield Kind.RETENTION.line(period="binary logs are not purged automatically")
    elif seconds <= delay:
        yield Kind.RETENTION_DELAY.line(period=duration(seconds), delay=duration(delay))
    elif seconds < _DAY:
        yield Kind.RETENTION_SHORT.line(period=duration(seconds))
    else:
        yield Kind.RETENTION.line(period=f"binary logs are purged after {duration(seconds)}")


def _semi_sync(settings: Settings, server: ServerFacts) -> Iterator[Line]:
    enabled = {
        name: server.variables[name] for name in SEMI_SYNC_ENABLED if name in server.variables
    }
    if settings.source.semi_sync == "off":
        return
    if not enabled:
        yield Kind.SEMI_SYNC_NOT_THERE.line()
    elif "ON" not in enabled.values():
        yield Kind.SEMI_SYNC_OFF.line(variable=next(iter(enabled)))
    else:
        yield Kind.SEMI_SYNC.line(limit=duration(settings.source.semi_sync_limit))


def _position_schema(schema: str, facts: SourceFacts) -> Iterator[Line]:
    tables = facts.position_schema
    if tables is None:
        return
    others = [name for name in tables if name not in {*TABLES, *STATUS_TABLES}]
    if others or not tables:
        found = listed(others) if others else "no visible tables"
        yield Kind.POSITION_SCHEMA_ON_SOURCE.line(schema=schema, tables=found)
    else:
        yield Kind.POSITION_SCHEMA_OF_ANOTHER.line(schema=schema)


def _server_ids(
    settings: Settings, facts: SourceFacts, target: TargetFacts | None
) -> Iterator[Line]:
    own = settings.source.server_id
    its = facts.server.number("server_id")
    if its == 0:
        yield Kind.NO_SERVER_ID.line()
    elif its == own:
        yield Kind.SERVER_ID_SAME.line(address=settings.source.address, value=own)
    else:
        yield Kind.SERVER_ID.line(source=its, replica=own)
    channel = target.position.channel if target is not None else None
    for server_id, uuid in facts.replicas:
        known = channel is not None and bool(channel.daemon_uuid)
        if channel is not None and known and uuid.lower() == channel.daemon_uuid:
            if target is not None and target.position.daemon is None:
                yield Kind.READ_BY_ANOTHER.line(value=server_id, uuid=uuid)
            else:
                yield Kind.DAEMON_CONNECTED.line(value=server_id)
        elif server_id != own:
            continue
        elif not known or not uuid:
            yield Kind.SERVER_ID_MAYBE_TAKEN.line(value=own, uuid=uuid or "without UUID")
        else:
            yield Kind.SERVER_ID_TAKEN.line(value=own, uuid=uuid)

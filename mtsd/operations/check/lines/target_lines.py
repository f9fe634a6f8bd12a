"""Lines about the target: what it lets mtsd do, and how it would apply it."""

from collections.abc import Iterator

from mtsd.apply.rows.bundle import BASE64_SHARE
from mtsd.apply.session.session_state import THREAD_ID
from mtsd.config import Settings
from mtsd.filter.channels import named_databases
from mtsd.model.outcome.reason import Refused
from mtsd.model.server import Flavour
from mtsd.operations.check.decisions import may_set_gtids, rows_as_sql
from mtsd.operations.check.facts import FAR_S, ServerFacts, SourceFacts, TargetFacts
from mtsd.operations.check.lines.catalogue import Kind
from mtsd.operations.check.lines.line import Line, listed, size
from mtsd.operations.check.lines.refused_line import refused_line
from mtsd.operations.check.lines.server_lines import counted
from mtsd.operations.check.privileges import (
    ACCOUNTS,
    BINLOG,
    DEFINERS,
    POSITION,
    SESSION,
    WRITES_ALTHOUGH_READ_ONLY,
    HeldPrivileges,
    definitions,
    grant,
    missing,
    missing_on,
    missing_on_all,
    target_needs,
)
from mtsd.replica.core.filters import rules_of
from mtsd.replica.core.limits import sessions_of
from mtsd.source.family import SOURCES


def target_lines(
    settings: Settings, facts: TargetFacts, source: SourceFacts | None
) -> Iterator[Line]:
    """Yield the lines about the target; `source` is None if it could not be read."""
    server = facts.server
    family = source.server.flavour if source is not None else server.flavour
    as_sql = rows_as_sql(settings, source, facts) is True
    if as_sql and not facts.binlog_allowed and family is server.flavour:
        grants = grant(missing(HeldPrivileges(), BINLOG, server.server), server.account)
        yield Kind.BINLOG_NOT_ALLOWED.line(user=server.account, grants=grants)
    yield from _privileges(settings, facts, source, family, as_sql=as_sql)
    yield from _session_variables(facts, source)
    yield from _read_only(server)
    if server.variables.get("secure_timestamp") == "YES":
        yield Kind.SECURE_TIMESTAMP.line()
    yield from _sessions(settings, facts)
    if facts.round_trip_s >= FAR_S:
        yield Kind.FAR_AWAY.line(value=round(facts.round_trip_s * 1000))
    packet = row_bytes(server)
    if settings.replica.batch_bytes > packet:
        yield Kind.BATCH_CUT.line(value=size(settings.replica.batch_bytes), row=size(packet))
    logs = server.on("log_bin") and settings.target.binary_log
    if logs and server.variables.get("binlog_format") == "STATEMENT":
        yield Kind.TARGET_STATEMENT_FORMAT.line()
    source_format = source.server.variables.get("binlog_format", "ROW") if source else "ROW"
    if source_format != "ROW" and server.variables.get("local_infile") == "OFF":
        yield Kind.NO_LOCAL_FILES.line(value=source_format)
    yield from _triggers(server, source, as_sql=as_sql)
    if facts.reaching and source_format != "ROW" and not SOURCES[family].names_databases:
        yield Kind.POSITION_SCHEMA_REACHED.line(
            found=listed(list(facts.reaching)), schema=settings.target.schema
        )
    yield from _events(server, source)


def row_bytes(server: ServerFacts) -> int:
    """Return how large a row event the server accepts, in bytes."""
    return int(server.number("max_allowed_packet") * BASE64_SHARE)


def _privileges(
    settings: Settings,
    facts: TargetFacts,
    source: SourceFacts | None,
    family: Flavour,
    *,
    as_sql: bool,
) -> Iterator[Line]:
    server = facts.server
    held = HeldPrivileges.of(server.grants)
    logs = server.on("log_bin") and settings.target.binary_log
    gtids = server.variables.get("gtid_mode") == "ON" and may_set_gtids(facts)
    needs = target_needs(settings, logs=logs, gtids=gtids, source=family, as_sql=as_sql)
    lacking = missing(held, needs, server.server)
    grants = [grant(lacking, server.account)] if lacking else []
    texts = list(lacking)
    databases = named_databases(rules_of(settings.filter))
    everywhere = missing_on_all(held, server.server) if databases is None else []
    where = databases or ()
    if databases is None and source is not None:
        schemas = tuple(sorted({table.schema for table in source.server.tables}))
        # What is held on all databases may have been revoked on some.
        where = schemas if everywhere else tuple(filter(held.revoked.get, schemas))
    on_databases = missing_on(held, definitions(server.server), where)
    if everywhere and len(on_databases) == len(where):
        # Or the source's databases are unknown, and all of them may be meant.
        grants.append(grant(everywhere, server.account))
        texts += everywhere
    else:
        for database, names in on_databases.items():
            grants.append(grant(names, server.account, database))
            texts.append(f"{', '.join(names)} on {database}")
    for database, names in missing_on(held, POSITION, [settings.target.schema]).items():
        grants.append(grant(names, server.account, database))
        texts.append(f"{', '.join(names)} on {database}")
    if texts:
        yield Kind.PRIVILEGES_MISSING.line(
            server="target",
            user=server.account,
            missing=", ".join(texts),
            grants="; ".join(grants),
        )
    else:
        yield Kind.PRIVILEGES.line(server="target", user=server.account)
    definers = missing(held, DEFINERS, server.server)
    if definers and settings.target.definer == "source":
        yield Kind.DEFINERS.line(
            user=server.account,
            missing=", ".join(definers),
            grants=grant(definers, server.account),
        )
    accounts = missing(held, ACCOUNTS, server.server)
    if accounts:
        yield Kind.ACCOUNTS.line(
            user=server.account,
            missing=", ".join(accounts),
            grants=f"GRANT ALL ON *.* TO {server.account} WITH GRANT OPTION",
        )
        if held.has_on("mysql", "INSERT"):
            yield Kind.SYSTEM_TABLES_WRITABLE.line(user=server.account)
    trusts = "log_bin_trust_function_creators"
    if logs and not server.on(trusts):
        if not held.has(("SUPER",)):
            yield Kind.FUNCTION_CREATORS.line()
        if source is not None and source.server.on(trusts):
            yield Kind.UNSAFE_FUNCTIONS.line()


def _session_variables(facts: TargetFacts, source: SourceFacts | None) -> Iterator[Line]:
    pinned = facts.pinned
    if isinstance(pinned, Refused):
        yield refused_line(pinned)
    elif THREAD_ID in pinned.refused:
        server = facts.server
        grants = grant(missing(HeldPrivileges(), SESSION, server.server), server.account)
        variables = ", ".join(sorted(name.decode() for name in pinned.refused))
        value = source.server.variables.get("binlog_format", "ROW") if source else "ROW"
        kind = Kind.SESSION_KEPT if value == "ROW" else Kind.STATEMENTS_REFUSED
        yield kind.line(user=server.account, variables=variables, grants=grants, value=value)


def _read_only(server: ServerFacts) -> Iterator[Line]:
    if server.on("super_read_only"):
        yield Kind.SUPER_READ_ONLY.line()
        return
    if not server.on("read_only"):
        yield Kind.WRITABLE.line(value="OFF")
        return
    held = HeldPrivileges.of(server.grants)
    if lacks := missing(held, WRITES_ALTHOUGH_READ_ONLY, server.server):
        yield Kind.READ_ONLY.line(user=server.account, grants=grant(lacks, server.account))
    else:
        yield Kind.WRITABLE.line(value=f"ON, but {server.account} may write anyway")


def _sessions(settings: Settings, facts: TargetFacts) -> Iterator[Line]:
    server = facts.server
    needed = sessions_of(settings.replica)
    most = server.number("max_connections")
    for name in ("max_connections", "max_user_connections"):
        value = server.number(name)
        if 0 < value < needed:
            yield Kind.TOO_FEW_SESSIONS.line(name=name, value=value, needed=needed)
            return
    # The session of this check is among those connected, and will be gone by then.
    free = most - server.threads_connected + 1
    if free < needed and facts.position.daemon is None:
        yield Kind.SESSIONS_SCARCE.line(free=max(free, 0), value=most, needed=needed)
    else:
        yield Kind.SESSIONS.line(free=max(free, 0), needed=needed)


def _triggers(server: ServerFacts, source: SourceFacts | None, *, as_sql: bool) -> Iterator[Line]:
    if as_sql and server.triggers:
        triggers = list(server.triggers)
        yield Kind.TRIGGERS_REFUSED.line(
            count=counted(len(triggers), "trigger"), triggers=listed(triggers)
        )
        return
    known = set(source.server.triggers) if source is not None else set()
    own = [name for name in server.triggers if name not in known]
    if own:
        yield Kind.OWN_TRIGGERS.line(count=counted(len(own), "trigger"), triggers=listed(own))
    else:
        yield Kind.TRIGGERS.line(count=counted(len(server.triggers), "trigger"))


def _events(server: ServerFacts, source: SourceFacts | None) -> Iterator[Line]:
    if not server.on("event_scheduler"):
        yield Kind.EVENTS.line(found="event_scheduler is OFF")
        return
    events = list(server.events)
    if source is not None and HeldPrivileges.of(source.server.grants).has(("EVENT",)):
        events = [name for name in events if name in source.server.events]
    if events:
        yield Kind.EVENTS_TWICE.line(count=counted(len(events), "event"), events=listed(events))
    else:
        yield Kind.EVENTS.line(found="none is enabled on both sides")

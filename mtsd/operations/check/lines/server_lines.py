"""Lines about a single server, either the source or the target."""

import ipaddress
from collections.abc import Iterator

from mtsd.config import EndpointSettings
from mtsd.model.server import Flavour
from mtsd.operations.check.facts import ServerFacts
from mtsd.operations.check.lines.catalogue import Kind
from mtsd.operations.check.lines.line import Line, listed
from mtsd.source.family import SOURCES

_CLOCK_TOLERANCE_S = 10.0


def server_lines(server: str, settings: EndpointSettings, facts: ServerFacts) -> Iterator[Line]:
    """Yield the lines about a server ("source" or "target")."""
    yield Kind.CONNECTED.line(
        server=server,
        family=facts.flavour.value,
        version=".".join(map(str, facts.version)),
        address=settings.address,
        user=settings.user,
    )
    yield _tls(server, settings, facts)
    offset = facts.clock_offset
    kind = Kind.CLOCK if abs(offset) <= _CLOCK_TOLERANCE_S else Kind.CLOCK_OFF
    side = "ahead of" if offset > 0 else "behind"
    yield kind.line(server=server, offset=f"{abs(offset):.1f} s {side} this machine's")
    if facts.roles:
        yield Kind.ROLES_INACTIVE.line(
            server=server, roles=listed(list(facts.roles)), user=facts.account
        )
    if facts.cascades and facts.variables.get("innodb_native_foreign_keys") == "OFF":
        yield Kind.CASCADES.line(
            server=server,
            count=counted(len(facts.cascades), "foreign key"),
            keys=listed(list(facts.cascades)),
        )


def table_lines(server: str, facts: ServerFacts, source: Flavour) -> Iterator[Line]:
    """Yield the lines about the tables visible on `server`; `source` is the source's family."""
    plain = [str(table) for table in facts.tables if not table.transactional]
    if plain:
        yield Kind.NON_TRANSACTIONAL.line(
            server=server, count=counted(len(plain), "table"), tables=listed(plain)
        )
    unkeyed = [str(table) for table in facts.tables if not table.keyed]
    if unkeyed:
        yield Kind.NO_KEY.line(
            server=server, count=counted(len(unkeyed), "table"), tables=listed(unkeyed)
        )
    if not facts.tables:
        yield Kind.NO_TABLES.line(server=server)
    elif not plain and not unkeyed:
        yield Kind.TABLES.line(server=server, count=counted(len(facts.tables), "table"))
    if facts.foreign_keys_across and SOURCES[source].marks_referred_tables:
        keys = list(facts.foreign_keys_across)
        yield Kind.FOREIGN_KEYS.line(
            server=server, count=counted(len(keys), "foreign key"), keys=listed(keys)
        )


def counted(count: int, noun: str) -> str:
    """Return "1 table", "2 tables"."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _tls(server: str, settings: EndpointSettings, facts: ServerFacts) -> Line:
    local = settings.unix_socket is not None or _is_loopback(settings.host)
    if not facts.tls_version:
        if local:
            way = "a Unix socket" if settings.unix_socket else "the loopback interface"
            return Kind.TLS_LOCAL.line(server=server, way=way)
        return Kind.TLS_OFF.line(server=server)
    verified = settings.tls in {"verify_ca", "verify_identity"}
    kind = Kind.TLS_ON if verified or local else Kind.TLS_NOT_VERIFIED
    return kind.line(
        server=server,
        version=facts.tls_version,
        cipher=facts.tls_cipher,
        verified="verified" if verified else "not verified, but within this machine",
    )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"

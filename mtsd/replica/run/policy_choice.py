"""What `parallel_type = "auto"` comes to at a start, and whether that is kept."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import structlog

from mtsd.apply.position.position_tables import PositionTables
from mtsd.apply.session.retry import write
from mtsd.apply.session.session import TargetSession
from mtsd.apply.tables.key_definitions import read_key_definitions
from mtsd.apply.tables.table_keys import why_whole
from mtsd.config import Settings
from mtsd.model.errors import NeedsPersonError
from mtsd.model.outcome.reason import Refused
from mtsd.model.server import ServerVersion
from mtsd.replica.core.apply_mode import keeps_order
from mtsd.replica.core.endpoints import endpoint
from mtsd.schedule.policies.automatic import (
    AUTO,
    SEQUENTIAL,
    ChosenPolicy,
    ServersSay,
    chosen_policy,
)
from mtsd.source.logged_order import ASKED, dependency_tracking
from mtsd.wire.connection import Connection
from mtsd.wire.neutral_session import make_neutral
from mtsd.wire.traits import supported
from mtsd.wire.understood import understood

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class PolicyInForce:
    """The policy of a run, and why if mtsd has chosen it; "" if a person has."""

    parallel_type: str
    because: str


def needs_choice(settings: Settings) -> bool:
    """Return whether the policy is left to mtsd, and makes a difference."""
    replica = settings.replica
    return replica.parallel_type == AUTO and replica.parallel_workers > 1 and keeps_order(replica)


def with_policy(settings: Settings, chosen: ChosenPolicy) -> Settings:
    """Return the settings of a run that goes by a policy that was chosen."""
    return replace(settings, replica=replace(settings.replica, parallel_type=chosen.parallel_type))


async def put_in_force(
    settings: Settings, session: TargetSession, tables: PositionTables
) -> tuple[Settings, str]:
    """Return the settings with a policy that has a name, and why if mtsd has chosen it.

    Asks the source only if the channel has no choice yet. Raises NeedsPersonError, ServerError,
    ConnectionLostError.
    """
    kept = await read_chosen(session.connection, tables)
    if not needs_choice(settings):
        if kept is not None and settings.replica.parallel_type != AUTO:
            await write(session.connection, [tables.policy.delete()])
        if settings.replica.parallel_type == AUTO:
            return with_policy(settings, SEQUENTIAL), SEQUENTIAL.because
        return settings, ""
    chosen = kept
    if chosen is None:
        chosen = chosen_policy(await _ask(settings, session, tables))
        if chosen.is_final:
            await write(session.connection, [tables.policy.replace_chosen(chosen)])
    log.info(
        'parallel_type = "auto"',
        comes_to=chosen.parallel_type, because=chosen.because, chosen_before=kept is not None,
    )  # fmt: skip
    return with_policy(settings, chosen), chosen.because


@understood("target")
async def read_chosen(connection: Connection, tables: PositionTables) -> ChosenPolicy | None:
    """Return what was chosen for the channel; None if nothing, or what this mtsd does not know."""
    rows = await connection.query(tables.policy.select())
    return tables.policy.chosen(rows[0]) if rows else None


def servers_say(
    settings: Settings, source: ServerVersion, variables: Mapping[str, str], tables: int, whole: int
) -> ServersSay:
    """Return what the choice goes by, of a source with these global variables."""
    return ServersSay(
        source=f"{source.flavour.value} {'.'.join(map(str, source.number))}",
        binlog_format=variables.get("binlog_format", "ROW").upper(),
        tracking=dependency_tracking(source, variables),
        merges=bool(settings.filter.rewrite_db),
        tables=tables,
        whole=whole,
    )


async def _ask(settings: Settings, session: TargetSession, tables: PositionTables) -> ServersSay:
    source, variables = await _ask_source(settings)
    known = await read_key_definitions(
        session.connection, session.traits.server.flavour, fold_case=False
    )
    keys = [unique for (schema, _), unique in known.tables.items() if schema != tables.schema]
    return servers_say(
        settings, source, variables, len(keys), sum(bool(why_whole(unique)) for unique in keys)
    )


@understood("source")
async def _ask_source(settings: Settings) -> tuple[ServerVersion, dict[str, str]]:
    connection = await Connection.open(endpoint("source", settings.source))
    try:
        version = supported("source", connection.server_version)
        if isinstance(version, Refused):
            raise NeedsPersonError(str(version))
        async with connection.answering():
            await make_neutral(connection)
            names = ", ".join(f"'{name}'" for name in ASKED)
            rows = await connection.query(
                f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({names})".encode()
            )
    finally:
        connection.close()
    return version, {str(name).lower(): str(value) for name, value in rows}

"""Where a channel begins after a copy, checked against both servers before anything is written."""

import enum
from dataclasses import dataclass

from mtsd.config import Settings
from mtsd.config.start import Start
from mtsd.model.errors import NeedsPersonError
from mtsd.model.outcome.reason import Refused
from mtsd.model.server import flavour_of
from mtsd.operations.check.reading.schemas import read_keys
from mtsd.operations.copies.clone import copied_by_clone
from mtsd.operations.copies.copied import (
    Copied,
    chosen,
    loaded,
    missing_of,
    not_loaded,
    start_of,
)
from mtsd.operations.copies.own_replica import copied_by_own_replica
from mtsd.replica.core.filters import filter_of
from mtsd.replica.guards.own_replica import KnownServer
from mtsd.source.handshake import SourceSession
from mtsd.source.read_state import read_source_state
from mtsd.wire.connection import Connection
from mtsd.wire.traits import ServerTraits


class OnTarget(enum.Enum):
    """What the target itself knows of the copy that it is."""

    CLONE = "clone"
    REPLICA = "replica"


Copies = tuple[Copied, ...] | OnTarget
"""The places that a file names, or where the target has the one that counts."""


@dataclass(frozen=True, slots=True)
class BeginsAfter:
    """The start after a copy.

    `unseen`: the source shows its user no tables, so nothing shows whether the target has them.
    `missing` are those that the target lacks: newer than the copy, or not loaded.
    """

    start: Start
    copied: Copied
    unseen: bool
    missing: str = ""


async def begin_after(
    copies: Copies,
    settings: Settings,
    source: SourceSession,
    connection: Connection,
    target: ServerTraits,
    *,
    although_missing: bool,
) -> BeginsAfter:
    """Decide by both servers; `connection` is to the target.

    Raises NeedsPersonError if the copy is of another server, says no usable place, or is not on the
    target; ServerError, ConnectionLostError.
    """
    if copies is OnTarget.CLONE:
        copied = await copied_by_clone(connection)
    elif copies is OnTarget.REPLICA:
        endpoint = source.connection.endpoint
        known = KnownServer(
            source.traits.uuid, source.traits.server_id, endpoint.host, endpoint.port
        )
        copied = await copied_by_own_replica(connection, target.server, known)
    else:
        copied = chosen(copies, source.traits.uuid)
    start = start_of(copied, await read_source_state(source.connection, source.traits))
    if isinstance(start, Refused):
        raise NeedsPersonError(str(start))
    of_source = await _tables(source.connection, settings)
    missing = ""
    if not although_missing:
        rules = filter_of(settings, fold_case=target.rules_ignore_case, target=target.server)
        tables = loaded(copied, rules, of_source, await _tables(connection, settings))
        refused = not_loaded(copied, tables)
        if refused is not None:
            raise NeedsPersonError(str(refused))
        missing = missing_of(tables)
    return BeginsAfter(start, copied, unseen=not of_source, missing=missing)


async def _tables(connection: Connection, settings: Settings) -> list[tuple[str, str]]:
    known = await read_keys(
        connection, flavour_of(connection.server_version), settings.target.schema
    )
    return sorted(known.tables)

"""What of a statement is replicated, and as which statement it runs on the target."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from mtsd.binlog.groups.position_schema import Treatment, treatment
from mtsd.binlog.groups.statement_filter import filtered
from mtsd.binlog.sql.qualifiers import qualifiers
from mtsd.filter.filter import Filter
from mtsd.model.errors import NotSupportedError
from mtsd.model.step import AlterPhase, QueryEvent, StatementKind

WITHOUT_EFFECT: Final = frozenset({AlterPhase.START, AlterPhase.ROLLBACK})
"""Only the group that commits an ALTER TABLE has an effect."""


@dataclass(frozen=True, slots=True)
class ReplicatedPart:
    """What of a statement is replicated."""

    query: QueryEvent | None
    """The statement as it runs on the target; None if nothing of it is applied."""
    owners: tuple[str, ...] = ()
    """Other channels that replicate it, or a part of it."""
    refused: str = ""
    """Why its group is not applied; "" if nothing speaks against it."""


def renamed(query: QueryEvent, replicated: Filter) -> QueryEvent:
    """Return a statement in the target's database, by whose name its tables are known."""
    name = replicated.target_name(query.database)
    return query if name == query.database else query._replace(database=name)


def replicated_part(query: QueryEvent, kind: StatementKind, replicated: Filter) -> ReplicatedPart:
    """Return what the filter `replicated` leaves of a statement."""
    if query.alter_phase in WITHOUT_EFFECT:
        return ReplicatedPart(None)
    position_schema = replicated.position_schema
    treated = treatment(query, position_schema, replicated.folded)
    if treated is Treatment.LEFT_OUT:
        return ReplicatedPart(None)
    refused = ""
    if treated is Treatment.REFUSED:
        refused = (
            f"a statement on a database with the position schema's name,"
            f" {position_schema!r}, and on others"
        )
    if not replicated.rules:
        return ReplicatedPart(query, (), refused)
    if kind is StatementKind.DROP_TEMPORARY:
        # It concerns only a session's own tables. That were created is known.
        return ReplicatedPart(renamed(query, replicated), (), refused)
    try:
        part = filtered(query, replicated)
    except NotSupportedError as error:
        return ReplicatedPart(query, (), refused or str(error))
    if part is None:
        return ReplicatedPart(None, _owners(query, replicated, applied=False))
    return ReplicatedPart(part, _owners(query, replicated, applied=True), refused)


def _owners(query: QueryEvent, replicated: Filter, *, applied: bool) -> tuple[str, ...]:
    """Return the other channels that replicate a statement, which is `applied` here or not."""
    databases: Iterable[str] = query.updated_databases or (query.database,)
    if not query.updated_databases and replicated.others:
        # MariaDB does not list them, and MySQL not if they are too many.
        databases = {query.database} | qualifiers(query.text)
    owners = dict.fromkeys(owner for name in databases for owner in replicated.owners(name))
    if applied:
        for channel, other in replicated.others.items():
            try:
                if filtered(query, other) is not None:
                    owners[channel] = None
            except NotSupportedError:
                owners[channel] = None
    return tuple(owners)


def of_version(query: QueryEvent, version: int) -> QueryEvent:
    """Return a definition as one that a MySQL of this version ran first; 0: it is not known."""
    if not version:
        return query
    return query.in_session(replace(query.context, original_server_version=version))

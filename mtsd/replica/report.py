"""What a group contains, and why it failed, in words for a tired person."""

from collections.abc import Sequence

from mtsd.binlog.event_type import EventType
from mtsd.binlog.statement import without_secrets
from mtsd.binlog.table_map import parse_table_map
from mtsd.model.errors import ApplyError, MtsdError, ServerError
from mtsd.model.failed_group import FailedGroup
from mtsd.model.group import Group
from mtsd.model.step import QueryEvent, Statement
from mtsd.wire.refusal import remedy_of

_TABLE_MAP = EventType.TABLE_MAP_EVENT
_EXCERPT = 500


def contents(group: Group) -> str:
    """Return the tables of a group's rows, or its statement, for a message."""
    for step in group.steps:
        if isinstance(step, Statement):
            return f"statement {excerpt(step.query)!r}"
    tables = tables_of(group.rows)
    return f"tables {', '.join(tables)}" if tables else "nothing that is replicated"


def tables_of(events: Sequence[bytes]) -> Sequence[str]:
    """Return the names of the tables whose definitions are among the events."""
    tables: dict[str, None] = {}
    for event in events:
        if event[4] == _TABLE_MAP:
            table = parse_table_map(event)
            tables[f"{table.database}.{table.table}"] = None
    return tuple(tables)


def excerpt(query: QueryEvent) -> str:
    """Return the beginning of a statement, without passwords."""
    text = without_secrets(query.statement, query.context)[:_EXCERPT]
    return text.decode("utf-8", "replace")


def failed(
    group: Group, worker: int, highest_done: int, error: MtsdError, remedy: str
) -> ApplyError:
    """Return the error that stops the replica at a group.

    `worker` is the Id of the worker that applied it, `highest_done` the highest number of a group
    that has committed.
    """
    later = highest_done > group.number
    aftermath = (
        f"Later groups up to {highest_done} have already been applied: the next start fills the"
        " gap by itself, nothing has to be set."
        if later
        else "No later group has been applied."
    )
    number = error.number if isinstance(error, ServerError) else 0
    stopped_at = FailedGroup.of(group, error=number, later_applied=later)
    # If the target refuses the session, every other group would fail too.
    refused = isinstance(error, ServerError) and remedy_of(error)
    way_past = "" if refused else f". {stopped_at.way_past}"
    warnings = error.warnings if isinstance(error, ServerError) else ""
    said = f" Warnings: {warnings}." if warnings else ""
    return ApplyError(
        f"group {group.number} cannot be applied: {error}.{said}"
        f" Position {group.end}, GTID {group.gtid or 'none'}, databases"
        f" {', '.join(group.databases) or 'none'}, worker {worker},"
        f" {contents(group)}. {aftermath} {remedy}, then start again{way_past}",
        group=stopped_at,
    )


HALF_APPLIED = (
    "compare its rows with the source's, and either complete the group manually and say so:"
    " mtsd resolve --group {number} --applied; or undo what is there, and have it applied again:"
    " mtsd resolve --group {number} --not-applied"
)
"""What to do about a group of which a part remained."""


def half_applied(number: int) -> str:
    """Return what to do about a group of which a part remained, as a sentence."""
    text = HALF_APPLIED.format(number=number)
    return text[0].upper() + text[1:]

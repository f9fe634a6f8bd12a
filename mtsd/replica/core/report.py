"""What a group contains, and why it failed, in words for a tired person."""

from collections.abc import Sequence

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.events.table_map import parse_table_map
from mtsd.binlog.sql.statement_secrets import shown
from mtsd.model.error_numbers import ER
from mtsd.model.errors import ApplyError, MtsdError, ServerError
from mtsd.model.group import Group
from mtsd.model.outcome.command import command, options
from mtsd.model.outcome.failed_group import FailedGroup
from mtsd.model.step import Statement
from mtsd.wire.refusal import remedy_of

_TABLE_MAP = EventType.TABLE_MAP_EVENT
_EXCERPT = 500


def contents(group: Group) -> str:
    """Return the tables of a group's rows, or its statement, for a message."""
    for step in group.steps:
        if isinstance(step, Statement):
            return f"statement {shown(step.query, _EXCERPT)!r}"
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


_FIRST_GROUPS = 100
_SHOWS_A_WRONG_POSITION: dict[int, str] = {
    ER.KEY_NOT_FOUND: "does not have that row",
    ER.DUP_ENTRY: "has that row already",
}
"""What an error of a row says of the target."""


def first_groups(recovered: int) -> int:
    """Return up to which number groups are the first of a run that begins after `recovered`.

    A group with a key fails at once where everything is applied a second time. Groups of tables
    without keys may come before it, and other workers' groups beside it: so not only the first one.
    """
    return recovered + _FIRST_GROUPS


def wrong_position(error: MtsdError, number: int, first: int) -> str:
    """Return what has to be looked at before anything else, as sentences; "" for most errors.

    `first` is `first_groups` of the run, `number` that of the group that has failed.
    """
    code = error.number if isinstance(error, ServerError) else 0
    if number > first or code not in _SHOWS_A_WRONG_POSITION:
        return ""
    return (
        "This is one of the first groups after a start, and the target"
        f" {_SHOWS_A_WRONG_POSITION[code]}: it may already hold these transactions, and the"
        " position may be wrong. First compare the row on both servers, and"
        f" {command('position', 'show')} with what the target holds: was the position set or"
        " restored, or has another replica run?"
        " Then continue elsewhere with mtsd position set; skip nothing. If the position is right,"
        " do the following. "
    )


def failed(
    group: Group,
    worker: int,
    highest_done: int,
    error: MtsdError,
    remedy: str,
    first: int = 0,
    row: str = "",
) -> ApplyError:
    """Return the error that stops the replica at a group.

    `worker` is the Id of the worker that applied it, `highest_done` the highest number of a group
    that has committed, `first` is `first_groups` of the run. `row` says what the group does to
    which row when it fails, if that is known.
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
    warned = f" Warnings: {warnings}." if warnings else ""
    at = f" It fails at: {row}." if row else ""
    shows = f" `{stopped_at.show_command}` shows its rows." if group.rows and not refused else ""
    return ApplyError(
        f"group {group.number} cannot be applied: {error}.{warned}"
        f" Position {group.end}, GTID {group.gtid or 'none'}, databases"
        f" {', '.join(group.databases) or 'none'}, worker {worker},"
        f" {contents(group)}.{at}{shows} {aftermath}"
        f" {wrong_position(error, group.number, first)}{remedy}, then start again{way_past}",
        group=stopped_at,
    )


SPENT = (
    "It had already dropped or altered temporary tables of its session on the source, so it cannot"
    " be applied again: apply it manually and skip it"
)
"""What to do about a group whose temporary tables are no longer what they were before it."""
HALF_APPLIED = (
    "compare its rows with the source's, and either complete the group manually and say so:"
    " mtsd resolve --group {number} --applied{config}; or undo what is there, and have it applied"
    " again: mtsd resolve --group {number} --not-applied{config}"
)
"""What to do about a group of which a part remained."""


def half_applied(number: int) -> str:
    """Return what to do about a group of which a part remained, as a sentence."""
    text = HALF_APPLIED.format(number=number, config=options())
    return text[0].upper() + text[1:]

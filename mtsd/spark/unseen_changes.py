"""Changes of rows that are not in row events, which are an error when reading rows."""

from collections.abc import Callable
from typing import Final

from mtsd.binlog.range_reader import GroupPart
from mtsd.binlog.tokenizer import ANY_CONTEXT
from mtsd.binlog.words import Words
from mtsd.model.errors import NotSupportedError
from mtsd.model.group import GroupKind
from mtsd.model.session import SessionContext
from mtsd.model.step import LoadFile, QueryEvent, Statement, StatementKind

_QUERIES: Final = frozenset({b"SELECT", b"TABLE", b"VALUES"})
"""One of these words is in every query that fills a new table."""
_OF_PARTITIONS: Final = (b"LESS", b"IN")
"""What follows a VALUES that describes a partition."""


def check_rows_tell_all(part: GroupPart, file: str, concerns: Callable[[str], bool]) -> None:
    """Raise NotSupportedError, with the position, if a group changes rows in any other way.

    `concerns` tells whether a database matters.
    """
    reason = _of_group(part) or _of_steps(part, concerns)
    if reason:
        raise NotSupportedError(f"{reason} (after {file}:{part.begin})")


def _of_group(part: GroupPart) -> str:
    if part.group is None:
        return ""
    match part.group.kind:
        case GroupKind.INCIDENT:
            return "the source says that events were lost (an incident)"
        case GroupKind.XA_PREPARE:
            return "an XA transaction, which may have been rolled back since"
        case _:
            return ""


def _of_steps(part: GroupPart, concerns: Callable[[str], bool]) -> str:
    # An unrecognized statement in a transaction changes rows; on its own, it may be a GRANT.
    inside = part.group is None or part.group.kind is not GroupKind.DDL
    for step in part.steps:
        if isinstance(step, LoadFile):
            return "a LOAD DATA that is logged as a statement (binlog_format)"
        if not isinstance(step, Statement):
            continue
        query = step.query
        changes = (
            step.kind is StatementKind.DML
            or (step.kind is StatementKind.OTHER and inside)
            or (step.kind is StatementKind.DDL and fills_a_table(query.statement, query.context))
        )
        if changes and _concerns(query, concerns):
            text = query.statement[:100].decode(errors="replace")
            return f"rows changed by a statement, not logged as rows (binlog_format): {text}"
    return ""


def fills_a_table(statement: bytes, context: SessionContext = ANY_CONTEXT) -> bool:
    """Tell whether a definition that is not about a temporary table creates one with rows."""
    tokens = Words(statement, context)
    if tokens.word() != b"CREATE":
        return False
    tokens.take_words(b"OR", b"REPLACE")
    if tokens.word() != b"TABLE":
        return False
    tokens.take_words(b"IF", b"NOT", b"EXISTS")
    tokens.take_name()
    while tokens.passes(_QUERIES):
        if not (_is_last(tokens, b"VALUES") and any(map(tokens.at_word, _OF_PARTITIONS))):
            return True
    return False


def _is_last(tokens: Words, word: bytes) -> bool:
    return tokens.last is not None and tokens.last.text == word


def _concerns(query: QueryEvent, concerns: Callable[[str], bool]) -> bool:
    names = query.updated_databases
    if not names or query.over_max or names == ("",):
        return True
    return any(map(concerns, names))

"""Finds the statement that has given a table its columns, to name it in an error."""

from contextlib import closing
from typing import Final

from mtsd.binlog.files.range_parts import GroupPart
from mtsd.binlog.files.range_reader import RangeReader
from mtsd.binlog.files.ranges import ByteRange, Tail
from mtsd.binlog.sql.statement_secrets import shown
from mtsd.model.errors import MtsdError
from mtsd.model.position import FIRST_EVENT, Position
from mtsd.model.step import Statement, StatementKind
from mtsd.spark.logs.logs import Logs, name_of
from mtsd.spark.shapes.redefinitions import creates, redefines

_MOST: Final = 1 << 30
"""How many bytes of the log are searched."""
_DEFINITIONS: Final = frozenset({StatementKind.DDL, StatementKind.CREATE_SELECT})


def definition_in(part: GroupPart, file: str, database: str, table: str) -> str:
    """Return the last statement of a part that may have given a table its columns, and its place.

    "" if there is none.
    """
    found = ""
    name = table.encode().lower()
    for step in part.steps:
        if not isinstance(step, Statement) or step.kind not in _DEFINITIONS:
            continue
        query = step.query
        # Only a few of the statements need a closer look.
        if name in query.statement.lower() and (
            redefines(query, database, table) or creates(query, database, table)
        ):
            text = " ".join(shown(query, 200).split())
            found = f"{file}:{part.begin}: {text}"
    return found


def definition_before(logs: Logs, place: Position, database: str, table: str) -> str:
    """Return the last such statement before a place, "" if it is not there or far before it."""
    left = _MOST
    try:
        with closing(logs):
            for file, size in reversed(logs.files()):
                name = name_of(file)
                if Position(name, FIRST_EVENT) >= place:
                    continue
                end = place.offset if name == place.file else size
                left -= end
                if left < 0:
                    break
                bounds = ByteRange(file, FIRST_EVENT, end, end, tail=Tail.GROWING)
                text = ""
                with logs.opened(bounds) as contents:
                    for part in RangeReader(contents, bounds, name).parts():
                        text = definition_in(part, name, database, table) or text
                if text:
                    return text
    except MtsdError:
        # What cannot be read only makes the message shorter.
        return ""
    return ""

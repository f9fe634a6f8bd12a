"""Statements as a source logs them, for a catalog to read."""

from mtsd.model.statement_text import StatementText
from mtsd.model.step import QueryEvent


def query(statement: str, database: str = "a") -> QueryEvent:
    return QueryEvent(
        1, 0, 0, StatementText(statement.encode()), None, database, None, False, None, None, 0
    )

"""Changes of rows that are not in row events, which are an error when reading rows."""

from collections.abc import Collection, Sequence
from typing import Final

from mtsd.binlog.files.range_parts import GroupPart
from mtsd.binlog.sql.changed_tables import Extent, changed
from mtsd.binlog.sql.statement_secrets import shown
from mtsd.binlog.sql.words import Words
from mtsd.model.errors import NotSupportedError
from mtsd.model.group import GroupKind
from mtsd.model.statement_text import StatementText
from mtsd.model.step import QueryEvent, Statement, StatementKind
from mtsd.spark.shapes.marks import Mark, Wants

_QUERIES: Final = frozenset({b"SELECT", b"TABLE", b"VALUES"})
"""One of these words is in every query that fills a new table."""
_OF_PARTITIONS: Final = (b"LESS", b"IN")
"""What follows a VALUES that describes a partition."""
_GO_ON: Final = "option unseen_changes=skip goes on without that"


class UnseenChanges:
    """Looks for them in the parts of a range of `file`, in order.

    Marks with the operations that it `tells` are rows of the DataFrame. With `skips`, changes by
    statements and definitions are passed over.
    """

    def __init__(
        self, wants: Wants, file: str, tells: Collection[str], *, skips: bool = False
    ) -> None:
        self._wants = wants
        self._file = file
        self._tells = tells
        self._skips = skips

    def check(self, part: GroupPart, marks: Sequence[Mark]) -> None:
        """Raise NotSupportedError, with the position, if a group changes rows in any other way.

        `marks` are the marks of the part. Only what is wanted matters.
        """
        if part.group is not None and part.group.kind is GroupKind.ROWS:
            return
        reason = ""
        if part.group is not None and part.group.kind is GroupKind.INCIDENT:
            reason = "the source says that events were lost (an incident)"
        elif not self._skips:
            reason = self._of_statements(part) or self._of_marks(part, marks)
        if reason:
            raise NotSupportedError(f"{reason} (after {self._file}:{part.begin})")

    def _of_statements(self, part: GroupPart) -> str:
        # An unrecognized statement in a transaction changes rows; on its own, it may be a GRANT.
        inside = part.group is None or part.group.kind is not GroupKind.DDL
        for step in part.steps:
            if not isinstance(step, Statement):
                continue
            query = step.query
            changes = (
                step.kind is StatementKind.DML
                or (step.kind is StatementKind.OTHER and inside)
                or (step.kind is StatementKind.DDL and fills_a_table(query.text))
            )
            if changes and self._is_concerned(query):
                return (
                    "rows changed by a statement, not logged as rows (binlog_format):"
                    f" {_text(query)}; {_GO_ON}"
                )
        return ""

    def _is_concerned(self, query: QueryEvent) -> bool:
        """Tell whether a statement may change rows of a wanted table."""
        names = query.updated_databases
        if (
            names
            and not query.over_max
            and names != ("",)
            and not any(self._wants(name, None) for name in names)
        ):
            return False
        changes = changed(query.text)
        tables = [(database or query.database, table) for database, table in changes.tables]
        if changes.extent not in {Extent.TABLES, Extent.SOME} or any(not of for of, _ in tables):
            return True
        return any(self._wants(database, table) for database, table in tables)

    def _of_marks(self, part: GroupPart, marks: Sequence[Mark]) -> str:
        for mark in marks:
            if mark.op not in self._tells:
                name = "tables that the statement does not show"
                if mark.database:
                    name = f"`{mark.database}`.`{mark.table}`"
                return (
                    f"rows of {name} ended or moved without row events, by {_text(mark.query)};"
                    f" {_GO_ON}, and start={self._file}:{part.end} begins after it"
                )
        return ""


def _text(query: QueryEvent) -> str:
    return " ".join(shown(query, 100).split())


def fills_a_table(text: StatementText) -> bool:
    """Tell whether a definition that is not about a temporary table creates one with rows."""
    tokens = Words(text)
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

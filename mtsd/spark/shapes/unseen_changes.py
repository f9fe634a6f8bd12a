"""Changes of rows that are not in row events, which are an error when reading rows."""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final

from mtsd.binlog.events.table_map import TableMap
from mtsd.binlog.files.range_parts import GroupPart
from mtsd.binlog.sql.changed_tables import Changed, Extent, changed
from mtsd.binlog.sql.statement_secrets import shown
from mtsd.binlog.sql.words import Words
from mtsd.model.errors import NotSupportedError
from mtsd.model.group import GroupKind
from mtsd.model.position import Position
from mtsd.model.statement_text import StatementText
from mtsd.model.step import QueryEvent, Statement, StatementKind
from mtsd.spark.logs.whole_read import WholeRead
from mtsd.spark.shapes.moved_rows import moved_rows

_QUERIES: Final = frozenset({b"SELECT", b"TABLE", b"VALUES"})
"""One of these words is in every query that fills a new table."""
_OF_PARTITIONS: Final = (b"LESS", b"IN")
"""What follows a VALUES that describes a partition."""
_DEFINITIONS: Final = frozenset({StatementKind.DDL, StatementKind.CREATE_SELECT})
_GO_ON: Final = "option unseen_changes=skip goes on without that"

Wants = Callable[[str, str | None], bool]
"""Tells whether a table, or any table of a database, is wanted, however names are spelled."""


class UnseenChanges:
    """Looks for them in the parts of a range of `file`, in order.

    `seen` are the tables whose rows have been read of the range, by database and name. With
    `skips`, changes by statements and definitions are passed over.
    """

    def __init__(
        self,
        wants: Wants,
        file: str,
        seen: Collection[tuple[str, str]],
        whole: WholeRead | None,
        *,
        skips: bool = False,
        looks_back: bool = False,
    ) -> None:
        """`looks_back`: what is read before the range may be searched for rows of a table."""
        self._wants = wants
        self._file = file
        self._seen = seen
        self._whole = whole
        self._skips = skips
        self._looks_back = looks_back
        self._of_group: TableMap | None = None
        """A wanted table of the group that has not ended."""

    def check(self, part: GroupPart, tables: Sequence[TableMap]) -> None:
        """Raise NotSupportedError, with the position, if a group changes rows in any other way.

        `tables` are those whose rows are in the part. Only what is wanted matters.
        """
        reason = self._of_kind(part, tables)
        if not reason and not self._skips:
            reason = self._of_steps(part)
        if reason:
            raise NotSupportedError(f"{reason} (after {self._file}:{part.begin})")

    def _of_kind(self, part: GroupPart, tables: Sequence[TableMap]) -> str:
        group = part.group
        if group is not None and group.kind is GroupKind.INCIDENT:
            return "the source says that events were lost (an incident)"
        is_prepared = group is not None and group.kind is GroupKind.XA_PREPARE
        if group is None or is_prepared:
            for table in tables:
                if self._wants(table.database, table.table):
                    self._of_group = table
        if group is not None:
            table_of, self._of_group = self._of_group, None
            if is_prepared and table_of is not None:
                return (
                    f"an XA transaction of `{table_of.database}`.`{table_of.table}`, which may have"
                    " been rolled back since"
                )
        return ""

    def _of_steps(self, part: GroupPart) -> str:
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
            if step.kind in _DEFINITIONS:
                moved = self._moved(query, part)
                if moved:
                    return (
                        f"rows of {moved} ended or moved without row events, by {_text(query)};"
                        f" {_GO_ON}, and start={self._file}:{part.end} begins after it"
                    )
        return ""

    def _is_concerned(self, query: QueryEvent) -> bool:
        """Tell whether a statement may change rows of a wanted database."""
        names = query.updated_databases
        if names and not query.over_max and names != ("",):
            return any(self._wants(name, None) for name in names)
        found = changed(query.text)
        databases = {database or query.database for database, _ in found.tables}
        if found.extent not in {Extent.TABLES, Extent.SOME} or "" in databases:
            return True
        return any(self._wants(name, None) for name in databases)

    def _moved(self, query: QueryEvent, part: GroupPart) -> str:
        """Return what a definition ends, brings or moves, and may have had rows; "" if nothing."""
        found = moved_rows(query)
        if found is None:
            return ""
        if found.of.extent not in {Extent.TABLES, Extent.DATABASE}:
            return "tables that the statement does not show"
        for database, table in _named(found.of, query):
            if self._wants(database, table) and (
                found.brings or self._may_have_rows(database, table, part)
            ):
                return f"`{database}`.`{table}`" if table else f"tables of `{database}`"
        return ""

    def _may_have_rows(self, database: str, table: str | None, part: GroupPart) -> bool:
        """Tell whether rows of a table may have been read before: else none of them can end."""
        if any(
            of.lower() == database.lower() and (table is None or one.lower() == table.lower())
            for of, one in self._seen
        ):
            return True
        whole = self._whole
        if whole is None or whole.goes_on:
            return True
        if whole.is_at_begin:
            return False
        place = Position(self._file, part.begin)
        if table is None or not self._looks_back:
            return True
        return whole.may_have_rows(database, table, place)


def _named(found: Changed, query: QueryEvent) -> Iterator[tuple[str, str | None]]:
    """Yield what is changed: tables, or a database, whose tables are not known."""
    if found.extent is Extent.DATABASE:
        yield found.database or query.database, None
    yield from ((database or query.database, table) for database, table in found.tables)


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

"""Changes of a table's definition where the binary log does not name its columns.

Its rows are then read by one definition, which was told. Those before or after such a change have
another one, and nothing in them shows it: their values would be in wrong columns.
"""

from dataclasses import dataclass

from mtsd.binlog.events.table_map import TableMap
from mtsd.binlog.files.range_parts import GroupPart
from mtsd.binlog.sql.changed_tables import Extent, changed
from mtsd.binlog.sql.statement_secrets import shown
from mtsd.binlog.sql.words import Words
from mtsd.binlog.values.table_metadata import parse_optional_metadata
from mtsd.catalog.catalog import Catalog
from mtsd.catalog.definition import ColumnDefinition, TableDefinition
from mtsd.model.errors import NotSupportedError
from mtsd.model.position import Position
from mtsd.model.step import QueryEvent, Statement, StatementKind
from mtsd.spark.logs.whole_read import WholeRead


class Redefinitions:
    """Finds them in what is read of one range, for one table.

    `declared` is the definition that was told, `whole` what the range is a part of; None if
    unknown.
    """

    def __init__(
        self, table: tuple[str, str], declared: TableDefinition | None, whole: WholeRead | None
    ) -> None:
        self._table = table
        self._declared = declared
        self._whole = whole
        self._has_rows = False
        self._has_unnamed = False
        self._found: _Found | None = None

    def look_at(self, table: TableMap) -> None:
        """Take note of a table whose rows come next, whichever it is."""
        self._has_rows = self._has_rows or (table.database, table.table) == self._table
        # The setting is the server's, so every table shows it.
        self._has_unnamed = self._has_unnamed or not parse_optional_metadata(table).names

    def learn(self, part: GroupPart, file: str) -> None:
        """Keep the first statement that may have changed the table's columns."""
        for step in part.steps:
            if not isinstance(step, Statement) or step.kind is not StatementKind.DDL:
                continue
            if self._found is None:
                if redefines(step.query, *self._table):
                    self._found = self._as_found(step.query, part, file)
            elif self._found.may_be_undone and not self._has_rows:
                created = new_table(step.query, *self._table)
                if (
                    created is not None
                    and self._is_as_declared(created)
                    and self._has_no_rows_before(Position(file, part.begin))
                ):
                    self._found = None

    def check(self, *, at_end: bool) -> None:
        """Raise NotSupportedError if there was such a statement and columns are not named.

        Rows in other ranges matter, too, and are looked for at the end of this one.
        """
        found = self._found
        if found is None or (found.may_be_undone and not at_end):
            return
        if self._has_unnamed or (at_end and not self._are_others_named(found.end)):
            raise NotSupportedError(found.message)

    def _are_others_named(self, after: Position) -> bool:
        whole = self._whole
        return whole is not None and whole.names_columns() and whole.names_columns(after)

    def _has_no_rows_before(self, place: Position) -> bool:
        """Tell whether there are none in other ranges; looked for only if names may be missing."""
        whole = self._whole
        return whole is not None and (
            whole.is_at_begin
            or not (whole.names_columns() or whole.may_have_rows(*self._table, place))
        )

    def _as_found(self, query: QueryEvent, part: GroupPart, file: str) -> "_Found":
        text = " ".join(shown(query, 200).split())
        database, table = self._table
        is_drop = Words(query.text).word() == b"DROP"
        return _Found(
            f"`{database}`.`{table}` may have other columns from {file}:{part.begin} on, and the"
            " binary log does not name them (binlog_row_metadata is not FULL): read what is before"
            f" it with option end={file}:{part.begin} and what is after it with"
            f" start={file}:{part.end}, each by its definition (option 'ddl'). The statement there:"
            f" {text}",
            Position(file, part.end),
            may_be_undone=is_drop and not self._has_rows,
        )

    def _is_as_declared(self, created: TableDefinition) -> bool:
        declared = self._declared
        return (
            declared is not None
            and len(created.columns) == len(declared.columns)
            and all(map(_is_the_same, created.columns, declared.columns))
        )


@dataclass(frozen=True, slots=True)
class _Found:
    """A statement after which there may be other columns, and where it ends.

    It `may_be_undone` if it has dropped a table without rows, which may come again as it was told.
    """

    message: str
    end: Position
    may_be_undone: bool


def _is_the_same(created: ColumnDefinition, declared: ColumnDefinition) -> bool:
    # What is not told about text is taken from each row's own table map.
    return (created.name.lower(), created.type) == (declared.name.lower(), declared.type) and (
        declared.character_set in {"", created.character_set}
    )


def new_table(query: QueryEvent, database: str, table: str) -> TableDefinition | None:
    """Return the table of a CREATE TABLE, if it is this one and there was certainly none before."""
    words = Words(query.text)
    if words.word() != b"CREATE" or words.word() != b"TABLE" or words.at_word(b"IF"):
        return None
    catalog = Catalog(folded=True)
    catalog.move_on(query)
    return catalog.find(database, table)


def redefines(query: QueryEvent, database: str, table: str) -> bool:
    """Tell whether a definition may give an existing table other columns, or another table's rows.

    Names that differ only in case count as the same: some servers log them so. A statement that is
    not understood counts, too.
    """
    words = Words(query.text)
    first = words.word()
    if first == b"CREATE" and not words.at_word(b"OR"):
        # There was no such table before.
        return False
    wanted = (database.lower(), table.lower())
    if first == b"RENAME":
        changes = changed(query.text)
        return changes.extent is Extent.UNKNOWN or wanted in {
            ((of or query.database).lower(), name.lower()) for of, name in changes.tables
        }
    # Any change of columns shows in a definition that has none.
    catalog = Catalog([TableDefinition(*wanted, ())], folded=True)
    catalog.move_on(query)
    after = catalog.find(*wanted)
    return after is None or bool(after.columns or after.character_set)


def creates(query: QueryEvent, database: str, table: str) -> bool:
    """Tell whether a definition makes a new table of this name, which is compared as above."""
    words = Words(query.text)
    if words.word() != b"CREATE":
        return False
    words.take_words(b"OR", b"REPLACE")
    if words.word() != b"TABLE":
        return False
    words.take_words(b"IF", b"NOT", b"EXISTS")
    of, name = words.take_name()
    return ((of or query.database).lower(), name.lower()) == (database.lower(), table.lower())

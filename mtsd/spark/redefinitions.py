"""Changes of a table's definition where the binary log does not name its columns.

Its rows are then read by one definition, which was told. Those before or after such a change have
another one, and nothing in them shows it: their values would be in wrong columns.
"""

from mtsd.binlog.changed_tables import Extent, changed
from mtsd.binlog.range_reader import GroupPart
from mtsd.binlog.table_map import TableMap
from mtsd.binlog.table_metadata import parse_optional_metadata
from mtsd.binlog.words import Words
from mtsd.catalog.catalog import Catalog
from mtsd.catalog.definition import TableDefinition
from mtsd.model.errors import NotSupportedError
from mtsd.model.step import QueryEvent, Statement, StatementKind


class Redefinitions:
    """Finds them in what a task reads, for one table.

    `are_named` says whether the binary log names columns, if no row that the task reads shows it.
    """

    def __init__(self, database: str, table: str, *, are_named: bool) -> None:
        self._database = database
        self._table = table
        self._are_named = are_named
        self._is_shown = False
        self._found = ""

    def look_at(self, table: TableMap) -> None:
        """Take note of whether the binary log names the columns of a table, whichever it is."""
        named = bool(parse_optional_metadata(table).names)
        self._are_named = named and (self._are_named or not self._is_shown)
        self._is_shown = True

    def learn(self, part: GroupPart, file: str) -> None:
        """Keep the first statement that may have changed the table's columns."""
        for step in part.steps:
            if (
                not self._found
                and isinstance(step, Statement)
                and step.kind is StatementKind.DDL
                and redefines(step.query, self._database, self._table)
            ):
                text = " ".join(step.query.statement[:200].decode(errors="replace").split())
                self._found = (
                    f"`{self._database}`.`{self._table}` may have other columns from"
                    f" {file}:{part.begin} on, and the binary log does not name them"
                    " (binlog_row_metadata is not FULL): read what is before it with option"
                    f" end={file}:{part.begin} and what is after it with start={file}:{part.end},"
                    f" each by its definition (option 'ddl'). The statement there: {text}"
                )

    def check(self) -> None:
        """Raise NotSupportedError if there was such a statement and columns are not named."""
        if self._found and not self._are_named:
            raise NotSupportedError(self._found)


def redefines(query: QueryEvent, database: str, table: str) -> bool:
    """Tell whether a definition may give an existing table other columns, or another table's rows.

    Names that differ only in case count as the same: some servers log them so. A statement that is
    not understood counts, too.
    """
    words = Words(query.statement, query.context)
    first = words.word()
    if first == b"CREATE" and not words.at_word(b"OR"):
        # There was no such table before.
        return False
    wanted = (database.lower(), table.lower())
    if first == b"RENAME":
        found = changed(query.statement, query.context)
        return found.extent is Extent.UNKNOWN or wanted in {
            ((of or query.database).lower(), name.lower()) for of, name in found.tables
        }
    # Any change of columns shows in a definition that has none.
    catalog = Catalog([TableDefinition(*wanted, ())], folded=True)
    catalog.move_on(query)
    after = catalog.find(*wanted)
    return after is None or bool(after.columns or after.character_set)

"""Tables that the option `ddl` defines because the binary log does not name their columns."""

from collections.abc import Iterator
from typing import Final

from mtsd.binlog.events.table_map import TableMap
from mtsd.binlog.sql.statement_secrets import shown
from mtsd.binlog.sql.tokenizer import tokens_of
from mtsd.binlog.values.table_metadata import OptionalMetadata, parse_optional_metadata
from mtsd.catalog.catalog import Catalog
from mtsd.catalog.definition import TableDefinition
from mtsd.model.session import SessionContext
from mtsd.model.statement_text import StatementText, TokenKind
from mtsd.model.step import QueryEvent
from mtsd.spark.options.options import OptionError

_UTF8MB4: Final = 255


class DeclaredTables:
    """Tables defined by CREATE TABLE statements separated by semicolons.

    `loaded` is added unless a statement defines the same table. A name without a database is in
    `database`. Raises OptionError if a statement is not CREATE TABLE or is not understood.
    """

    def __init__(self, ddl: str, database: str = "", loaded: TableDefinition | None = None) -> None:
        self._catalog = Catalog(() if loaded is None else (loaded,))
        for statement in _statements(ddl.encode()):
            known = list(self._catalog)
            query = _query(statement, database)
            self._catalog.move_on(query)
            if all(any(one is other for other in known) for one in self._catalog):
                raise OptionError(
                    f"option 'ddl': not understood as a new table: {shown(query, 100)}"
                )
        for definition in self._catalog:
            if not definition.database:
                raise OptionError(
                    f"option 'ddl': the table {definition.table} is without its database"
                )

    def definition(self, database: str, table: str) -> TableDefinition | None:
        """Return the definition of a table; None if it has none here."""
        return self._catalog.find(database, table)

    def of(self, table: TableMap) -> OptionalMetadata | None:
        """Return the metadata of a table; None if it is not defined here, or not needed.

        Rows with names tell all else, too, and may be of another time than the definition. Raises
        NotSupportedError if the definition does not match rows without names.
        """
        if parse_optional_metadata(table).names:
            return None
        definition = self._catalog.find(table.database, table.table)
        return None if definition is None else definition.declared(table)


def _statements(ddl: bytes) -> Iterator[bytes]:
    start = 0
    for token in tokens_of(StatementText(ddl)):
        if token.kind is TokenKind.SYMBOL and token.text == b";":
            if ddl[start : token.start].strip():
                yield ddl[start : token.start].strip()
            start = token.end
    if ddl[start:].strip():
        yield ddl[start:].strip()


def _query(statement: bytes, database: str) -> QueryEvent:
    return QueryEvent(
        thread_id=0,
        exec_time=0,
        error_code=0,
        text=StatementText(statement, SessionContext(character_set_client=_UTF8MB4)),
        microseconds=None,
        database=database,
        updated_databases=None,
        over_max=False,
        invoker=None,
        ddl_xid=None,
        timestamp=0,
    )

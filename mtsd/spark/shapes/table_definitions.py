"""What the rows of one table are read by: its definitions, as they come in the stream."""

from collections.abc import Sequence
from typing import Final

from pyspark.sql.types import DataType, LongType, StringType, StructType, TimestampType

from mtsd.binlog.events.table_map import TableMap
from mtsd.binlog.files.range_parts import GroupPart
from mtsd.binlog.values.column_format import ColumnFormat, column_formats, is_hidden
from mtsd.binlog.values.table_metadata import OptionalMetadata, parse_optional_metadata
from mtsd.model.errors import NotSupportedError
from mtsd.model.position import Position
from mtsd.model.step import Statement
from mtsd.spark.arrays.row_batches import RowBatches
from mtsd.spark.arrays.row_keys import primary_key
from mtsd.spark.options.options import UNION, OptionError, Options
from mtsd.spark.shapes.declared_tables import DeclaredTables
from mtsd.spark.shapes.evolution import may_become, renamed, shown_type
from mtsd.spark.shapes.last_definition import definition_before, definition_in
from mtsd.spark.shapes.redefinitions import Redefinitions, redefines
from mtsd.spark.shapes.shape import ShapeRequest

_IN_PARTS: Final = (
    "; leave the column out by option 'columns', read with option evolve=union, or read what is"
    " before and after the statement that made the difference each on its own (options 'end' and"
    " 'start')"
)
_AGAIN: Final = (
    "; start the read again, which then finds the column, name it by .schema(…), or leave it out by"
    " option 'columns'"
)
PREIMAGE: Final = "update_preimage"
POSTIMAGE: Final = "update_postimage"
META: Final[dict[str, DataType]] = {
    "_op": StringType(),
    "_file": StringType(),
    "_pos": LongType(),
    "_row": LongType(),
    "_gtid": StringType(),
    "_commit_time": TimestampType(),
    "_key": StringType(),
    "_seq": StringType(),
}
ABSENT: Final = "_absent"
"""Another column, with the option `absent`: the names of columns whose values were not logged."""


def wanted_table(options: Options) -> tuple[str, str]:
    """Return the option `table`. Raises OptionError."""
    if options.table is None:
        raise OptionError("shape 'table' needs the option 'table': \"database.table\"")
    return options.table


class TableDefinitions:
    """Finds the wanted columns by name in the table's metadata from the stream."""

    def __init__(self, request: ShapeRequest) -> None:
        self._request = request
        self._table = wanted_table(request.options)
        self._declared = DeclaredTables(request.options.ddl, self._table[0], request.options.loaded)
        self._names = names_of_table(request.schema)
        self._place: Position | None = None
        """Where the group begins that is being read."""
        self._last_ddl = ""
        self._unites = request.options.evolve == UNION
        declared = self._declared.definition(*self._table)
        self._redefinitions = (
            Redefinitions(self._table, declared, request.whole) if self._names else None
        )

    def learn(self, part: GroupPart, file: str) -> None:
        """Keep the last statement that may have changed the table, to name it in errors."""
        if self._redefinitions is not None:
            self._redefinitions.learn(part, file)
        self.be_at(Position(file, part.begin))
        found = definition_in(part, file, *self._table)
        if found:
            self._last_ddl = found
            if self._unites:
                self._check_names(part)

    def be_at(self, place: Position) -> None:
        """Take note of where the group begins that is read next."""
        self._place = place

    def _check_names(self, part: GroupPart) -> None:
        """Raise NotSupportedError if a column is renamed, unless both names were asked for."""
        names = {name.casefold() for name in self._names}
        asked = {name.casefold() for name in self._request.options.columns}
        for step in part.steps:
            if not isinstance(step, Statement) or not redefines(step.query, *self._table):
                continue
            for before, after in renamed(step.query):
                both = {before.casefold(), after.casefold()}
                if both & names and not both <= asked:
                    raise self._misfit(
                        f"column `{before}` is named `{after}`",
                        "; read what is before and after it each on its own (options 'end' and"
                        " 'start'), or name both by option 'columns', which has NULL in the one"
                        " that a row does not have",
                    )

    def check(self, *, at_end: bool = False) -> None:
        """Raise NotSupportedError if rows may belong to another definition than the one told."""
        if self._redefinitions is not None:
            self._redefinitions.check(at_end=at_end)

    def may_be(self, database: str, table: str | None) -> bool:
        """Tell whether a table is the wanted one, or in a database, however names are spelled."""
        of, name = self._table
        return database.lower() == of.lower() and (table is None or table.lower() == name.lower())

    def choose(self, table: TableMap) -> RowBatches | None:
        """Return the decoder of the wanted columns; NotSupportedError if one does not fit."""
        if self._redefinitions is not None:
            self._redefinitions.look_at(table)
        if (table.database, table.table) != self._table:
            return None
        declared = self._declared.of(table) or self._by_place(table)
        formats = column_formats(table, declared)
        twice = named_like_ours(formats, self._request.schema.names)
        if twice:
            raise self._misfit(twice)
        places = places_of(self._names, formats)
        missing = [name for name in self._names if name not in places]
        if missing and not self._unites:
            raise self._misfit(f"there is no column `{missing[0]}`", _IN_PARTS)
        if self._names and not self._request.options.columns:
            known = set(places.values())
            for place, column in enumerate(formats):
                if place not in known and not is_hidden(table, column):
                    remedy = _AGAIN if self._unites else _IN_PARTS
                    raise self._misfit(
                        f"there is a column `{column.name}` that is not one of this read", remedy
                    )
        filters = self._request.filters
        decoder = RowBatches(
            table,
            declared,
            tuple(places.values()),
            self._request.options.dates,
            (filters.keeps("op", PREIMAGE), filters.keeps("op", POSTIMAGE)),
            primary_key(table) if "_key" in self._request.schema.names else (),
        )
        arrow = self._request.arrow_schema
        for name, place in places.items():
            found, asked = decoder.type_of(place), arrow.field(name).type
            if not may_become(found, asked):
                raise self._misfit(
                    f"column `{name}` is {shown_type(found)} in the binary log, not"
                    f" {shown_type(asked)}"
                )
        return decoder

    def _by_place(self, table: TableMap) -> OptionalMetadata | None:
        """Return the schema's names, in order, for columns that the binary log does not name."""
        own = parse_optional_metadata(table)
        if own.names or not self._names:
            return None
        count = len(table.column_types)
        if self._request.options.columns or count != len(self._names):
            raise self._misfit(
                f"the binary log does not name its {count} columns (binlog_row_metadata is not"
                " FULL): give its CREATE TABLE statement as option 'ddl', or all columns, in their"
                " order, by .schema(…)"
            )
        return OptionalMetadata(names=tuple(self._names))

    def _misfit(self, what: str, remedy: str = "") -> NotSupportedError:
        database, name = self._table
        statement, whole = self._last_ddl, self._request.whole
        if not statement and whole is not None and self._place is not None:
            statement = definition_before(whole.logs.aside(), self._place, database, name)
        since = f", since the statement at {statement}" if statement else ""
        return NotSupportedError(f"`{database}`.`{name}`: {what}{since}{remedy}")


def names_of_table(schema: StructType) -> list[str]:
    """Return the names of the table's own columns."""
    return [name for name in schema.names if name not in META and name != ABSENT]


def named_like_ours(formats: Sequence[ColumnFormat], requested: Sequence[str]) -> str:
    """Return what is wrong if a requested column may be the table's or ours."""
    for column in formats:
        if column.name in requested and (column.name in META or column.name == ABSENT):
            return (
                f"it has a column `{column.name}` of its own, and shape 'table' has one for each"
                " change: leave it out by option 'columns', or read the shape 'changes'"
            )
    return ""


def places_of(names: Sequence[str], formats: Sequence[ColumnFormat]) -> dict[str, int]:
    """Return the place of each name's column: spelled the same, or else the only one like it."""
    exact = {column.name: place for place, column in enumerate(formats)}
    found: dict[str, int] = {}
    for name in names:
        alike = [exact[name]] if name in exact else [
            place
            for place, column in enumerate(formats)
            if column.name.casefold() == name.casefold()
        ]  # fmt: skip
        if len(alike) == 1:
            found[name] = alike[0]
    return found

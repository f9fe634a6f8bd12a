"""The columns of the target's tables, and how they explain a failed row event.

A BINLOG statement reports "Unknown error" (1105) in two cases: for rows of a type that the target
does not convert, where only the server's error log has the actual error (1677), and for a KILL
QUERY at some of its steps.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mtsd.apply.sql import literals
from mtsd.apply.tables.column_fit import (
    ColumnShape,
    Fit,
    misfits,
    shape_of_definition,
    shapes_of_event,
)
from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.events.table_map import TableMap, parse_table_map
from mtsd.model.error_numbers import ER
from mtsd.model.errors import ServerError
from mtsd.wire.connection import Connection
from mtsd.wire.exchange import Row
from mtsd.wire.understood import understood

COLUMNS = (
    "column_name, data_type, column_type, character_octet_length, numeric_precision,"
    " numeric_scale, datetime_precision, collation_name, extra"
)
"""The columns of information_schema.columns that `table_column` parses."""
_PERSISTED = "replica_type_conversions"
"""The setting since MySQL 8.0.26; before, and on a MariaDB, it only has its former name."""
_FORMER = "slave_type_conversions"
_CONVERSIONS = f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ('{_PERSISTED}', '{_FORMER}')"
ALTER = "give it the source's type (ALTER TABLE on the target)"
_TABLE_MAP = EventType.TABLE_MAP_EVENT.value


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a table. `shape` is None if its type is unknown."""

    name: str
    text: str
    """Its type as shown by SHOW CREATE TABLE."""
    shape: ColumnShape | None
    collation: str
    extra: str

    @property
    def generated_key(self) -> bool:
        """Whether the server has added it as the table's primary key."""
        return self.name == "my_row_id" and "INVISIBLE" in self.extra.upper()


def table_column(row: Row) -> TableColumn:
    """Parse a row of the columns `COLUMNS`."""
    name, data_type, text, octets, precision, scale, fraction, collation, extra = row
    kind, described = _text(data_type), _text(text)
    return TableColumn(
        _text(name),
        described,
        shape_of_definition(
            kind,
            described,
            _number(octets),
            _number(precision),
            _number(scale),
            _number(fraction),
            _text(collation),
        ),
        _text(collation),
        _text(extra),
    )


@understood("target")
async def read_columns(connection: Connection, database: str, table: str) -> list[TableColumn]:
    """Return the columns of a table in order; none if the table does not exist."""
    # As character strings they are compared as the server compares names, whatever their case.
    rows = await connection.query(
        b"SELECT %b FROM information_schema.columns WHERE table_schema = CONVERT(%b USING utf8mb4)"
        b" AND table_name = CONVERT(%b USING utf8mb4) ORDER BY ordinal_position"
        % (COLUMNS.encode(), literals.text(database), literals.text(table))
    )
    return [table_column(row) for row in rows]


@understood("target")
async def explain_row_failure(
    connection: Connection, error: ServerError, events: Sequence[bytes]
) -> ServerError:
    """Return what a failure of row events means; nothing may be open on the connection.

    "Unknown error" becomes error 1677 if a column of the target does not accept the source's
    rows; otherwise the error itself is returned, and is an interruption. The same applies to an
    event that the target calls corrupt (1610), as it does if it reads it with a column of another
    size. Raises ServerError, ConnectionLostError.
    """
    if error.number not in {ER.UNKNOWN_ERROR, ER.SLAVE_CORRUPT_EVENT}:
        return error
    conversions = await connection.query(_CONVERSIONS)
    variables = {_text(name).lower(): _text(value) for name, value in conversions}
    maps = {event: parse_table_map(event) for event in events if event[4] == _TABLE_MAP}
    for table in {(table.database, table.table): table for table in maps.values()}.values():
        target = await read_columns(connection, table.database, table.table)
        text = _misfit(table, target, variables)
        if text:
            explained = ServerError(ER.SLAVE_CONVERSION_FAILED, "HY000", text)
            explained.server = error.server
            return explained
    return error


def _misfit(table: TableMap, target: Sequence[TableColumn], variables: Mapping[str, str]) -> str:
    """Describe which column of a table does not accept its rows; "" if all do."""
    allowed = allowed_conversions(variables)
    source = shapes_of_event(table)
    target = without_generated_key(target, in_events=table.has_generated_key)
    wrong = misfits(source, [column.shape for column in target], allowed)
    if not wrong:
        return ""
    place = wrong[0][0]
    more = f" (and {len(wrong) - 1} more of its columns)" if len(wrong) > 1 else ""
    return (
        f"column {place + 1} of table {table.database}.{table.table}, {target[place].name!r}, is"
        f" {source[place]} on the source and {target[place].text} on the target{more}:"
        f" {remedy({each for _, each in wrong}, variables)}"
    )


def without_generated_key(
    target: Sequence[TableColumn], *, in_events: bool
) -> Sequence[TableColumn]:
    """Return the columns that correspond to the source's.

    Its events skip a key that only the target has generated; `in_events`: the source has one too.
    """
    return target[1:] if target and target[0].generated_key and not in_events else target


def allowed_conversions(variables: Mapping[str, str]) -> frozenset[str]:
    """Return what a server with these variables converts."""
    value = variables.get(_PERSISTED, variables.get(_FORMER, ""))
    return frozenset(value.upper().split(","))


def remedy(fits: set[Fit], variables: Mapping[str, str]) -> str:
    """Return the remedy for columns that do not fit those of a server with these variables."""
    if Fit.NEVER in fits:
        return ALTER
    needed = [
        name
        for each, name in ((Fit.LOSSY, "ALL_LOSSY"), (Fit.NON_LOSSY, "ALL_NON_LOSSY"))
        if each in fits
    ]
    cut = ", which may truncate values" if Fit.LOSSY in fits else ""
    way = f"PERSIST {_PERSISTED}" if _PERSISTED in variables else f"GLOBAL {_FORMER}"
    return f"{ALTER}, or SET {way} = '{','.join(needed)}' there{cut}"


def _number(value: object) -> int:
    return int(str(value or 0))


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return "" if value is None else str(value)

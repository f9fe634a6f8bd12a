"""How a position table is declared: each column once, with its type, its literal and its parsing.

    _BRANCH = whole("Branch", "INT UNSIGNED")
    _TABLE = Table("slave_split_branch", (CHANNEL, _BRANCH), "PRIMARY KEY (`Channel_name`, …)")

From that come the statement that creates the table, its queries and its INSERT. A row that is
written names the columns (`_BRANCH.of(3)`), and so does one that was read (`found[_BRANCH]`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, Generic, Protocol, TypeVar

from mtsd.apply.position.unreadable import parsed
from mtsd.apply.sql import literals
from mtsd.model.position import Position
from mtsd.wire.exchange import Row

NAME_COLUMN: Final = "VARCHAR(512) NOT NULL"
TABLE_OPTIONS: Final = "ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin"
LONGEST_TEXT: Final = 10_000
"""Characters: a TEXT column has room for them at four bytes each."""

Value = TypeVar("Value")
Pair = tuple[bytes, bytes]
"""A column's name and a literal for it."""


class AnyColumn(Protocol):
    """A column, whatever its values are."""

    @property
    def name(self) -> str:
        """See `FilledColumn`."""

    @property
    def definition(self) -> str:
        """See `FilledColumn`."""

    @property
    def quoted(self) -> bytes:
        """See `FilledColumn`."""

    @property
    def selected(self) -> bytes:
        """See `FilledColumn`."""

    @property
    def is_read(self) -> bool:
        """See `FilledColumn`."""


@dataclass(frozen=True, slots=True)
class FilledColumn(Generic[Value]):
    """A column that the server fills in, whose values are `Value` here."""

    name: str
    definition: str
    """Its type and what else CREATE TABLE says of it."""
    parse: Callable[[object], Value]
    """The value of what the server answers for `selected`."""
    expression: bytes = field(default=b"%b", kw_only=True)
    """By which it is read; %b is the name."""
    is_read: bool = field(default=True, kw_only=True)

    @property
    def quoted(self) -> bytes:
        """Its name in a statement."""
        return literals.name(self.name)

    @property
    def selected(self) -> bytes:
        """What a query for it selects."""
        return self.expression % self.quoted


@dataclass(frozen=True, slots=True)
class Column(FilledColumn[Value]):
    """A column that is written."""

    literal: Callable[[Value], bytes]

    def of(self, value: Value) -> Pair:
        """Return the column and the literal of a value."""
        return self.quoted, self.literal(value)

    def equals(self, value: Value) -> bytes:
        """Return the condition, or assignment, that it has a value."""
        return b"%b=%b" % self.of(value)


def _whole_literal(value: int) -> bytes:
    return b"%d" % value


def _raw(value: object) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def _moment(value: object) -> datetime:
    return datetime.fromtimestamp(literals.number(value), UTC)


def whole(name: str, kind: str = "BIGINT UNSIGNED", more: str = "NOT NULL") -> Column[int]:
    """Return the column of a number."""
    return Column(name, f"{kind} {more}", literals.number, _whole_literal)


def flag(name: str) -> Column[bool]:
    """Return the column of a truth value."""
    return Column(name, "TINYINT UNSIGNED NOT NULL", bool, _whole_literal)


def text(name: str, definition: str) -> Column[str]:
    """Return the column of a text that fits into it."""
    return Column(name, definition, str, literals.text)


def shown_text(name: str, definition: str, longest: int = LONGEST_TEXT) -> Column[str]:
    """Return the column of a text by people or servers: cut, and with ? for what is not UTF-8."""

    def literal(value: str) -> bytes:
        return literals.blob(value[:longest].encode("utf-8", "replace"))

    return Column(name, definition, str, literal)


def _text_or_none(value: object) -> str | None:
    return None if value is None else str(value)


def text_or_null(name: str, kind: str) -> Column[str | None]:
    """Return the column of a text that may be missing."""
    return Column(name, f"{kind} NULL", _text_or_none, literals.nullable)


def raw(name: str, definition: str) -> Column[bytes]:
    """Return the column of bytes."""
    return Column(name, definition, _raw, literals.blob)


def in_hex(name: str, definition: str) -> Column[bytes]:
    """Return the column of bytes that are read in hexadecimal, so in any character set."""
    return Column(
        name,
        definition,
        lambda value: bytes.fromhex(str(value)),
        literals.blob,
        expression=b"HEX(%b)",
    )


def moment(name: str, *, changes: bool = False, is_read: bool = True) -> FilledColumn[datetime]:
    """Return the column of the time at which a row was written, or last changed.

    It is read in whole seconds since 1970, in any time zone.
    """
    now = "CURRENT_TIMESTAMP(6)"
    definition = f"TIMESTAMP(6) NOT NULL DEFAULT {now}" + (f" ON UPDATE {now}" if changes else "")
    seconds = b"CAST(FLOOR(UNIX_TIMESTAMP(%b)) AS SIGNED)"
    return FilledColumn(name, definition, _moment, expression=seconds, is_read=is_read)


CHANNEL: Final = Column("Channel_name", "VARCHAR(64) NOT NULL", str, literals.text, is_read=False)
ONE_A_CHANNEL: Final = Column(
    "Channel_name", "VARCHAR(64) NOT NULL PRIMARY KEY", str, literals.text, is_read=False
)


@dataclass(frozen=True, slots=True)
class StoredRow:
    """A row of a table, by its columns."""

    values: Mapping[str, object]

    def __getitem__(self, column: FilledColumn[Value]) -> Value:
        """Return the value of a column that is read."""
        return column.parse(self.values[column.name])


@dataclass(frozen=True, slots=True)
class PositionColumns:
    """The two columns of a position in a binary log; "" and 0 if there is none."""

    file: Column[str]
    offset: Column[int]

    def of(self, position: Position | None) -> tuple[Pair, Pair]:
        """Return the columns and literals of a position."""
        if position is None:
            return self.file.of(""), self.offset.of(0)
        return self.file.of(position.file), self.offset.of(position.offset)

    def read(self, row: StoredRow) -> Position:
        """Return the position in a row."""
        return Position(row[self.file], row[self.offset])


SOURCE_POSITION: Final = PositionColumns(
    text("Master_log_name", NAME_COLUMN), whole("Master_log_pos")
)


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its name, its columns in order, and its keys beyond those in the columns."""

    name: str
    columns: tuple[AnyColumn, ...]
    keys: str = ""

    @property
    def selected(self) -> bytes:
        """What a query for all that is read selects."""
        return b",".join(column.selected for column in self.columns if column.is_read)

    def definition(self, schema: str) -> bytes:
        """Return the statement that creates the table if it does not exist."""
        lines = [f"  `{column.name}` {column.definition}" for column in self.columns]
        if self.keys:
            lines.append(f"  {self.keys}")
        name = (literals.name(schema) + b"." + literals.name(self.name)).decode()
        inside = ",\n".join(lines)
        return f"CREATE TABLE IF NOT EXISTS {name} (\n{inside}\n) {TABLE_OPTIONS}".encode()

    def read(self, row: Row) -> StoredRow:
        """Return a row of a query for `selected`."""
        names = [column.name for column in self.columns if column.is_read]
        return StoredRow(dict(zip(names, row, strict=True)))


class ChannelTable:
    """Statements on a table of one schema, about the rows of one channel."""

    def __init__(self, table: Table, schema: str, channel: str) -> None:
        self.table = table
        self.name = literals.name(schema) + b"." + literals.name(table.name)
        self._schema = schema
        self._channel = channel
        self.of_channel = b" WHERE " + CHANNEL.equals(channel)
        """The condition on rows, with the WHERE."""
        self.of_others = b"%b<>%b" % CHANNEL.of(channel)
        """The condition on rows of other channels."""

    def definition(self) -> bytes:
        """Return the statement that creates the table if it does not exist."""
        return self.table.definition(self._schema)

    def insert(self, *values: Pair) -> bytes:
        """Return the statement that adds a row of the channel."""
        return literals.insert(self.name, [CHANNEL.of(self._channel), *values])

    def replace(self, *values: Pair) -> bytes:
        """Return the statement that adds a row of the channel, in place of one with its key."""
        return b"REPLACE" + self.insert(*values).removeprefix(b"INSERT")

    def select(self, columns: bytes = b"", condition: bytes = b"") -> bytes:
        """Return the query for rows of the channel: for some `columns`, or all that are read."""
        return b"SELECT %b FROM %b%b%b" % (
            columns or self.table.selected, self.name, self.of_channel, condition,
        )  # fmt: skip

    def parsed(self, column: AnyColumn, parse: Callable[[str], Value], held: str) -> Value:
        """Return the value of a text of this table. Raises UnreadableError."""
        return parsed(
            parse, held, schema=self._schema, channel=self._channel,
            table=self.table.name, column=column.name,
        )  # fmt: skip

    def update(self, assignments: bytes, condition: bytes = b"") -> bytes:
        """Return the statement that changes rows of the channel."""
        return b"UPDATE %b SET %b%b%b" % (self.name, assignments, self.of_channel, condition)

    def delete(self, condition: bytes = b"") -> bytes:
        """Return the statement that removes rows of the channel."""
        return b"DELETE FROM %b%b%b" % (self.name, self.of_channel, condition)

"""Table definitions: the names and types of columns, and the keys.

A definition comes from a table map with FULL metadata, from the statement that creates the table,
or from rows of information_schema. `declared` gives the decoder what a table map does not contain.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from mtsd.binlog.bytes.character_sets import BINARY, any_collation
from mtsd.binlog.events.table_map import TableMap
from mtsd.binlog.values.column_type import ColumnType, parse_columns
from mtsd.binlog.values.table_metadata import OptionalMetadata, parse_optional_metadata
from mtsd.model.errors import NotSupportedError

_UTF8: Final = 255
_FRACTION: Final = re.compile(r"[a-z]+ *\( *([0-9]) *\)")
_MEMBER: Final = re.compile(r"'((?:[^'\\]|''|\\.)*)'", re.DOTALL)
_ESCAPED: Final = re.compile(r"''|\\(.)", re.DOTALL)
_ESCAPES: Final = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}
_TEXTS: Final = ("char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set")
BYTES: Final = frozenset({
    "binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "uuid", "inet6", "inet4",
})  # fmt: skip
"""Types whose values are logged as bytes."""


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """A column; `type` is lower case, as in SHOW CREATE TABLE, and "" if it is not known.

    `character_set` is "" if it is not known, and for columns that are not text.
    """

    name: str
    type: str = ""
    character_set: str = ""

    @property
    def kind(self) -> str:
        """Return the type's first word."""
        return re.split(r"[ (]", self.type, maxsplit=1)[0]

    @property
    def unsigned(self) -> bool:
        """Return whether the column is an unsigned number."""
        _, _, behind = self.type.rpartition(")")
        return bool({"unsigned", "zerofill"}.intersection(behind.split())) or (
            self.kind in {"serial", "year"}
        )

    @property
    def fraction(self) -> int | None:
        """Return how many digits the fraction of a second has; None if it is of another type."""
        if self.kind not in {"time", "datetime", "timestamp"}:
            return None
        digits = _FRACTION.match(self.type)
        return int(digits[1]) if digits else 0

    @property
    def members(self) -> tuple[str, ...]:
        """Return the members of an ENUM or SET."""
        if self.kind not in {"enum", "set"}:
            return ()
        return tuple(
            # Trailing spaces are not part of a member.
            _ESCAPED.sub(_unescaped, member).rstrip(" ")
            for member in _MEMBER.findall(self.type)
        )


def _unescaped(match: re.Match[str]) -> str:
    character: str | None = match[1]
    return "'" if character is None else _ESCAPES.get(character, character)


@dataclass(frozen=True, slots=True)
class Key:
    """A unique key on columns, given by name; the primary key is named PRIMARY."""

    name: str
    columns: tuple[str, ...]


PRIMARY: Final = "PRIMARY"


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """A table as of a position. `character_set` is its default, "" if it is not known."""

    database: str
    table: str
    columns: tuple[ColumnDefinition, ...]
    keys: tuple[Key, ...] = ()
    character_set: str = ""

    @property
    def primary_key(self) -> tuple[str, ...]:
        """Return the columns of the primary key, empty if there is none."""
        return next((key.columns for key in self.keys if key.name == PRIMARY), ())

    def declared(self, table: TableMap) -> OptionalMetadata:
        """Return this definition as metadata of a table map (`mtsd.binlog.values.column_format`).

        Raises NotSupportedError if they do not match: the number of columns differs, or a column
        is an ENUM, SET, text or number in only one of them.
        """
        types = [column.type for column in parse_columns(table)]
        if len(types) != len(self.columns):
            raise NotSupportedError(
                f"{self} has {len(self.columns)} columns, and its rows in the binary log have"
                f" {len(types)}"
            )
        unsigned: dict[int, bool] = {}
        collations: dict[int, int] = {}
        fractions: dict[int, int] = {}
        members: dict[ColumnType, dict[int, tuple[bytes, ...]]] = {
            ColumnType.ENUM: {}, ColumnType.SET: {},
        }  # fmt: skip
        for index, (kind, column) in enumerate(zip(types, self.columns, strict=True)):
            if not column.type:
                continue
            expected = _LOGGED.get(column.kind)
            if expected is not None and kind not in expected:
                raise NotSupportedError(
                    f"column `{column.name}` of {self} is {column.kind}, and its values in the"
                    f" binary log are of type {kind.name}"
                )
            if column.fraction is not None:
                fractions[index] = column.fraction
            if kind in members:
                members[kind][index] = tuple(member.encode() for member in column.members)
                collations[index] = _UTF8
            elif column.kind in BYTES:
                collations[index] = BINARY
            elif column.kind in _TEXTS and column.character_set:
                collations[index] = any_collation(column.character_set)
            else:
                unsigned[index] = column.unsigned
        return OptionalMetadata(
            unsigned,
            collations,
            tuple(column.name for column in self.columns),
            members[ColumnType.SET],
            members[ColumnType.ENUM],
            fractions=fractions,
        )

    def __str__(self) -> str:
        return f"`{self.database}`.`{self.table}`"


_LOGGED: Final[dict[str, frozenset[ColumnType]]] = {
    **{
        name: frozenset({kind})
        for name, kind in {
            "tinyint": ColumnType.TINY, "smallint": ColumnType.SHORT,
            "mediumint": ColumnType.INT24, "int": ColumnType.LONG, "integer": ColumnType.LONG,
            "bigint": ColumnType.LONGLONG, "serial": ColumnType.LONGLONG,
            "float": ColumnType.FLOAT, "decimal": ColumnType.NEWDECIMAL,
            "numeric": ColumnType.NEWDECIMAL, "double": ColumnType.DOUBLE,
            "bit": ColumnType.BIT, "year": ColumnType.YEAR, "enum": ColumnType.ENUM,
            "set": ColumnType.SET, "json": ColumnType.JSON, "vector": ColumnType.VECTOR,
            "char": ColumnType.STRING, "binary": ColumnType.STRING,
            **dict.fromkeys(("uuid", "inet6", "inet4"), ColumnType.STRING),
            "varchar": ColumnType.VARCHAR, "varbinary": ColumnType.VARCHAR,
        }.items()
    },
    **dict.fromkeys(
        (f"{size}{kind}" for size in ("tiny", "", "medium", "long") for kind in ("blob", "text")),
        frozenset({ColumnType.BLOB}),
    ),
    "date": frozenset({ColumnType.DATE, ColumnType.NEWDATE}),
    "time": frozenset({ColumnType.TIME, ColumnType.TIME2}),
    "datetime": frozenset({ColumnType.DATETIME, ColumnType.DATETIME2}),
    "timestamp": frozenset({ColumnType.TIMESTAMP, ColumnType.TIMESTAMP2}),
}  # fmt: skip
"""How a type's values are logged; FLOAT(53) and MariaDB's JSON are other types in the log."""


def definition_of(table: TableMap) -> TableDefinition | None:
    """Return the definition in a table map; None if it lacks the names of FULL metadata."""
    declared = parse_optional_metadata(table)
    if not declared.names:
        return None
    columns = tuple(ColumnDefinition(name) for name in declared.names)
    if declared.primary_key is None:
        return TableDefinition(table.database, table.table, columns)
    names = tuple(declared.names[index] for index, _ in declared.primary_key)
    return TableDefinition(table.database, table.table, columns, (Key(PRIMARY, names),))


def loaded_definition(
    database: str,
    table: str,
    columns: Sequence[tuple[str, str, str | None]],
    keys: Sequence[tuple[str, Sequence[str]]] = (),
) -> TableDefinition:
    """Return a server's table; columns are (COLUMN_NAME, COLUMN_TYPE, CHARACTER_SET_NAME).

    `keys` contains the names of unique keys and their columns.
    """
    return TableDefinition(
        database,
        table,
        tuple(ColumnDefinition(name, lower(kind), text or "") for name, kind, text in columns),
        tuple(Key(name, tuple(names)) for name, names in keys),
    )


def lower(kind: str) -> str:
    """Return a type in lower case, except for the members of an ENUM or SET."""
    name, bracket, rest = kind.partition("(")
    if name.strip().lower() in {"enum", "set"}:
        return name.strip().lower() + bracket + rest
    return kind.lower()

"""What the target says about its keys: unique ones, foreign ones, and what they are made of."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from mtsd.apply.session.family import TARGETS
from mtsd.apply.sql import literals
from mtsd.apply.tables.table_columns import COLUMNS, TableColumn, table_column
from mtsd.model.errors import ServerError
from mtsd.model.names import folded
from mtsd.model.server import Flavour
from mtsd.wire.connection import Connection
from mtsd.wire.exchange import Row
from mtsd.wire.understood import understood

TableName = tuple[str, str]
"""Database and table."""
_OF_THE_SERVER = "('mysql', 'sys', 'information_schema', 'performance_schema')"
_CASCADES = frozenset({"CASCADE", "SET NULL", "SET DEFAULT"})
_PERIOD_TYPES = frozenset({"date", "datetime", "timestamp"})


@dataclass(frozen=True, slots=True)
class DefinedColumn:
    """A column; the target computes one that has an `expression`."""

    column: TableColumn
    nullable: bool
    expression: str = ""

    @property
    def generated(self) -> bool:
        """Whether the target computes it."""
        return bool(self.expression)


@dataclass(frozen=True, slots=True)
class UniquePart:
    """A part of a unique key: a column by its name, "" for an expression.

    `characters` is how many of them a prefix has, 0 for the whole column.
    """

    column: str
    characters: int = 0


@dataclass(frozen=True, slots=True)
class UniqueKeys:
    """A table and its unique keys, the primary one first.

    `overlaps`: some are not about equal values, but about periods. `triggers` are run for the rows
    of a source. `versioned`: its history has rows, too.
    """

    engine: str
    columns: tuple[DefinedColumn, ...]
    unique: tuple[tuple[UniquePart, ...], ...]
    overlaps: bool = False
    triggers: bool = False
    versioned: bool = False

    @property
    def identifies_rows(self) -> bool:
        """Whether it has a primary key, or a unique one over columns that cannot be NULL."""
        filled = {each.column.name for each in self.columns if not each.nullable}
        return any(all(part.column in filled for part in key) for key in self.unique)


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """`columns` of `table` refer to `parent_columns` of `parent`, in this order.

    There are none where the user may not see them.
    """

    table: TableName
    columns: tuple[str, ...]
    parent: TableName
    parent_columns: tuple[str, ...]
    cascades_deletes: bool = False
    cascades_updates: bool = False


@dataclass(frozen=True, slots=True)
class KeyDefinitions:
    """Everything found in some databases; `foreign_keys` are those of all databases."""

    databases: frozenset[str]
    tables: Mapping[TableName, UniqueKeys]
    foreign_keys: tuple[ForeignKey, ...]


async def read_key_definitions(
    connection: Connection,
    flavour: Flavour,
    databases: Collection[str] | None = None,
    *,
    fold_case: bool,
) -> KeyDefinitions:
    """Read the keys of the tables that the user may see, of some databases or all of them.

    The server's own databases are left out. With `fold_case`, names of databases and tables are in
    lower case. Raises ServerError, ConnectionLostError.
    """
    reader = _Reader(connection, flavour, databases, fold_case=fold_case)
    return KeyDefinitions(
        await reader.databases(), await reader.tables(), await reader.foreign_keys()
    )


class _Reader:
    def __init__(
        self,
        connection: Connection,
        flavour: Flavour,
        databases: Collection[str] | None,
        *,
        fold_case: bool,
    ) -> None:
        self._connection = connection
        self._family = TARGETS[flavour]
        self._fold_case = fold_case
        self._databases = databases

    @understood("target")
    async def databases(self) -> frozenset[str]:
        names = await self._rows(
            "SELECT schema_name FROM information_schema.schemata", "schema_name"
        )
        return frozenset(self._name(name) for (name,) in names)

    @understood("target")
    async def tables(self) -> dict[TableName, UniqueKeys]:
        columns = await self._columns()
        unique = await self._unique()
        triggers = await self._triggers()
        by_name: dict[TableName, UniqueKeys] = {}
        for database, table, engine, kind in await self._rows(
            "SELECT table_schema, table_name, engine, table_type FROM information_schema.tables"
            " WHERE table_type IN ('BASE TABLE', 'SYSTEM VERSIONED')"
        ):
            name = self._name(database), self._name(table)
            keys = unique.get(name, ())
            of = columns.get(name, ())
            by_name[name] = UniqueKeys(
                str(engine).lower(),
                of,
                keys,
                overlaps=self._family.has_periods
                and _may_overlap(of, keys)
                and await self._overlaps(str(database), str(table)),
                triggers=name in triggers,
                versioned=str(kind) != "BASE TABLE",
            )
        return by_name

    @understood("target")
    async def foreign_keys(self) -> tuple[ForeignKey, ...]:
        """Return those of all databases: of others, too, they may refer to these."""
        rules = await self._connection.query(
            "SELECT constraint_schema, table_name, constraint_name, delete_rule, update_rule,"
            " unique_constraint_schema, referenced_table_name"
            " FROM information_schema.referential_constraints"
        )
        parts = await self._connection.query(
            "SELECT constraint_schema, table_name, constraint_name, column_name,"
            " referenced_column_name FROM information_schema.key_column_usage"
            " WHERE referenced_table_name IS NOT NULL"
            " ORDER BY constraint_schema, table_name, constraint_name, ordinal_position"
        )
        columns: dict[tuple[str, ...], list[Row]] = {}
        for part in parts:
            columns.setdefault(tuple(map(str, part[:3])), []).append(part)
        keys = []
        for rule in rules:
            of = columns.get(tuple(map(str, rule[:3])), [])
            keys.append(
                ForeignKey(
                    (self._name(rule[0]), self._name(rule[1])),
                    tuple(str(part[3]) for part in of),
                    (self._name(rule[5]), self._name(rule[6])),
                    tuple(str(part[4]) for part in of),
                    cascades_deletes=str(rule[3]).upper() in _CASCADES,
                    cascades_updates=str(rule[4]).upper() in _CASCADES,
                )
            )
        return tuple(keys)

    async def _columns(self) -> dict[TableName, tuple[DefinedColumn, ...]]:
        defined: dict[TableName, list[DefinedColumn]] = {}
        for database, table, nullable, expression, *rest in await self._rows(
            "SELECT table_schema, table_name, is_nullable, generation_expression,"
            f" {COLUMNS} FROM information_schema.columns",
            order="table_schema, table_name, ordinal_position",
        ):
            name = self._name(database), self._name(table)
            column = DefinedColumn(
                table_column(tuple(rest)),
                nullable=str(nullable).upper() != "NO",
                expression=str(expression or ""),
            )
            defined.setdefault(name, []).append(column)
        return {name: tuple(columns) for name, columns in defined.items()}

    async def _unique(self) -> dict[TableName, tuple[tuple[UniquePart, ...], ...]]:
        parts: dict[TableName, dict[str, list[UniquePart]]] = {}
        for database, table, index, column, characters in await self._rows(
            "SELECT table_schema, table_name, index_name, column_name, sub_part"
            " FROM information_schema.statistics WHERE non_unique = 0",
            order="table_schema, table_name, index_name <> 'PRIMARY', index_name, seq_in_index",
        ):
            keys = parts.setdefault((self._name(database), self._name(table)), {})
            part = UniquePart("" if column is None else str(column), int(str(characters or 0)))
            keys.setdefault(str(index), []).append(part)
        return {name: tuple(map(tuple, keys.values())) for name, keys in parts.items()}

    async def _triggers(self) -> frozenset[TableName]:
        """Return the tables with triggers that run for rows: none on MySQL."""
        if not self._family.fires_triggers:
            return frozenset()
        rows = await self._rows(
            "SELECT DISTINCT event_object_schema, event_object_table"
            " FROM information_schema.triggers",
            "event_object_schema",
        )
        return frozenset((self._name(database), self._name(table)) for database, table in rows)

    async def _overlaps(self, database: str, table: str) -> bool:
        name = literals.quoted(database) + b"." + literals.quoted(table)
        try:
            rows = await self._connection.query(b"SHOW CREATE TABLE " + name)
        except ServerError:
            # It is not for this user to see.
            return True
        return "WITHOUT OVERLAPS" in str(rows[0][1]).upper()

    async def _rows(
        self, query: str, schema: str = "table_schema", *, order: str = ""
    ) -> list[Row]:
        chosen = [f"{schema} NOT IN {_OF_THE_SERVER}".encode()]
        if self._databases is not None:
            listed = b",".join(
                b"CONVERT(%b USING utf8mb4)" % literals.text(name) for name in self._databases
            )
            chosen.append(b"%b IN (%b)" % (schema.encode(), listed or b"NULL"))
        text = query.encode() + (b" AND " if " WHERE " in query else b" WHERE ")
        text += b" AND ".join(chosen)
        if order:
            text += f" ORDER BY {order}".encode()
        return await self._connection.query(text)

    def _name(self, name: object) -> str:
        return folded(str(name)) if self._fold_case else str(name)


def _may_overlap(
    columns: tuple[DefinedColumn, ...], keys: tuple[tuple[UniquePart, ...], ...]
) -> bool:
    """Tell whether a unique key has two columns that may be the ends of a period."""
    ends = {each.column.name for each in columns if _is_time(each.column.text)}
    return any(len(ends.intersection(part.column for part in key)) > 1 for key in keys)


def _is_time(text: str) -> bool:
    return text.partition("(")[0].lower() in _PERIOD_TYPES

"""Key definitions of a few tables and their foreign keys, as a target would tell them."""

from collections.abc import Iterable
from dataclasses import replace

from mtsd.apply.tables.column_fit import ColumnShape
from mtsd.apply.tables.key_definitions import (
    DefinedColumn,
    ForeignKey,
    KeyDefinitions,
    TableName,
    UniqueKeys,
    UniquePart,
)
from mtsd.apply.tables.table_columns import TableColumn
from mtsd.binlog.values.column_type import ColumnType

INT = ColumnShape(ColumnType.LONG, 4)


def column(name: str, shape: ColumnShape | None = INT) -> DefinedColumn:
    return DefinedColumn(TableColumn(name, "int", shape, "", ""), nullable=False)


KEYED = UniqueKeys("innodb", (column("id"),), ((UniquePart("id"),),))
UNKEYED = replace(KEYED, unique=())
T, U, PARENT, CHILD = ("d", "t"), ("d", "u"), ("p", "parent"), ("c", "child")
REFERS = ForeignKey(CHILD, ("id",), PARENT, ("id",))


def known(
    *foreign_keys: ForeignKey, databases: Iterable[str] = "dcpe", **others: UniqueKeys
) -> KeyDefinitions:
    tables: dict[TableName, UniqueKeys] = dict.fromkeys((T, U, PARENT, CHILD), KEYED)
    tables |= {("e", name): found for name, found in others.items()}
    return KeyDefinitions(frozenset(databases), tables, foreign_keys)


def row(number: int) -> bytes:
    return b"\0" + number.to_bytes(4, "little")

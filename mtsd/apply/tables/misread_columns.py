"""Columns of the target whose rows BINLOG applies without an error, but as other values.

Row events identify columns by position and hold the source's bytes. A server's own replica, and
BINLOG, compare types and sizes, but neither sign nor character set: -1 of an INT is 4294967295 in
an INT UNSIGNED. Columns that only the source has, at the end, are passed over (MySQL manual,
"Replication with Differing Table Definitions on Source and Replica"; measured with 9.7).
"""

from collections.abc import Iterator
from typing import Final

from mtsd.apply.tables.column_fit import INTEGERS
from mtsd.apply.tables.facts import TableFacts
from mtsd.binlog.bytes.character_sets import BINARY, character_set
from mtsd.binlog.events.table_map import TableMap
from mtsd.binlog.values.column_type import ColumnType
from mtsd.binlog.values.table_metadata import parse_optional_metadata
from mtsd.model.errors import BinlogError, NotSupportedError

_WIDER: Final = {
    "ascii": frozenset({"utf8mb3", "utf8mb4", "latin1"}), "utf8mb3": frozenset({"utf8mb4"}),
}  # fmt: skip
"""Character sets in which the bytes of another one represent the same characters."""
_INTEGER_TYPES: Final = frozenset(INTEGERS.values())


def reads_alike(characters: str, others: str) -> bool:
    """Return whether bytes of a character set are the same text in another; "" is that of bytes."""
    if not characters or not others or characters == others:
        return True
    return others in _WIDER.get(characters, ())


def misread_columns(facts: TableFacts, table: TableMap) -> tuple[str, ...]:
    """Return what is read otherwise on the target, each as words; empty if nothing is known to be.

    The source says signs and character sets (binlog_row_metadata), a MariaDB only if it is asked
    to: what it does not say is not compared.
    """
    try:
        return tuple(_misread(facts, table))
    except (BinlogError, NotSupportedError):
        # Metadata of a later version: the rows themselves are not concerned.
        return ()


def _misread(facts: TableFacts, table: TableMap) -> Iterator[str]:
    metadata = parse_optional_metadata(table)
    generated = facts.has_generated_key and not table.has_generated_key
    columns = facts.columns[1:] if generated else facts.columns
    for place, column in enumerate(columns[: len(table.column_types)]):
        unsigned = metadata.unsigned.get(place)
        if column.type in _INTEGER_TYPES and unsigned not in {None, column.unsigned}:
            signs = ("signed", "unsigned")
            yield (
                f"column {column.name!r} is {signs[bool(unsigned)]} on the source and"
                f" {signs[column.unsigned]} here"
            )
        collation = metadata.collations.get(place, BINARY)
        if column.character_set and collation != BINARY:
            characters = character_set(collation)
            if not reads_alike(characters, column.character_set):
                yield (
                    f"column {column.name!r} is in {characters} on the source and in"
                    f" {column.character_set} here"
                )
    # Hidden columns are those of functional key parts, and of hashes of a MariaDB.
    beyond = table.column_types[len(columns) + len(facts.key_parts) :]
    if beyond and not (table.mariadb and set(beyond) == {ColumnType.LONGLONG}):
        yield (
            f"the source's rows have {len(table.column_types)} columns, and the table has"
            f" {len(columns)} here: what is in the last ones is lost, unless these belong to an"
            " index on an expression"
        )

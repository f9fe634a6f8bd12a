"""Marks: rows of a DataFrame that stand for a definition which ends, brings or moves rows.

Whoever rebuilds a table from its changes has to know of it, because no row event tells:

    changes           op        table   row  statement
    INSERT … (1)      insert    t       0
    TRUNCATE t        truncate  t       -1   TRUNCATE t
    INSERT … (2)      insert    t       0

A mark has a number below 0 in its group, before the group's rows (CREATE OR REPLACE … SELECT).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from mtsd.binlog.files.range_parts import GroupPart
from mtsd.binlog.sql.changed_tables import Changed, Extent
from mtsd.binlog.sql.statement_secrets import shown
from mtsd.model.group import GroupKind
from mtsd.model.step import QueryEvent, Statement, StatementKind
from mtsd.spark.shapes.moved_rows import moved_rows
from mtsd.spark.shapes.row_columns import seq_prefix, seq_suffix
from mtsd.spark.shapes.shape import ShapeRequest

TRUNCATE: Final = "truncate"
"""All rows of a table, or of the tables of a database, have ended."""
DDL: Final = "ddl"
"""Some may have ended, or have come from elsewhere: the statement says which."""
DEFINITIONS: Final = frozenset({StatementKind.DDL, StatementKind.CREATE_SELECT})
_LONGEST: Final = 1 << 20

Wants = Callable[[str, str | None], bool]
"""Tells whether a table, or any table of a database, is wanted, however names are spelled."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A definition, and a table that it concerns: None for all of a database, or for unknown ones.

    `database` is "" if nothing is known.
    """

    op: str
    database: str
    table: str | None
    query: QueryEvent


def marks(part: GroupPart, wants: Wants) -> list[Mark]:
    """Return the marks of a part of a group, for wanted tables."""
    if part.group is not None and part.group.kind is GroupKind.ROWS:
        return []
    return [
        mark
        for step in part.steps
        if isinstance(step, Statement) and step.kind in DEFINITIONS
        for mark in _of_definition(step.query, wants)
    ]


def _of_definition(query: QueryEvent, wants: Wants) -> Iterator[Mark]:
    moved = moved_rows(query)
    if moved is None:
        return
    if moved.of.extent not in {Extent.TABLES, Extent.DATABASE}:
        yield Mark(DDL, "", None, query)
        return
    op = TRUNCATE if moved.ends_all else DDL
    for database, table in dict.fromkeys(_named(moved.of, query)):
        if wants(database, table):
            yield Mark(op, database, table, query)


def _named(changes: Changed, query: QueryEvent) -> Iterator[tuple[str, str | None]]:
    if changes.extent is Extent.DATABASE:
        yield changes.database or query.database, None
    yield from ((database or query.database, table) for database, table in changes.tables)


def mark_rows(
    marks: Sequence[Mark], part: GroupPart, file: str, request: ShapeRequest, prefix: str = ""
) -> pa.RecordBatch:
    """Return marks of one part as rows; columns are named as here, after the prefix."""
    schema = request.arrow_schema
    rows = [
        {
            "op": mark.op,
            "schema": mark.database or None,
            "table": mark.table,
            "file": file,
            "pos": part.end,
            "row": number - len(marks),
            "gtid": None if part.gtid is None else str(part.gtid),
            "commit_time": part.commit_time,
            "statement": " ".join(shown(mark.query, _LONGEST).split()),
            "seq": seq_prefix(request.epoch, file, part.end) + seq_suffix(number - len(marks)),
        }
        for number, mark in enumerate(marks)
    ]
    arrays = []
    for field in schema:
        name = field.name.removeprefix(prefix)
        known = field.name.startswith(prefix) and name in rows[0]
        values = [row[name] if known else None for row in rows]
        if name == "commit_time" and known:
            arrays.append(pa.array(values, pa.int64()).cast(field.type))
        else:
            arrays.append(pa.array(values, field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)

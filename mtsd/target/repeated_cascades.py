"""What cascades of foreign keys have not reached on the target, where changes are applied again.

In a repair (`mtsd.schedule.repair`), a row may be written, without checks, whose parent has gone
already: what comes later in the stream has been applied before. On the source, the deletion of the
parent has deleted it, too, by a cascade that the log does not tell of; here that finds no parent
any more, so that nothing cascades. So after each such change, rows that still refer to what has
gone are changed as the cascade would; what refers to these in turn is the server's to change.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from mtsd.binlog.row_image import RowImage
from mtsd.binlog.rows import DELETES, UPDATES, parse_rows_header
from mtsd.target import literals
from mtsd.target.row_sql import (
    SqlStatement,
    columns_present,
    decoder_of,
    literals_of,
    require_progress,
)
from mtsd.target.table_layout import TableLayout, at_instant
from mtsd.wire.connection import Connection

_DELETES: Final = frozenset(kind.value for kind in DELETES)
_UPDATES: Final = frozenset(kind.value for kind in UPDATES)
_CASCADE: Final = "CASCADE"
_SET_NULL: Final = "SET NULL"


@dataclass(frozen=True, slots=True)
class Cascade:
    """A foreign key of `table`, quoted, whose `columns`, quoted, refer to columns of a parent.

    The rules are as in information_schema.referential_constraints.
    """

    table: bytes
    columns: tuple[bytes, ...]
    referred: tuple[str, ...]
    delete_rule: str
    update_rule: str


async def read_cascades(connection: Connection, database: str, table: str) -> tuple[Cascade, ...]:
    """Return the foreign keys that cascade from a table. Raises ServerError, ConnectionLostError.

    Only those of tables that the user may see, which are all that it may change.
    """
    rows = await connection.query(
        b"SELECT k.constraint_schema,k.constraint_name,k.table_name,k.column_name,"
        b"k.referenced_column_name,r.delete_rule,r.update_rule"
        b" FROM information_schema.key_column_usage k"
        b" JOIN information_schema.referential_constraints r"
        b" ON r.constraint_schema=k.constraint_schema AND r.constraint_name=k.constraint_name"
        b" AND r.table_name=k.table_name"
        b" WHERE (k.referenced_table_schema,k.referenced_table_name) IN (%b)"
        b" ORDER BY 1,2,3,k.ordinal_position" % literals.tables([(database, table)])
    )
    text = [[str(value) for value in row] for row in rows]
    found = []
    for (schema, _, child), parts in groupby(text, lambda row: (row[0], row[1], row[2])):
        columns = list(parts)
        found.append(
            Cascade(
                literals.quoted(schema) + b"." + literals.quoted(child),
                tuple(literals.quoted(column[3]) for column in columns),
                tuple(column[4].lower() for column in columns),
                columns[0][5],
                columns[0][6],
            )
        )
    return tuple(found)


def cascaded(
    event: bytes, layout: TableLayout, cascades: Sequence[Cascade]
) -> Iterator[SqlStatement]:
    """Yield what a row event would have cascaded to, for after the event.

    Raises BinlogError.
    """
    is_update = event[4] in _UPDATES
    if not (is_update or event[4] in _DELETES):
        return
    by_name = {column.name.lower(): index for index, column in enumerate(layout.columns)}
    wanted = {
        cascade: [by_name.get(literals.quoted(name).lower(), -1) for name in cascade.referred]
        for cascade in cascades
        if (cascade.update_rule if is_update else cascade.delete_rule) in {_CASCADE, _SET_NULL}
    }
    if not wanted:
        return
    header = parse_rows_header(event)
    size = (header.width + 7) >> 3
    bitmaps = event[header.bitmaps_at : header.rows_at]
    shown = sorted({index for indexes in wanted.values() for index in indexes})
    decoders = [
        decoder_of(layout, columns_present(bitmap, header.width), shown)
        for bitmap in (bitmaps[:size], bitmaps[size:])
        if bitmap
    ]
    at = header.rows_at
    while at < len(event):
        start = at
        images = []
        for decoder in decoders:
            image, at = decoder.read(event, at)
            images.append(_by_column(image))
        require_progress(start, at, len(event))
        for cascade, indexes in wanted.items():
            values = [[each.get(index) for index in indexes] for each in images]
            if None in values[0] or (is_update and values[0] == values[1]):
                continue
            before = [value for value in values[0] if value is not None]
            sql = _orphaned(layout, cascade, indexes, before)
            if not is_update and cascade.delete_rule == _CASCADE:
                yield SqlStatement(b"DELETE IGNORE FROM %b%b" % (cascade.table, sql), 0, "")
                continue
            after: list[bytes | None] = [None] * len(indexes)
            if is_update and cascade.update_rule == _CASCADE:
                after = values[1]
            sets = literals.assignments(
                [
                    (column, b"NULL" if value is None else value)
                    for column, value in zip(cascade.columns, after, strict=True)
                ]
            )
            yield SqlStatement(b"UPDATE IGNORE %b SET %b%b" % (cascade.table, sets, sql), 0, "")


def _orphaned(
    layout: TableLayout, cascade: Cascade, indexes: Sequence[int], values: Sequence[bytes]
) -> bytes:
    """Return the condition for rows that refer to a parent with these values, which has gone."""
    columns = [layout.columns[index] for index in indexes]

    def equal(names: Sequence[bytes]) -> bytes:
        return b" AND ".join(
            at_instant(name, value) if column.zoned else b"%b=%b" % (name, value)
            for name, column, value in zip(names, columns, values, strict=True)
        )

    # A table that refers to itself may be read only by way of a temporary one: error 1093.
    parent = b"SELECT 1 FROM %b WHERE %b LIMIT 1" % (
        layout.name,
        equal([column.name for column in columns]),
    )
    return b" WHERE %b AND NOT EXISTS (SELECT 1 FROM (%b) AS parent)" % (
        equal(cascade.columns),
        parent,
    )


def _by_column(image: RowImage) -> dict[int, bytes | None]:
    parts = zip(image.columns, image.values, literals_of(image), strict=True)
    return {index: None if value is None else literal for index, value, literal in parts}

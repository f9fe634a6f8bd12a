"""What cascades of foreign keys have not reached on the target, where changes are applied again.

In a repair (`mtsd.schedule.done.repair`), a row may be written, without checks, whose parent has
gone already: what comes later in the stream has been applied before. On the source, the deletion of
the parent has deleted it, too, by a cascade that the log does not tell of; here that finds no
parent any more, so that nothing cascades. So after each such change, rows that still refer to what
has gone are changed as the cascade would; what refers to these in turn is the server's to change.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from mtsd.apply.rows.image_reading import columns_present, decoder_of, literals_of, require_progress
from mtsd.apply.rows.row_sql import SqlStatement
from mtsd.apply.sql import literals
from mtsd.apply.tables.table_layout import TableLayout, at_instant
from mtsd.binlog.events.rows import DELETES, UPDATES, parse_rows_header
from mtsd.binlog.values.row_image import RowImage
from mtsd.model.names import folded
from mtsd.wire.connection import Connection
from mtsd.wire.understood import understood

_CASCADE: Final = "CASCADE"
_SET_NULL: Final = "SET NULL"
_RULES: Final = (
    b"SELECT unique_constraint_schema,referenced_table_name,constraint_schema,table_name,"
    b"constraint_name,delete_rule,update_rule FROM information_schema.referential_constraints"
    b" WHERE update_rule NOT IN ('NO ACTION','RESTRICT')"
    b" OR delete_rule NOT IN ('NO ACTION','RESTRICT')"
)
_COLUMNS: Final = (
    b"SELECT column_name,referenced_column_name FROM information_schema.key_column_usage"
    b" WHERE table_schema=%b AND table_name=%b AND constraint_name=%b ORDER BY ordinal_position"
)
_KEPT: Final = (
    b"SELECT column_name FROM information_schema.columns"
    b" WHERE table_schema=%b AND table_name=%b AND UPPER(extra) LIKE '%%ON UPDATE%%'"
)


@dataclass(frozen=True, slots=True)
class Cascade:
    """A foreign key of `table`, quoted, whose `columns`, quoted, refer to columns of a parent.

    The rules are as in information_schema.referential_constraints. `kept` are columns, quoted, that
    an UPDATE would change by itself, which a cascade does not.
    """

    table: bytes
    columns: tuple[bytes, ...]
    referred: tuple[str, ...]
    delete_rule: str
    update_rule: str
    kept: tuple[bytes, ...] = ()


class _Rule(NamedTuple):
    """A foreign key that cascades."""

    schema: str
    table: str
    name: str
    delete_rule: str
    update_rule: str


class KnownCascades:
    """The foreign keys that cascade from tables, as far as one session has asked for them.

    Only a repair asks.

    Tables are named as in a statement, quoted. With `fold_case`, the target compares their names in
    lower case.
    """

    __slots__ = ("_connection", "_fold_case", "_forgotten", "_found", "_rules")

    def __init__(self, connection: Connection, *, fold_case: bool) -> None:
        self._connection = connection
        self._fold_case = fold_case
        self._rules: dict[bytes, list[_Rule]] | None = None
        """By the parent. All of them: a MariaDB finds none without reading every table."""
        self._found: dict[bytes, tuple[Cascade, ...]] = {}
        self._forgotten = 0
        """How often they were forgotten."""

    def forget(self) -> None:
        """Forget all of them: a definition may have changed some."""
        self._rules = None
        self._found.clear()
        self._forgotten += 1

    async def of(self, table: bytes) -> tuple[Cascade, ...]:
        """Return the foreign keys that cascade from a table.

        Only those of tables that the user may see, which are all that it may change. Nothing may be
        in flight on the session. Raises ServerError, ConnectionLostError.
        """
        known = self._found.get(table)
        if known is not None:
            return known
        forgotten = self._forgotten
        rules = self._rules
        if rules is None:
            rules = await self._read_rules()
        cascades = [await self._cascade(rule) for rule in rules.get(self._compared(table), ())]
        known = tuple(cascades)
        # A definition of another worker, which has nothing to do with this table, may have come.
        if forgotten == self._forgotten:
            self._rules = rules
            self._found[table] = known
        return known

    def _compared(self, table: bytes) -> bytes:
        if not self._fold_case:
            return table
        return folded(table.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")

    @understood("target")
    async def _read_rules(self) -> dict[bytes, list[_Rule]]:
        rules: defaultdict[bytes, list[_Rule]] = defaultdict(list)
        for row in await self._connection.query(_RULES):
            database, table, *rule = map(str, row)
            parent = literals.quoted(database) + b"." + literals.quoted(table)
            rules[self._compared(parent)].append(_Rule(*rule))
        return rules

    @understood("target")
    async def _cascade(self, rule: _Rule) -> Cascade:
        schema, table, name = map(literals.utf8, (rule.schema, rule.table, rule.name))
        rows = await self._connection.query(_COLUMNS % (schema, table, name))
        columns = [str(column) for column, _ in rows]
        of_key = set(map(str.lower, columns))
        kept = [str(column) for (column,) in await self._connection.query(_KEPT % (schema, table))]
        return Cascade(
            literals.quoted(rule.schema) + b"." + literals.quoted(rule.table),
            tuple(map(literals.quoted, columns)),
            tuple(str(referred) for _, referred in rows),
            rule.delete_rule,
            rule.update_rule,
            tuple(literals.quoted(column) for column in kept if column.lower() not in of_key),
        )


def cascaded(
    event: bytes, layout: TableLayout, cascades: Sequence[Cascade]
) -> Iterator[SqlStatement]:
    """Yield what a row event would have cascaded to, for after the event.

    Raises BinlogError.
    """
    is_update = event[4] in UPDATES
    if not (is_update or event[4] in DELETES):
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
            before = [value for index in indexes if (value := images[0].get(index)) is not None]
            if len(before) < len(indexes):
                continue
            after: list[bytes | None] = [None] * len(indexes)
            if is_update:
                # A column that is absent (binlog_row_image) has not changed.
                now = [images[1].get(*each) for each in zip(indexes, before, strict=True)]
                if now == before:
                    continue
                if cascade.update_rule == _CASCADE:
                    after = now
            sql = _orphaned(layout, cascade, indexes, before)
            if not is_update and cascade.delete_rule == _CASCADE:
                yield SqlStatement(b"DELETE IGNORE FROM %b%b" % (cascade.table, sql), 0, "")
                continue
            sets = literals.assignments(
                [
                    *(
                        (column, b"NULL" if value is None else value)
                        for column, value in zip(cascade.columns, after, strict=True)
                    ),
                    *((column, column) for column in cascade.kept),
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

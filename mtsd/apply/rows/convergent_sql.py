"""Row events as SQL that may be applied twice, or in another order.

Each change of a row says what the row is afterwards, whatever was there before. So changes that
have been applied already can be applied once more in their order, and leave what the last of them
says. That takes whole rows (binlog_row_image = FULL), and a key to find them by; where a table has
none, a change is as `RowSql` makes it, and must not be repeated.

With a column that grows with each change of a row, the newer row wins whichever comes first: a row
of which the target has a greater value stays. NULL is less than every value, and of two equal
values the one that is applied wins. That needs no order, except that nothing is left of a deleted
row to be compared: deletes have to come after what is before them, and leave newer rows.
"""

import enum
from collections.abc import Iterator, Sequence
from typing import Final

from mtsd.apply.rows.image_reading import (
    decoder_of,
    in_key_order,
    key_of,
    literals_of,
    require_progress,
)
from mtsd.apply.rows.row_sql import STRICT, RowSql, SqlStatement, condition
from mtsd.apply.session.family import MYSQL, TargetFamily
from mtsd.apply.sql import literals
from mtsd.apply.tables.table_layout import TableLayout
from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.values.column_type import ColumnType
from mtsd.binlog.values.row_image import RowImage
from mtsd.model.errors import NotSupportedError

_PARTIAL_UPDATE: Final = EventType.PARTIAL_UPDATE_ROWS_EVENT.value
_COMPARED: Final = frozenset({
    ColumnType.TINY, ColumnType.SHORT, ColumnType.INT24, ColumnType.LONG, ColumnType.LONGLONG,
    ColumnType.FLOAT, ColumnType.DOUBLE, ColumnType.NEWDECIMAL, ColumnType.YEAR, ColumnType.DATE,
    ColumnType.TIMESTAMP, ColumnType.TIMESTAMP2, ColumnType.DATETIME, ColumnType.DATETIME2,
})  # fmt: skip
"""Numbers and points in time: what they are compared by does not depend on a collation."""


class ChangeMode(enum.Enum):
    """How changes of rows are applied as SQL."""

    STRICT = "strict"
    IDEMPOTENT = "idempotent"
    """A row that exists already, or does not exist, is no error."""
    CONVERGENT = "convergent"
    """The same, and changes can be applied twice in their order."""


class ConvergentSql(RowSql):
    """Makes the statements of row events; see `RowSql`.

    `newer` is the name of the column by which the newer row wins; a table that lacks it, and "",
    do without. `forced`, for use without checks of foreign keys: other rows that have a unique
    value of the changed row are deleted, or the change is left out where the newer row wins.
    `repairs`: each row that was changed will be what the last of the changes says, so a change of
    one that is missing inserts it.
    """

    def __init__(
        self,
        statement_bytes: int,
        target: TargetFamily = MYSQL,
        *,
        newer: str = "",
        forced: bool = False,
        repairs: bool = False,
    ) -> None:
        super().__init__(statement_bytes, target, idempotent=True)
        self._newer = literals.quoted(newer).lower() if newer else b""
        self._forced = forced
        self._repairs = repairs
        if not forced:
            self._insert, self._ignore = b"INSERT", b""

    def _insert_into(self, layout: TableLayout) -> bytes:
        if self._forced and (not layout.keys or self._newer_of(layout) is not None):
            # What is deleted would not come again, or might be the newer row.
            return b"INSERT IGNORE"
        return self._insert

    def _is_lenient(self, layout: TableLayout, image: RowImage) -> bool:
        # The row that is there already may have an ENUM that is none of its members.
        return super()._is_lenient(layout, image) or (
            self._newer_of(layout) is not None
            and any(each.type is ColumnType.ENUM for each in layout.formats)
        )

    def _on_duplicate(self, layout: TableLayout, written: Sequence[int]) -> bytes:
        """Return what changes the row that is there already."""
        if not layout.keys:
            return b""
        _require_whole(layout, written)
        newer = self._newer_of(layout)
        if self._forced and newer is None:
            return b""
        names = [layout.columns[index].name for index in written]
        if newer is None:
            changes = [b"%b=VALUES(%b)" % (name, name) for name in names]
        else:
            # Each assignment sees those before it, so the column that decides comes last.
            by = layout.columns[newer].name
            names = [*(name for name in names if name != by), by]
            is_newer = b"(%b IS NULL OR %b<=VALUES(%b))" % (by, by, by)
            # Another row may have a unique value of this one, and no order to it by that column.
            key = (layout.columns[index].name for index in layout.keys[0])
            same = b" AND ".join(b"%b<=>VALUES(%b)" % (name, name) for name in key)
            if self._forced:
                first = other = b"(%b) AND " % same
            else:
                # Out of range (error 1690) if it is another row: there is no plainer way to fail.
                first, other = b"IF(%b,1,~0+(NOT(%b))) AND " % (same, same), b""
            changes = [
                b"%b=IF(%b%b,VALUES(%b),%b)" % (name, other if at else first, is_newer, name, name)
                for at, name in enumerate(names)
            ]
        changes += [b"%b=%b" % (name, name) for name in layout.kept if name not in names]
        return b" ON DUPLICATE KEY UPDATE " + b",".join(changes)

    def _updates(
        self,
        event: bytes,
        at: int,
        layout: TableLayout,
        first: Sequence[int],
        second: Sequence[int],
    ) -> Iterator[SqlStatement]:
        key = key_of(layout, first)
        if key is None:
            yield from super()._updates(event, at, layout, first, second)
            return
        if event[4] == _PARTIAL_UPDATE:
            raise NotSupportedError(_PARTIAL_DOCUMENTS)
        written = [index for index in second if layout.columns[index].written]
        tail = self._on_duplicate(layout, written)
        newer = self._newer_of(layout)
        before_decoder = decoder_of(layout, first, key)
        after_decoder = decoder_of(layout, second, written)
        end = len(event)
        while at < end:
            start = at
            before, at = before_decoder.read(event, at)
            after, at = after_decoder.read(event, at)
            require_progress(start, at, end)
            values = literals_of(after)
            names = [layout.columns[index].name for index in after.columns]
            first_word, hint = self._lenient if self._is_lenient(layout, after) else STRICT
            insert = b"%b%b%b INTO %b (%b) VALUES " % (
                first_word, self._insert_into(layout), hint, layout.name, b",".join(names),
            )  # fmt: skip
            row = b"(%b)" % b",".join(values)
            same_key = in_key_order(before, key).values == in_key_order(after, key).values
            if same_key and (newer is not None or self._repairs):
                yield from self._collected(insert, tail, row, layout)
                continue
            yield from self.rest()
            where = condition(layout, before, exact=False)
            if newer is not None:
                where += self._is_not_newer(layout, newer, after)
            sets = [b"%b=%b" % pair for pair in zip(names, values, strict=True)]
            sets += [b"%b=%b" % (name, name) for name in layout.kept if name not in names]
            ignore = self._ignore if same_key else b" IGNORE"
            yield SqlStatement(
                b"%bUPDATE%b%b %b SET %b WHERE %b"
                % (first_word, hint, ignore, layout.name, b",".join(sets), where),
                0,
                layout.label,
            )
            if not same_key:
                # It may have been there with both keys, or with neither.
                yield SqlStatement(insert + row + tail, 0, layout.label)
                now = in_key_order(after, key)
                yield SqlStatement(
                    b"DELETE FROM %b WHERE %b AND NOT (%b)"
                    % (layout.name, where, condition(layout, now, exact=False)),
                    0,
                    layout.label,
                )

    def _deletes(
        self, event: bytes, at: int, layout: TableLayout, present: Sequence[int]
    ) -> Iterator[SqlStatement]:
        key = key_of(layout, present)
        newer = self._newer_of(layout)
        if key is None or newer is None:
            yield from super()._deletes(event, at, layout, present)
            return
        if newer not in present:
            raise NotSupportedError(_PARTIAL_ROWS)
        yield from self.rest()
        decoder = decoder_of(layout, present, [*key, newer])
        end = len(event)
        while at < end:
            start = at
            image, at = decoder.read(event, at)
            require_progress(start, at, end)
            where = condition(layout, in_key_order(image, key), exact=False)
            where += self._is_not_newer(layout, newer, image)
            yield SqlStatement(b"DELETE FROM %b WHERE %b" % (layout.name, where), 0, layout.label)

    def _newer_of(self, layout: TableLayout) -> int | None:
        """Return the index of the column by which the newer row wins, if the table has it."""
        if not self._newer:
            return None
        for index, column in enumerate(layout.columns):
            if column.name.lower() == self._newer:
                if layout.formats[index].type not in _COMPARED or not column.written:
                    raise NotSupportedError(
                        f"column {column.name.decode('utf-8', 'replace')}, by which the newer"
                        " row is to win (replica.newer_row_column), is neither a number nor a time,"
                        " or is generated"
                    )
                return index
        return None

    def _is_not_newer(self, layout: TableLayout, newer: int, image: RowImage) -> bytes:
        """Return the condition that the target's row is not newer than an image."""
        name = layout.columns[newer].name
        value = image.values[image.columns.index(newer)]
        if value is None:
            return b" AND %b IS NULL" % name
        (literal,) = literals_of(RowImage((newer,), (value,)))
        return b" AND (%b IS NULL OR %b<=%b)" % (name, name, literal)


def _require_whole(layout: TableLayout, written: Sequence[int]) -> None:
    """Raise NotSupportedError if an image lacks columns, which would stay what they are."""
    lacks = {index for index, column in enumerate(layout.columns) if column.written}
    if not lacks.issubset(written):
        raise NotSupportedError(_PARTIAL_ROWS)


_PARTIAL_ROWS: Final = (
    "the source has not logged whole rows, which is needed to apply them twice, or in another order"
    ' (consistency = "eventual"): set binlog_row_image = FULL there'
)
_PARTIAL_DOCUMENTS: Final = (
    "the source has logged changes of JSON documents in parts, and whole ones are needed to apply"
    ' them twice, or in another order (consistency = "eventual"): set binlog_row_value_options to'
    " '' there"
)

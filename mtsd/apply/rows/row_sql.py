"""Row events as SQL statements, with the number of rows that each of them has to find.

Consecutive rows of one operation, table and set of columns become one INSERT or DELETE; an UPDATE
is a statement per row, unless it is joined (`mtsd.apply.rows.keyed_updates`). A row is found by the
primary key, else by another unique key without NULL, else by all columns that the source has
logged. Where a key finds it, only the columns that change are named.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from mtsd.apply.rows.heap_sql import heap_changes
from mtsd.apply.rows.image_reading import (
    NULL,
    columns_present,
    converters_of,
    decoder_of,
    in_key_order,
    key_of,
    literal,
    literals_of,
    partial_image,
    require_progress,
    shown,
)
from mtsd.apply.rows.keyed_updates import KeyedUpdate, KeyedUpdates, are_listed, joined_update
from mtsd.apply.session.family import MYSQL, TargetFamily
from mtsd.apply.sql.json_changes import changed_document
from mtsd.apply.tables.table_layout import Comparison, TableLayout, at_instant
from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.events.rows import (
    DUMMY_TABLE_ID,
    INSERT_KINDS,
    UPDATE_KINDS,
    is_row_of_no_bytes,
    parse_rows_header,
)
from mtsd.binlog.values.column_type import ColumnType
from mtsd.binlog.values.row_image import ChangeDecoder, RowImage
from mtsd.model.errors import BinlogError

_PARTIAL_UPDATE: Final = EventType.PARTIAL_UPDATE_ROWS_EVENT.value
STRICT: Final = (b"", b"")
"""In place of what is lenient in the target's family."""
_ANY_NUMBER: Final = 1 << 32
_MAX_ALTERNATIVES: Final = 250
"""Rows of a DELETE with a condition for each: servers take the square of the time for more."""


class SqlStatement(NamedTuple):
    """A statement, how many rows it has to find, and the table's name for messages."""

    sql: bytes
    rows: int
    table: str


class RowSql:
    """Makes the statements of row events; each holds at most about `statement_bytes`.

    `target`: the family of servers that they are for. `idempotent`: rows that exist already are
    replaced. With `joins`, many updates are one statement, too, where nothing can see it.
    """

    def __init__(
        self,
        statement_bytes: int,
        target: TargetFamily = MYSQL,
        *,
        idempotent: bool = False,
        joins: bool = False,
    ) -> None:
        self._limit = statement_bytes
        self._joins = joins
        self._lenient = target.lenient
        self._insert = b"REPLACE" if idempotent else b"INSERT"
        self._ignore = b" IGNORE" if idempotent else b""
        self._names_all = idempotent
        """Whether the row may have other values than before on the source."""
        self._head = b""
        self._between = b","
        self._tail = b""
        self._rows: list[bytes] = []
        self._size = 0
        self._table = ""

    def statements(self, event: bytes, layout: TableLayout) -> Iterator[SqlStatement]:
        """Yield the statements that a row event completes; `rest` has the last one.

        Raises BinlogError, NotSupportedError.
        """
        header = parse_rows_header(event)
        if header.table_id == DUMMY_TABLE_ID and not header.width:
            return
        if header.width != len(layout.columns):
            raise BinlogError(
                f"row event: {header.width} columns, and {len(layout.columns)} in the table map of"
                f" {layout.label}"
            )
        size = (header.width + 7) >> 3
        first = columns_present(event[header.bitmaps_at : header.bitmaps_at + size], header.width)
        kind = event[4]
        at = header.rows_at
        if kind in UPDATE_KINDS:
            second = columns_present(event[header.bitmaps_at + size : header.rows_at], header.width)
            yield from self._updates(event, at, layout, first, second)
        elif kind in INSERT_KINDS:
            if is_row_of_no_bytes(event, header):
                yield from self._insert_of_defaults(layout)
            yield from self._inserts(event, at, layout, first)
        else:
            yield from self._deletes(event, at, layout, first)

    def rest(self) -> Iterator[SqlStatement]:
        """Yield the statement that collects rows, if there is one."""
        if self._rows:
            sql = self._head + self._between.join(self._rows) + self._tail
            yield SqlStatement(sql, len(self._rows), self._table)
            self._rows = []
            self._size = 0

    def _inserts(
        self, event: bytes, at: int, layout: TableLayout, present: Sequence[int]
    ) -> Iterator[SqlStatement]:
        written = [index for index in present if layout.columns[index].written]
        tail = self._on_duplicate(layout, written)
        decoder = decoder_of(layout, present, written)
        end = len(event)
        while at < end:
            start = at
            image, at = decoder.read(event, at)
            require_progress(start, at, end)
            row = b"(%b)" % b",".join(literals_of(image))
            yield from self._collected(self._insert_of(layout, image), tail, row, layout)

    def _insert_of_defaults(self, layout: TableLayout) -> Iterator[SqlStatement]:
        head = self._insert_of(layout, RowImage((), ()))
        yield from self._collected(head, self._on_duplicate(layout, ()), b"()", layout)

    def _insert_of(self, layout: TableLayout, image: RowImage) -> bytes:
        """Return what an INSERT of such images begins with."""
        before, hint = self._lenient if self._is_lenient(layout, image) else STRICT
        names = b",".join([layout.columns[index].name for index in image.columns])
        return b"%b%b%b INTO %b (%b) VALUES " % (
            before, self._insert_into(layout), hint, layout.name, names,
        )  # fmt: skip

    def _insert_into(self, layout: TableLayout) -> bytes:
        """Return the word, or words, that an INSERT into this table begins with."""
        del layout
        return self._insert

    def _is_lenient(self, layout: TableLayout, image: RowImage) -> bool:
        """Return whether an INSERT of this image needs a sql_mode that accepts every value."""
        return has_no_member(layout, image)

    def _on_duplicate(self, layout: TableLayout, written: Sequence[int]) -> bytes:
        """Return what an INSERT of these columns ends with."""
        del layout, written
        return b""

    def _deletes(
        self, event: bytes, at: int, layout: TableLayout, present: Sequence[int]
    ) -> Iterator[SqlStatement]:
        key = key_of(layout, present)
        decoder = decoder_of(layout, present, shown(layout, present) if key is None else key)
        end = len(event)
        head, between, most = b"", b",", _ANY_NUMBER
        in_rows = False
        if key is None:
            yield from self.rest()
        else:
            columns = [layout.columns[index] for index in key]
            in_rows = are_listed(columns)
            head = b"DELETE FROM %b WHERE (" % layout.name
            if in_rows:
                left = b",".join(each.name for each in columns)
                head += b"%b) IN (" % left
            else:
                between, most = b" OR ", _MAX_ALTERNATIVES
        without_key: list[RowImage] = []
        while at < end:
            start = at
            image, at = decoder.read(event, at)
            require_progress(start, at, end)
            if key is None:
                without_key.append(image)
                continue
            image = in_key_order(image, key)
            row = (
                b"(%b)" % b",".join(literals_of(image))
                if in_rows
                else condition(layout, image, exact=False)
            )
            yield from self._collected(head, b")", row, layout, between, most)
        for found in self._left_by_heap(layout, without_key, []):
            if isinstance(found, SqlStatement):
                yield found
                continue
            where = condition(layout, without_key[found], exact=True)
            one = b"DELETE FROM %b WHERE %b LIMIT 1" % (layout.name, where)
            yield SqlStatement(one, 1, layout.label)

    def _left_by_heap(
        self, layout: TableLayout, before: Sequence[RowImage], after: Sequence[RowImage]
    ) -> Iterator[SqlStatement | int]:
        """Yield statements for many rows of a heap, and the places of all other rows."""
        left = dict.fromkeys(range(len(before)))
        if self._joins and layout.heap:
            for change in heap_changes(layout, before, after, self._limit):
                yield SqlStatement(change.sql, len(change.places), layout.label)
                for place in change.places:
                    del left[place]
        yield from left

    def _updates(
        self,
        event: bytes,
        at: int,
        layout: TableLayout,
        first: Sequence[int],
        second: Sequence[int],
    ) -> Iterator[SqlStatement]:
        yield from self.rest()
        key = key_of(layout, first)
        written = [index for index in second if layout.columns[index].written]
        is_partial = event[4] == _PARTIAL_UPDATE
        if key is not None and not (is_partial or layout.computed or self._names_all):
            yield from self._keyed_updates(event, at, layout, (first, second, written), key)
            return
        before_decoder = decoder_of(layout, first, shown(layout, first) if key is None else key)
        after_decoder = decoder_of(layout, second, written)
        is_heap = self._joins and layout.heap and not (is_partial or _kept(layout, written))
        of_heap: list[tuple[RowImage, RowImage]] = []
        end = len(event)
        while at < end:
            start = at
            before, middle = before_decoder.read(event, at)
            if is_partial:
                after, at = partial_image(event, middle, layout, second, written)
            else:
                after, at = after_decoder.read(event, middle)
            require_progress(start, at, end)
            if is_heap and not has_no_member(layout, after):
                of_heap.append((before, after))
                continue
            yield self._update(layout, before, after, key)
        images = [each[0] for each in of_heap], [each[1] for each in of_heap]
        for left in self._left_by_heap(layout, *images):
            if isinstance(left, SqlStatement):
                yield left
            else:
                yield self._update(layout, *of_heap[left], key)

    def _keyed_updates(
        self,
        event: bytes,
        at: int,
        layout: TableLayout,
        columns: tuple[Sequence[int], Sequence[int], Sequence[int]],
        key: tuple[int, ...],
    ) -> Iterator[SqlStatement]:
        """Yield updates of what changes in rows that a key finds; see `KeyedUpdates`.

        `columns` are those before, those after, and those that are written.
        """
        first, second, written = columns
        decoder = ChangeDecoder(layout.formats, first, second, converters_of(layout, written))
        updates = KeyedUpdates(layout, key, self._limit)
        end = len(event)
        while at < end:
            start = at
            row = decoder.read(event, at)
            at = row.end
            require_progress(start, at, end)
            values = [
                None if (raw := row.before[index]) is None else layout.columns[index].make(raw)
                for index in key
            ]
            update = KeyedUpdate(RowImage(key, tuple(values)), row.changed)
            if self._joins and updates.accepts(update) and not has_no_member(layout, row.changed):
                if not updates.add(update):
                    yield from self._taken(updates, layout)
                    updates.add(update)
                continue
            yield from self._taken(updates, layout)
            yield self._update(layout, update.key, update.after, key)
        yield from self._taken(updates, layout)

    def _taken(self, updates: KeyedUpdates, layout: TableLayout) -> Iterator[SqlStatement]:
        for alike in updates.take():
            if len(alike) == 1:
                yield self._update(layout, alike[0].key, alike[0].after, alike[0].key.columns)
                continue
            kept = _kept(layout, alike[0].after.columns)
            yield SqlStatement(joined_update(layout, alike, kept), len(alike), layout.label)

    def _update(
        self,
        layout: TableLayout,
        before: RowImage,
        after: RowImage,
        key: tuple[int, ...] | None,
    ) -> SqlStatement:
        where = condition(layout, before, exact=key is None)
        changes = b",".join(
            b"%b=%b" % (layout.columns[index].name, _changed(layout, index, value))
            for index, value in zip(after.columns, after.values, strict=True)
            if value != ()
        )
        kept = _kept(layout, after.columns)
        if not (changes or kept):
            # An UPDATE has to change something: the row only has to be there.
            kept = [_first_written(layout)]
        same = (b"%b=%b" % (name, name) for name in kept)
        changes = b",".join([changes, *same] if changes else same)
        first_word, hint = self._lenient if has_no_member(layout, after) else STRICT
        limit = b" LIMIT 1" if key is None else b""
        sql = b"%bUPDATE%b%b %b SET %b WHERE %b%b" % (
            first_word, hint, self._ignore, layout.name, changes, where, limit
        )  # fmt: skip
        return SqlStatement(sql, 1, layout.label)

    def _collected(
        self,
        head: bytes,
        tail: bytes,
        row: bytes,
        layout: TableLayout,
        between: bytes = b",",
        most: int = _ANY_NUMBER,
    ) -> Iterator[SqlStatement]:
        """Collect a row, of `most` in a statement; yield the statement that is complete without it.

        A statement is its head, its rows with something between them, and its tail.
        """
        if self._rows and (
            head != self._head
            or tail != self._tail
            or self._size + len(row) > self._limit
            or len(self._rows) >= most
        ):
            yield from self.rest()
        self._head, self._between, self._tail = head, between, tail
        self._table = layout.label
        self._rows.append(row)
        self._size += len(row) + 1


def _kept(layout: TableLayout, written: Sequence[int]) -> list[bytes]:
    """Return the columns that the target would change by itself, and is not to."""
    names = {layout.columns[index].name for index in written}
    return [name for name in layout.kept if name not in names]


def _first_written(layout: TableLayout) -> bytes:
    """Return a column that a statement may set; not one that the target generates."""
    return next((each.name for each in layout.columns if each.written), layout.columns[0].name)


def condition(layout: TableLayout, image: RowImage, *, exact: bool) -> bytes:
    """Return the condition for the row; `exact`: text is compared by its bytes."""
    parts: list[bytes] = []
    for index, value in zip(image.columns, image.values, strict=True):
        column = layout.columns[index]
        if value is None:
            parts.append(b"%b IS NULL" % column.name)
        elif column.zoned:
            parts.append(at_instant(column.name, literal(value)))
        else:
            compares = column.compares if exact else Comparison(column.name + b"=")
            text = literal(value)
            if compares.bare:
                text = text.rpartition(b" ")[2]
            parts.append(compares.before + text + compares.after)
    return b" AND ".join(parts)


def has_no_member(layout: TableLayout, image: RowImage) -> bool:
    """Return whether an ENUM is none of its members."""
    return any(
        value == b"0" and layout.formats[index].type is ColumnType.ENUM
        for index, value in zip(image.columns, image.values, strict=True)
    )


def _changed(layout: TableLayout, index: int, value: object) -> bytes:
    if value is None:
        return NULL
    if not isinstance(value, tuple):
        return literal(value)
    column = layout.columns[index]
    return changed_document(column.name, value, as_text=column.json_as_text)

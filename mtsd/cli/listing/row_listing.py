"""The rows of row events, listed below their events."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from mtsd.binlog.bytes.header import HEADER_SIZE
from mtsd.binlog.events.gtid_event import GtidEvent
from mtsd.binlog.events.rows import DUMMY_TABLE_ID, INSERT_KINDS, STMT_END, UPDATE_KINDS, RowsHeader
from mtsd.binlog.events.table_map import TableMap
from mtsd.binlog.values.row_image import RowDecoder, RowImage
from mtsd.cli.listing.event_listing import EventLine
from mtsd.cli.listing.shown_values import (
    Shown,
    Unsure,
    as_json,
    as_text,
    changes_of_document,
    named,
    show_of,
)
from mtsd.cli.output import json_of
from mtsd.model.errors import BinlogError, NotSupportedError

_MAX_TABLES: Final = 1024

Image = tuple[tuple[str, Shown], ...]
"""The columns of a row that are in the log, by name, and their values."""


@dataclass(frozen=True, slots=True)
class ListedRow:
    """One row of a row event: an insert has nothing before, a delete nothing after.

    `line` is its event's. `number` counts the rows of the event, or of the whole payload that it is
    in, from 0; `offset` is where that ends in the file.
    """

    line: EventLine
    offset: int
    number: int
    gtid: str | None
    operation: str
    table: TableMap
    before: Image | None
    after: Image | None

    def text(self) -> Iterator[str]:
        """Yield lines for people, one for each image."""
        head = f"    {self.operation} {named(self.table.database)}.{named(self.table.table)}"
        first, *more = (image for image in (self.before, self.after) if image is not None)
        yield f"{head} {_image_text(first)}"
        for image in more:
            yield f"{'to':>{len(head)}} {_image_text(image)}"

    def as_json(self) -> str:
        """Return an object, on one line."""
        head = _json_head(self.line, self.offset, self.number, self.gtid, self.operation)
        names = {"schema": self.table.database, "table": self.table.table}
        return (
            f'{json_of(head | names)[:-1]}, "before": {_image_json(self.before)},'
            f' "after": {_image_json(self.after)}}}'
        )


@dataclass(frozen=True, slots=True)
class UndecodedRows:
    """Rows that cannot be told apart: all of an event's, or what is left of them."""

    line: EventLine
    offset: int
    number: int
    gtid: str | None
    operation: str
    raw: bytes
    note: str

    def text(self) -> Iterator[str]:
        """Yield the line for people."""
        yield f"    {self.operation}, rows not decoded: {as_text(Unsure(self.raw, self.note))}"

    def as_json(self) -> str:
        """Return an object, on one line."""
        head = _json_head(self.line, self.offset, self.number, self.gtid, self.operation)
        return json_of(head | {"hex": self.raw.hex(), "note": self.note})


class RowListing:
    """The rows of one file: it remembers the table maps."""

    def __init__(self) -> None:
        self._maps: dict[int, TableMap] = {}
        """Those of the statement that is being read, by table id."""
        self._tables: dict[bytes, _TableRows] = {}
        """By the body of the table map."""
        self._bodies: dict[int, bytes] = {}
        self._gtid: str | None = None
        self._offset = 0
        self._number = 0

    def below(self, line: EventLine) -> Iterator[ListedRow | UndecodedRows]:
        """Yield what is listed below an event: the rows, if it is a row event."""
        if not line.inner:
            self._offset = line.offset
            self._number = 0
        match line.decoded:
            case GtidEvent(gtid=gtid):
                self._gtid = None if gtid is None else str(gtid)
            case TableMap() as table:
                self._maps[table.table_id] = table
                self._bodies[table.table_id] = line.event[HEADER_SIZE:]
            case RowsHeader() as header:
                yield from self._rows(line, header)
                if header.flags & STMT_END:
                    self._maps.clear()
                    self._bodies.clear()
            case _:
                pass

    def _rows(self, line: EventLine, header: RowsHeader) -> Iterator[ListedRow | UndecodedRows]:
        if header.table_id == DUMMY_TABLE_ID and not header.width:
            return
        operation = _operation(line.event[4])
        at = header.rows_at
        try:
            table = self._table(header.table_id)
            for before, after, end in table.rows(line.event, header):
                yield ListedRow(
                    line, self._offset, self._number, self._gtid, operation,
                    table.table, before, after,
                )  # fmt: skip
                at = end
                self._number += 1
        except (BinlogError, NotSupportedError) as error:
            yield UndecodedRows(
                line, self._offset, self._number, self._gtid, operation,
                line.event[at:], str(error),
            )  # fmt: skip

    def _table(self, table_id: int) -> "_TableRows":
        table = self._maps.get(table_id)
        if table is None:
            raise BinlogError(f"there is no table map of table id {table_id} before them")
        body = self._bodies[table_id]
        known = self._tables.get(body)
        if known is None:
            if len(self._tables) >= _MAX_TABLES:
                self._tables.clear()
            known = self._tables[body] = _TableRows(table)
        return known


class _TableRows:
    """Reads the row events of one table map. Raises BinlogError, NotSupportedError."""

    def __init__(self, table: TableMap) -> None:
        self.table = table
        self._decoder = RowDecoder(table, raw=True)
        self._columns = tuple(
            (column.name or f"@{index + 1}", show_of(column))
            for index, column in enumerate(self._decoder.formats)
        )

    def rows(
        self, event: bytes, header: RowsHeader
    ) -> Iterator[tuple[Image | None, Image | None, int]]:
        """Yield each row's images before and after, and where it ends in the event."""
        for before, after, diffs, end in self._decoder.rows(event, header):
            yield self._shown(before), self._shown(after, diffs), end

    def _shown(self, image: RowImage | None, diffs: Collection[int] = ()) -> Image | None:
        if image is None:
            return None
        values: list[tuple[str, Shown]] = []
        for index, raw in zip(image.columns, image.values, strict=True):
            name, show = self._columns[index]
            if index in diffs:
                show = changes_of_document
            values.append((name, show(raw) if isinstance(raw, bytes) else None))
        return tuple(values)


def _operation(kind: int) -> str:
    if kind in UPDATE_KINDS:
        return "update"
    return "insert" if kind in INSERT_KINDS else "delete"


def _image_text(image: Image) -> str:
    return f"({', '.join(f'{named(name)} = {as_text(value)}' for name, value in image)})"


def _image_json(image: Image | None) -> str:
    if image is None:
        return "null"
    return f"{{{', '.join(f'{json_of(name)}: {as_json(value)}' for name, value in image)}}}"


def _json_head(
    line: EventLine, offset: int, number: int, gtid: str | None, operation: str
) -> dict[str, object]:
    return {
        "file": line.file,
        "pos": offset,
        "type": "row",
        "row": number,
        "gtid": gtid,
        "op": operation,
    }

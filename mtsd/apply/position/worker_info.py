"""The table slave_worker_info (WL#2775, WL#5599): one row per worker, and how it is written.

A worker's row is sent to the server in one of two ways: as an UPDATE statement, or as a row event
that follows the events of its groups in the same BINLOG statement, which the server neither parses
nor answers separately. The row event finds the row by `Token`, which the last commit of each packet
changes: it fails if the previous packet, possibly still unanswered, has failed.

Row event, UPDATE of version 2, little-endian: table id u48, flags u16, size of extra data u16 (its
own 2 bytes only), number of columns, a bitmap of the columns in the before image and one for the
after image, then for each image the null bits of its columns and their values (MySQL documentation,
`mysql::binlog::event::Rows_event`).
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from mtsd.apply.position.table_declaration import (
    CHANNEL,
    NAME_COLUMN,
    SOURCE_POSITION,
    AnyColumn,
    ChannelTable,
    Pair,
    PositionColumns,
    StoredRow,
    Table,
    raw,
    text,
    whole,
)
from mtsd.apply.session.family import MYSQL, TargetFamily
from mtsd.apply.sql import literals
from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.bytes.header import HEADER_SIZE
from mtsd.binlog.events.rows import STMT_END
from mtsd.model.error_numbers import ER
from mtsd.model.errors import ServerError
from mtsd.model.gtid import Gtid, GtidSet
from mtsd.schedule.done.executed_groups import ExecutedGroups
from mtsd.schedule.done.worker_row import WorkerRow
from mtsd.wire.exchange import Row

_TABLE = "slave_worker_info"
_TABLE_NAME = _TABLE.encode()
WORKERS_TABLE = _TABLE_NAME + b"\0"
"""As a binlog has the name."""
_TABLE_MAP = EventType.TABLE_MAP_EVENT
TABLE_ID = (0xFFFF_FFFF_0001).to_bytes(6, "little")
"""A server counts the ids of its tables from a small number."""
_TABLE_FLAGS = b"\x01\x00"


_ID = whole("Id", "INT UNSIGNED")
_RELAY = PositionColumns(text("Relay_log_name", NAME_COLUMN), whole("Relay_log_pos"))
_CHECKPOINT_RELAY = PositionColumns(
    text("Checkpoint_relay_log_name", NAME_COLUMN), whole("Checkpoint_relay_log_pos")
)
_CHECKPOINT = PositionColumns(
    text("Checkpoint_master_log_name", NAME_COLUMN), whole("Checkpoint_master_log_pos")
)
_BASE = whole("Checkpoint_seqno", more="NOT NULL COMMENT 'number of the group of bit 0'")
_FIRST_GTID = text("Checkpoint_gtid", "VARCHAR(128) NOT NULL")
_SIZE = whole("Checkpoint_group_size", "INT UNSIGNED")
_BITMAP = raw("Checkpoint_group_bitmap", "LONGBLOB NOT NULL")
_GTIDS = text("Executed_gtids", "LONGTEXT NOT NULL")
_ORIGIN = raw("Origin", "TEXT NOT NULL")
_TOKEN = whole("Token", more="NOT NULL COMMENT 'moves on with all that the worker sends at once'")
_CHANGED: tuple[AnyColumn, ...] = (
    _RELAY.file, _RELAY.offset, SOURCE_POSITION.file, SOURCE_POSITION.offset,
    _CHECKPOINT_RELAY.file, _CHECKPOINT_RELAY.offset, _CHECKPOINT.file, _CHECKPOINT.offset,
    _BASE, _FIRST_GTID, _SIZE, _BITMAP, _GTIDS,
)  # fmt: skip
COLUMNS: tuple[AnyColumn, ...] = (_ID, *_CHANGED, _ORIGIN, CHANNEL, _TOKEN)
_READ = (
    _ID, SOURCE_POSITION.file, SOURCE_POSITION.offset, _CHECKPOINT.file, _CHECKPOINT.offset, _BASE,
    _FIRST_GTID, _BITMAP, _GTIDS, _TOKEN,
)  # fmt: skip


def _in_table_map(column: AnyColumn) -> tuple[bytes, bytes]:
    """Return type and metadata of a column, as a Table_map event has them."""
    kind = column.definition.split()[0]
    if kind.startswith("VARCHAR"):
        # In utf8mb4: four bytes per character.
        characters = int(kind.removeprefix("VARCHAR(").removesuffix(")"))
        return b"\x0f", (4 * characters).to_bytes(2, "little")
    return _TYPES[kind]


_TYPES = {
    "INT": (b"\x03", b""),
    "BIGINT": (b"\x08", b""),
    # How many bytes its length has.
    "TEXT": (b"\xfc", b"\x02"),
    "LONGBLOB": (b"\xfc", b"\x04"),
    "LONGTEXT": (b"\xfc", b"\x04"),
}


def _columns(*names: str) -> bytes:
    """Return a bitmap of columns."""
    every = [column.name for column in COLUMNS]
    return sum(1 << every.index(name) for name in names).to_bytes((len(every) + 7) // 8, "little")


_WIDTH = bytes((len(COLUMNS),))
_BEFORE = _columns("Token")
_OFTEN = _columns(
    "Relay_log_pos", "Master_log_pos", "Checkpoint_group_size", "Checkpoint_group_bitmap",
    "Executed_gtids", "Token",
)  # fmt: skip
_ALL = _columns(*(column.name for column in (*_CHANGED, _TOKEN)))
_NAMES = tuple(column.quoted for column in (*_CHANGED, _TOKEN))
_AND_ID = b" AND %b=%%d" % _ID.quoted
_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")
_TIME_AND_SERVER = struct.Struct("<I1xI")


@dataclass(frozen=True, slots=True)
class WorkerRowChange:
    """The change of a worker's row that commits together with rows: from `before` to `row`."""

    table: "WorkerInfo"
    row: WorkerRow
    before: WorkerRow

    def events(self, last: bytes, flags: int) -> tuple[bytes, bytes]:
        """Return its Table_map and row event; see `WorkerInfo.events`."""
        return self.table.events(self.row, self.before, last, flags)


class WorkerInfo:
    """Statements and events on slave_worker_info for one channel in one schema."""

    def __init__(self, schema: str, channel: str) -> None:
        self._table = ChannelTable(Table(_TABLE, COLUMNS), schema, channel)
        self.name = self._table.name
        self._schema = schema
        described = [_in_table_map(column) for column in COLUMNS]
        self._map = b"".join((
            TABLE_ID, _TABLE_FLAGS,
            bytes((len(schema),)), schema.encode(), b"\0",
            bytes((len(_TABLE),)), _TABLE.encode(), b"\0",
            _WIDTH, *(kind for kind, _ in described),
            bytes((sum(len(metadata) for _, metadata in described),)),
            *(metadata for _, metadata in described),
            bytes((len(COLUMNS) + 7) // 8),
        ))  # fmt: skip

    def definition(self, family: TargetFamily = MYSQL) -> bytes:
        """Return the statement that creates the table if it does not exist."""
        keys = "PRIMARY KEY (`Channel_name`, `Id`),\n  UNIQUE KEY (`Token`)"
        if family.finds_by_primary_key:
            keys = "PRIMARY KEY (`Token`),\n  UNIQUE KEY (`Channel_name`, `Id`)"
        return Table(_TABLE, COLUMNS, keys).definition(self._schema)

    def select(self) -> bytes:
        """Return the query for all workers' rows, for `row`."""
        return self._table.select(b",".join(column.selected for column in _READ))

    def select_token(self, worker: int) -> bytes:
        """Return the query for the token in the row of the worker of that Id, if it has one."""
        return self._table.select(_TOKEN.selected, _is(worker))

    def row(self, stored: Row) -> WorkerRow:
        """Parse a row of `select`. Raises NeedsPersonError for what mtsd did not write."""
        row = StoredRow(dict(zip((column.name for column in _READ), stored, strict=True)))
        last = SOURCE_POSITION.read(row)
        return WorkerRow(
            row[_ID],
            last if last.file else None,
            _CHECKPOINT.read(row),
            ExecutedGroups.from_bitmap(row[_BASE], row[_BITMAP]),
            self._table.parsed(_GTIDS, GtidSet.parse, row[_GTIDS]),
            row[_TOKEN],
            self._table.parsed(
                _FIRST_GTID, lambda held: _aligned(held, row[_BASE]), row[_FIRST_GTID]
            ),
        )

    def replace(self, row: WorkerRow) -> bytes:
        """Return the statement that rewrites a worker's row completely."""
        return self._table.replace(_ID.of(row.id), _ORIGIN.of(b""), *_values(row))

    def update(self, row: WorkerRow) -> bytes:
        """Return the statement that a worker's transaction ends with."""
        return self._table.update(literals.assignments(_values(row)), _is(row.id))

    def present(self, row: WorkerRow) -> bytes:
        """Return the statement that fails with error ROW_GONE if the worker has no row.

        A statement of a group may have deleted it: through a trigger, for example, of which a
        MariaDB's binary log says nothing.
        """
        return present(self.name + self._table.of_channel + _is(row.id))

    def events(
        self, row: WorkerRow, after: WorkerRow, last: bytes, flags: int
    ) -> tuple[bytes, bytes]:
        """Return the Table_map and row event that change the row `after` into `row`.

        `last` is the event that they follow: they take their time and server id from it. `flags`
        are those of the statement's row events; STMT_END is added.
        """
        time, server = _TIME_AND_SERVER.unpack_from(last)
        offset = _U64.pack(row.last.offset if row.last else 0)
        bitmap = row.executed.bitmap()
        gtids = str(row.gtids).encode()
        size = _U32.pack(len(bitmap))
        if _differs_little(row, after):
            columns = _OFTEN
            image = [offset, offset]
        else:
            columns = _ALL
            last_group = _text(row.last.file if row.last else ""), offset
            checkpoint = _text(row.checkpoint.file), _U64.pack(row.checkpoint.offset)
            base = _U64.pack(row.executed.base), _text(_first_gtid(row))
            image = [*last_group, *last_group, *checkpoint, *checkpoint, *base]
        body = b"".join((
            TABLE_ID, (flags | STMT_END).to_bytes(2, "little"), b"\x02\x00",
            _WIDTH, _BEFORE, columns,
            b"\0", _U64.pack(after.token),
            _no_nulls(columns), *image,
            size, size, bitmap, _U32.pack(len(gtids)), gtids, _U64.pack(row.token),
        ))  # fmt: skip
        return (
            _event(EventType.TABLE_MAP_EVENT, time, server, self._map),
            _event(EventType.UPDATE_ROWS_EVENT, time, server, body),
        )

    def delete_all(self) -> bytes:
        """Return the statement that removes all rows of the channel."""
        return self._table.delete()

    def delete(self, ids: Sequence[int]) -> bytes:
        """Return the statement that removes rows that the low-water mark has passed."""
        return self._table.delete(b" AND %b IN (%b)" % (_ID.quoted, b",".join(map(_number, ids))))


def present(rows: bytes) -> bytes:
    """Return the statement that fails with error ROW_GONE if a table has no row of these.

    `rows`: the table and a condition. An UPDATE that finds nothing is no error, nor does it tell
    that from one that changes nothing. A DO would keep the error to itself on MariaDB.
    """
    return (
        b"SET @mtsd_row=(SELECT 1 UNION ALL SELECT 2 FROM DUAL WHERE NOT EXISTS"
        b" (SELECT 1 FROM %b LOCK IN SHARE MODE))"
    ) % rows


def is_of_workers_row(error: ServerError, rows: Sequence[bytes]) -> bool:
    """Return whether a BINLOG statement has failed because the worker's row was not there.

    `rows` are the other events in it. In any language, the error's text has the table's name.
    """
    return (
        error.number == ER.KEY_NOT_FOUND
        and _TABLE in error.text
        and not any(_TABLE_NAME in event for event in rows if event[4] == _TABLE_MAP)
    )


def worker_of(update: bytes) -> int:
    """Return the Id in the first row that a server has logged as updated in this table.

    It is the first column, and of the key, so every image before a change begins with it.
    """
    at = HEADER_SIZE + 8
    at += int.from_bytes(update[at : at + 2], "little")
    width = (update[at] + 7) // 8
    before = int.from_bytes(update[at + 1 : at + 1 + width], "little")
    at += 1 + 2 * width + (before.bit_count() + 7) // 8
    return int.from_bytes(update[at : at + 4], "little")


def _no_nulls(columns: bytes) -> bytes:
    """Return the null bits of an image with the columns in a bitmap."""
    return bytes((int.from_bytes(columns, "little").bit_count() + 7) // 8)


def _differs_little(row: WorkerRow, after: WorkerRow) -> bool:
    """Return whether file and checkpoint are the same, as they usually are."""
    return (
        row.last is not None
        and after.last is not None
        and row.last.file == after.last.file
        and row.checkpoint == after.checkpoint
        and row.executed.base == after.executed.base
        and row.aligned == after.aligned
    )


def _first_gtid(row: WorkerRow) -> str:
    """Return the column Checkpoint_gtid: the GTID that `aligned` gives bit 0; may be under 1."""
    if row.aligned is None:
        return ""
    return str(row.aligned._replace(number=row.aligned.number + row.executed.base))


def _aligned(first_gtid: str, base: int) -> Gtid | None:
    """Return `aligned` of a row, from its column Checkpoint_gtid."""
    if not first_gtid:
        return None
    gtid = Gtid.parse(first_gtid)
    return gtid._replace(number=gtid.number - base)


def _event(kind: EventType, time: int, server: int, body: bytes) -> bytes:
    size = HEADER_SIZE + len(body)
    return struct.pack("<IBIIIH", time, kind, server, size, 0, 0) + body


def _text(value: str) -> bytes:
    """Return the value of a column of more than 255 bytes."""
    raw = value.encode("utf-8", "surrogateescape")
    return len(raw).to_bytes(2, "little") + raw


def _values(row: WorkerRow) -> list[Pair]:
    file, offset = literals.place(row.last)
    checkpoint_file, checkpoint_offset = literals.place(row.checkpoint)
    bitmap = row.executed.bitmap()
    # In the order of `_CHANGED`.
    values = (
        file, offset, file, offset,
        checkpoint_file, checkpoint_offset, checkpoint_file, checkpoint_offset,
        _number(row.executed.base), literals.text(_first_gtid(row)),
        _number(len(bitmap)), literals.blob(bitmap), literals.text(str(row.gtids)),
        _number(row.token),
    )  # fmt: skip
    return list(zip(_NAMES, values, strict=True))


def _number(value: int) -> bytes:
    return b"%d" % value


def _is(worker: int) -> bytes:
    return _AND_ID % worker

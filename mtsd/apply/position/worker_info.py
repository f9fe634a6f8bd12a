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
from typing import NamedTuple

from mtsd.apply.position.table_declaration import TABLE_OPTIONS
from mtsd.apply.session.family import MYSQL, TargetFamily
from mtsd.apply.sql import literals
from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.bytes.header import HEADER_SIZE
from mtsd.binlog.events.rows import STMT_END
from mtsd.model.error_numbers import ER
from mtsd.model.errors import ServerError
from mtsd.model.gtid import Gtid, GtidSet
from mtsd.model.position import Position
from mtsd.schedule.done.executed_groups import ExecutedGroups
from mtsd.schedule.done.worker_row import WorkerRow
from mtsd.wire.exchange import Row

_TABLE = "slave_worker_info"
_TABLE_NAME = _TABLE.encode()
_TABLE_MAP = EventType.TABLE_MAP_EVENT
TABLE_ID = (0xFFFF_FFFF_0001).to_bytes(6, "little")
"""A server counts the ids of its tables from a small number."""
_TABLE_FLAGS = b"\x01\x00"


class _Column(NamedTuple):
    name: str
    definition: str
    type: bytes
    metadata: bytes


def _int(name: str) -> _Column:
    return _Column(name, "INT UNSIGNED NOT NULL", b"\x03", b"")


def _bigint(name: str, comment: str = "") -> _Column:
    definition = "BIGINT UNSIGNED NOT NULL" + (f" COMMENT '{comment}'" if comment else "")
    return _Column(name, definition, b"\x08", b"")


def _varchar(name: str, characters: int) -> _Column:
    # In utf8mb4: four bytes per character.
    size = (4 * characters).to_bytes(2, "little")
    return _Column(name, f"VARCHAR({characters}) NOT NULL", b"\x0f", size)


def _blob(name: str, definition: str, length_bytes: bytes) -> _Column:
    return _Column(name, f"{definition} NOT NULL", b"\xfc", length_bytes)


COLUMNS = (
    _int("Id"),
    _varchar("Relay_log_name", 512),
    _bigint("Relay_log_pos"),
    _varchar("Master_log_name", 512),
    _bigint("Master_log_pos"),
    _varchar("Checkpoint_relay_log_name", 512),
    _bigint("Checkpoint_relay_log_pos"),
    _varchar("Checkpoint_master_log_name", 512),
    _bigint("Checkpoint_master_log_pos"),
    _bigint("Checkpoint_seqno", "number of the group of bit 0"),
    _varchar("Checkpoint_gtid", 128),
    _int("Checkpoint_group_size"),
    _blob("Checkpoint_group_bitmap", "LONGBLOB", b"\x04"),
    _blob("Executed_gtids", "LONGTEXT", b"\x04"),
    _blob("Origin", "TEXT", b"\x02"),
    _varchar("Channel_name", 64),
    _bigint("Token", "moves on with all that the worker sends at once"),
)


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
_ALL = _columns(*(c.name for c in COLUMNS if c.name not in {"Id", "Origin", "Channel_name"}))
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
        self.name = literals.name(schema) + b"." + literals.name(_TABLE)
        self._channel = literals.text(channel)
        self._of_channel = b" WHERE `Channel_name`=" + self._channel
        self._schema = schema
        self._map = b"".join((
            TABLE_ID, _TABLE_FLAGS,
            bytes((len(schema),)), schema.encode(), b"\0",
            bytes((len(_TABLE),)), _TABLE.encode(), b"\0",
            _WIDTH, *(column.type for column in COLUMNS),
            bytes((sum(len(column.metadata) for column in COLUMNS),)),
            *(column.metadata for column in COLUMNS),
            bytes((len(COLUMNS) + 7) // 8),
        ))  # fmt: skip

    def definition(self, family: TargetFamily = MYSQL) -> bytes:
        """Return the statement that creates the table if it does not exist."""
        keys = "PRIMARY KEY (`Channel_name`, `Id`),\n  UNIQUE KEY (`Token`)"
        if family.finds_by_primary_key:
            keys = "PRIMARY KEY (`Token`),\n  UNIQUE KEY (`Channel_name`, `Id`)"
        columns = ",\n".join(f"  `{column.name}` {column.definition}" for column in COLUMNS)
        return (
            f"CREATE TABLE IF NOT EXISTS {self.name.decode()} (\n{columns},\n"
            f"  {keys}\n) {TABLE_OPTIONS}"
        ).encode()

    def select_columns(self) -> bytes:
        """Return the query for the table's column names in order, one per row."""
        return (
            b"SELECT column_name FROM information_schema.columns WHERE table_schema=%b"
            b" AND table_name=%b ORDER BY ordinal_position"
            % (literals.text(self._schema), literals.text(_TABLE))
        )

    def select(self) -> bytes:
        """Return the query for all workers' rows, for `row`."""
        return (
            b"SELECT `Id`,`Master_log_name`,`Master_log_pos`,`Checkpoint_master_log_name`,"
            b"`Checkpoint_master_log_pos`,`Checkpoint_seqno`,`Checkpoint_gtid`,"
            b"`Checkpoint_group_bitmap`,`Executed_gtids`,`Token`"
            b" FROM " + self.name + self._of_channel
        )

    def select_token(self, worker: int) -> bytes:
        """Return the query for the token in the row of the worker of that Id, if it has one."""
        return b"SELECT `Token` FROM %b%b AND `Id`=%d" % (self.name, self._of_channel, worker)

    def row(self, found: Row) -> WorkerRow:
        """Parse a row of `select`."""
        id_, file, offset, *checkpoint, base_number, first_gtid, bitmap, gtids, token = found
        base = literals.number(base_number)
        return WorkerRow(
            literals.number(id_),
            Position(str(file), literals.number(offset)) if file else None,
            Position(str(checkpoint[0]), literals.number(checkpoint[1])),
            ExecutedGroups.from_bitmap(
                base, bitmap if isinstance(bitmap, bytes) else str(bitmap).encode()
            ),
            GtidSet.parse(str(gtids)),
            literals.number(token),
            _aligned(str(first_gtid), base),
        )

    def replace(self, row: WorkerRow) -> bytes:
        """Return the statement that rewrites a worker's row completely."""
        columns = [
            (b"`Channel_name`", self._channel),
            (b"`Id`", b"%d" % row.id),
            (b"`Origin`", b"X''"),
            *_values(row),
        ]
        return b"REPLACE" + literals.insert(self.name, columns).removeprefix(b"INSERT")

    def update(self, row: WorkerRow) -> bytes:
        """Return the statement that a worker's transaction ends with."""
        return b"UPDATE %b SET %b%b AND `Id`=%d" % (
            self.name,
            literals.assignments(_values(row)),
            self._of_channel,
            row.id,
        )

    def present(self, row: WorkerRow) -> bytes:
        """Return the statement that fails with error ROW_GONE if the worker has no row.

        A statement of a group may have deleted it: through a trigger, for example, of which a
        MariaDB's binary log says nothing.
        """
        return present(b"%b%b AND `Id`=%d" % (self.name, self._of_channel, row.id))

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
        return b"DELETE FROM " + self.name + self._of_channel

    def delete(self, ids: Sequence[int]) -> bytes:
        """Return the statement that removes rows that the low-water mark has passed."""
        listed = b",".join(b"%d" % id_ for id_ in ids)
        return b"DELETE FROM %b%b AND `Id` IN (%b)" % (self.name, self._of_channel, listed)


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


def _values(row: WorkerRow) -> list[tuple[bytes, bytes]]:
    file, offset = literals.place(row.last)
    checkpoint_file, checkpoint_offset = literals.place(row.checkpoint)
    bitmap = row.executed.bitmap()
    return [
        (b"`Relay_log_name`", file),
        (b"`Relay_log_pos`", offset),
        (b"`Master_log_name`", file),
        (b"`Master_log_pos`", offset),
        (b"`Checkpoint_relay_log_name`", checkpoint_file),
        (b"`Checkpoint_relay_log_pos`", checkpoint_offset),
        (b"`Checkpoint_master_log_name`", checkpoint_file),
        (b"`Checkpoint_master_log_pos`", checkpoint_offset),
        (b"`Checkpoint_seqno`", b"%d" % row.executed.base),
        (b"`Checkpoint_gtid`", literals.text(_first_gtid(row))),
        (b"`Checkpoint_group_size`", b"%d" % len(bitmap)),
        (b"`Checkpoint_group_bitmap`", literals.blob(bitmap)),
        (b"`Executed_gtids`", literals.text(str(row.gtids))),
        (b"`Token`", b"%d" % row.token),
    ]

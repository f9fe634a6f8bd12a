"""Table_map events: which table the row events after them write, and its column types.

Body, little-endian: table id u48, flags u16, database (length u8, bytes, NUL), table (likewise),
number of columns as a length-encoded integer, one type byte per column, the types' metadata
(length-encoded size, bytes), one null bit per column, then optional metadata up to the event's end,
decoded by `mtsd.binlog.values.table_metadata` (MySQL documentation,
`mysql::binlog::event::Table_map_event`).
"""

from dataclasses import dataclass

from mtsd.binlog.bytes.cursor import Cursor
from mtsd.binlog.bytes.header import HEADER_SIZE
from mtsd.model.errors import BinlogError

REFERRED_BY_FOREIGN_KEY_OF_OTHER_DATABASE = 0x2
"""From MySQL 9.6 on also of tables with foreign keys within one database, on both ends."""
_GENERATED_KEY = 0x4
_DATABASE_AT = HEADER_SIZE + 8
_WHAT = "Table_map event"


@dataclass(frozen=True, slots=True)
class TableMap:
    """One table as the source writes its rows; the bytes are those of the format, undecoded.

    `mariadb`: a MariaDB has written it, whose optional metadata differs (`table_metadata`).
    """

    table_id: int
    flags: int
    database: str
    table: str
    column_types: bytes
    metadata: bytes
    null_bitmap: bytes
    optional: bytes
    mariadb: bool = False

    @property
    def referred_by_foreign_key_of_other_database(self) -> bool:
        """Whether a foreign key, perhaps of another database, refers to the table."""
        return bool(self.flags & REFERRED_BY_FOREIGN_KEY_OF_OTHER_DATABASE)

    @property
    def has_generated_key(self) -> bool:
        """Whether its first column is a primary key that MySQL, from 8.0.30 on, has added."""
        return bool(self.flags & _GENERATED_KEY) and not self.mariadb


def parse_table_map(event: bytes, *, mariadb: bool = False) -> TableMap:
    """Decode a Table_map event of a family; BinlogError if it is truncated or inconsistent."""
    cursor = Cursor(event, HEADER_SIZE, _WHAT)
    table_id = cursor.uint(6, "table id")
    flags = cursor.uint(2, "flags")
    database = _name(cursor, "database")
    table = _name(cursor, "table")
    columns = cursor.net_int("number of columns")
    column_types = cursor.take(columns, "column types")
    metadata = cursor.take(cursor.net_int("metadata size"), "metadata")
    null_bitmap = cursor.take((columns + 7) // 8, "null bits")
    return TableMap(
        table_id,
        flags,
        database,
        table,
        column_types,
        metadata,
        null_bitmap,
        cursor.take(cursor.left(), "optional metadata"),
        mariadb,
    )


def database_of(event: bytes) -> str:
    """Return the database of a Table_map event that `parse_table_map` has accepted."""
    start = _DATABASE_AT + 1
    return event[start : start + event[_DATABASE_AT]].decode()


def name_of(event: bytes) -> str:
    """Return the "database.table" of a Table_map event."""
    table = parse_table_map(event)
    return f"{table.database}.{table.table}"


def _name(cursor: Cursor, field: str) -> str:
    raw = cursor.take(cursor.uint(1, field) + 1, field)
    if raw.find(b"\0") != len(raw) - 1:
        raise BinlogError(f"{_WHAT}: {field}: NUL is missing after the name, or inside it")
    if len(raw) == 1:
        raise BinlogError(f"{_WHAT}: the name of a {field} is empty")
    return cursor.as_text(raw[:-1], field)

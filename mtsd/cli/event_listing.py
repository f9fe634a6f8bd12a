"""Every event of a binary log as one line: for a person, or as JSON."""

import dataclasses
import enum
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mtsd.binlog.decode import Decoded, Undecoded, decode
from mtsd.binlog.event_reader import EventReader
from mtsd.binlog.event_type import type_name
from mtsd.binlog.format_description import CHECKSUM_CRC32, FormatDescription
from mtsd.binlog.gtid_event import GtidEvent
from mtsd.binlog.header import EventHeader, parse_header
from mtsd.binlog.heartbeat import Heartbeat
from mtsd.binlog.incident import Incident
from mtsd.binlog.load_data import LoadData
from mtsd.binlog.mariadb_notes import BinlogCheckpoint
from mtsd.binlog.payload import PayloadHeader
from mtsd.binlog.rotate import Rotate
from mtsd.binlog.rows import STMT_END, RowsHeader
from mtsd.binlog.rows_query import RowsQuery
from mtsd.binlog.table_map import TableMap
from mtsd.binlog.xa_prepare import XaPrepare
from mtsd.binlog.xid import Xid
from mtsd.cli.printable import printable
from mtsd.model.errors import BinlogError
from mtsd.model.gtid import Gtid, GtidSet
from mtsd.model.position import FIRST_EVENT, Position
from mtsd.model.step import Intvar, QueryEvent, Rand, UserVar

_LONGEST = 100

_BINARY = frozenset(
    {"column_types", "metadata", "null_bitmap", "optional", "post_header_lengths", "extra"}
)
"""Fields whose bytes are not text in any character set."""


@dataclass(frozen=True, slots=True)
class EventLine:
    """One event; `offset` is where it ends in the file, 0 for an `inner` one of a payload."""

    file: str
    offset: int
    inner: bool
    header: EventHeader
    size: int
    decoded: Decoded

    @property
    def type(self) -> str:
        """The type's name."""
        return type_name(self.header.type)

    @property
    def summary(self) -> str:
        """The most important of its contents, in one short line."""
        text = printable(_summary(self.decoded))
        return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"

    def as_json(self) -> dict[str, object]:
        """Return everything that is decoded, in JSON types."""
        return {
            "file": self.file,
            "pos": self.offset or None,
            "type": self.type,
            "inner": self.inner,
            "size": self.size,
            "timestamp": self.header.timestamp,
            "server_id": self.header.server_id,
            "flags": self.header.flags,
            "fields": _plain(self.decoded, ""),
        }


def event_lines(file: str, events: Iterable[bytes]) -> Iterator[EventLine]:
    """Yield a line for every event of a file, and after a payload event for each inner one.

    `events` come with their checksums, which are verified. They need not be where their headers
    say: a relay log can be listed too. Raises BinlogError with the position after the last valid
    event.
    """
    reader = EventReader(Position(file, FIRST_EVENT), in_place=False)
    before = reader.position
    try:
        for raw in events:
            before = reader.position
            event = reader.read(raw)
            line = _line(file, reader.offset, event, len(raw), inner=False)
            yield line
            if isinstance(line.decoded, PayloadHeader):
                for inner in reader.inner(event):
                    yield _line(file, 0, inner, len(inner), inner=True)
    except BinlogError as error:
        raise BinlogError(error.message, before) from error


def _line(file: str, offset: int, event: bytes, size: int, *, inner: bool) -> EventLine:
    return EventLine(file, offset, inner, parse_header(event), size, decode(event))


def _summary(event: Decoded) -> str:
    match event:
        case FormatDescription():
            checksum = "CRC32" if event.checksum_algorithm == CHECKSUM_CRC32 else "no checksums"
            return f"server {event.server_version}, {checksum}"
        case GtidEvent():
            return (
                f"{event.gtid or 'anonymous'} last_committed={event.last_committed}"
                f" sequence_number={event.sequence_number}"
            )
        case GtidSet():
            return str(event)
        case QueryEvent():
            return f"[{event.database}] {_text(event.statement)}"
        case RowsQuery():
            return _text(event.statement)
        case TableMap():
            return f"{event.database}.{event.table} table_id={event.table_id}"
        case RowsHeader():
            end = " STMT_END" if event.flags & STMT_END else ""
            return f"table_id={event.table_id} flags={event.flags:#x}{end}"
        case BinlogCheckpoint():
            return event.file
        case Rotate() | Heartbeat():
            return str(event.position)
        case Xid():
            return str(event.number)
        case XaPrepare():
            how = "one phase" if event.one_phase else "prepared"
            return f"{event.xid} {how}"
        case PayloadHeader():
            return f"{event.uncompressed_size} bytes uncompressed"
        case Incident():
            return f"{event.number}: {event.message}"
        case Intvar():
            return f"{event.kind.name}={event.value}"
        case Rand():
            return f"{event.seed1} {event.seed2}"
        case UserVar():
            return f"@{_text(event.name)} {event.type.name}"
        case LoadData() | Undecoded():
            return "not decoded"
        case _:
            return ""


def _text(raw: bytes) -> str:
    # Statements of many lines, and of any size, become one short line.
    return " ".join(raw[: 4 * _LONGEST].decode(errors="backslashreplace").split())


def _plain(value: object, name: str) -> object:
    if isinstance(value, bytes):
        return value.hex() if name in _BINARY else value.decode(errors="backslashreplace")
    if isinstance(value, Gtid | GtidSet | Position):
        return str(value)
    if isinstance(value, enum.Enum):
        return value.name
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: _plain(getattr(value, field.name), field.name)
            for field in dataclasses.fields(value)
        }
    if isinstance(value, tuple):
        return [_plain(entry, name) for entry in value]
    return value

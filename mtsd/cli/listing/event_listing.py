"""Every event of a binary log as one line: for people, or as JSON."""

import dataclasses
import enum
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mtsd.binlog.bytes.event_type import type_name
from mtsd.binlog.bytes.header import EventHeader, parse_header
from mtsd.binlog.events.decode import Decoded, Undecoded, decode
from mtsd.binlog.events.event_reader import EventReader
from mtsd.binlog.events.format_description import CHECKSUM_CRC32, FormatDescription
from mtsd.binlog.events.gtid_event import GtidEvent
from mtsd.binlog.events.heartbeat import Heartbeat
from mtsd.binlog.events.incident import Incident
from mtsd.binlog.events.load_data import LoadData
from mtsd.binlog.events.mariadb_notes import BinlogCheckpoint
from mtsd.binlog.events.payload import PayloadHeader
from mtsd.binlog.events.rotate import Rotate
from mtsd.binlog.events.rows import STMT_END, RowsHeader
from mtsd.binlog.events.rows_query import RowsQuery
from mtsd.binlog.events.table_map import TableMap
from mtsd.binlog.events.xa_prepare import XaPrepare
from mtsd.binlog.events.xid import Xid
from mtsd.binlog.sql.statement_secrets import without_secrets
from mtsd.cli.listing.shown_values import as_text, value_of_variable
from mtsd.cli.output import printable
from mtsd.model.errors import BinlogError
from mtsd.model.gtid import Gtid, GtidSet
from mtsd.model.position import FIRST_EVENT, Position
from mtsd.model.step import Intvar, QueryEvent, Rand, UserVar, UserVarType

SHORT = 100
"""Characters of the summary in a line."""

_BINARY = frozenset(
    {"column_types", "metadata", "null_bitmap", "optional", "post_header_lengths", "extra", "raw"}
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
    event: bytes
    """Without its checksum; uncompressed, while `header` is that of the file."""

    @property
    def type(self) -> str:
        """The type's name."""
        return type_name(self.header.type)

    def summary(self, longest: int = SHORT) -> str:
        """Return the most important of its contents, in one line of `longest` characters."""
        text = printable(_summary(self.decoded, longest))
        return text if len(text) <= longest else text[: longest - 1] + "…"

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


def event_lines(
    file: str, events: Iterable[bytes], *, start: int = FIRST_EVENT, description: bytes = b""
) -> Iterator[EventLine]:
    """Yield a line for every event of a file, and after a payload event for each inner one.

    `events` come with their checksums, which are verified. They need not be where their headers
    say: a relay log can be listed too. They begin at `start`, behind the file's format
    `description` if it is not among them. Raises BinlogError with the position after the last valid
    event.
    """
    reader = EventReader(Position(file, start), description=description, in_place=False)
    before = reader.position
    try:
        for raw in events:
            before = reader.position
            event = reader.read(raw)
            line = EventLine(
                file, reader.offset, False, parse_header(raw), len(raw), _decoded(event, reader),
                event,
            )  # fmt: skip
            yield line
            if isinstance(line.decoded, PayloadHeader):
                for inner in reader.inner(event):
                    header = parse_header(inner)
                    yield EventLine(file, 0, True, header, len(inner), decode(inner), inner)
    except BinlogError as error:
        raise BinlogError(error.message, before) from error


def _decoded(event: bytes, reader: EventReader) -> Decoded:
    decoded = decode(event)
    if isinstance(decoded, TableMap) and reader.dialect.tables_of_mariadb:
        return dataclasses.replace(decoded, mariadb=True)
    return decoded


def _summary(event: Decoded, longest: int) -> str:
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
            return _statement(event, longest)
        case RowsQuery():
            return _text(event.statement, longest)
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
            return _variable(event)
        case LoadData(file_id=int()):
            return _load_data(event, longest)
        case LoadData() | Undecoded():
            return "not decoded"
        case _:
            return ""


def _statement(query: QueryEvent, longest: int) -> str:
    error = f" (error {query.error_code})" if query.error_code else ""
    shown = without_secrets(query.statement, query.context)
    return f"[{query.database}]{error} {_text(shown, longest)}"


def _variable(variable: UserVar) -> str:
    name = _text(variable.name, SHORT)
    if variable.raw is None:
        return f"@{name} = NULL"
    kind = variable.type.name
    if variable.unsigned:
        kind += " UNSIGNED"
    if variable.geometry:
        kind = variable.geometry.upper()
    elif variable.type is UserVarType.STRING:
        kind += f", collation {variable.collation}"
    return f"@{name} = {as_text(value_of_variable(variable))} ({kind})"


def _load_data(event: LoadData, longest: int) -> str:
    file = f"file {event.file_id}"
    if event.query is not None:
        return f"{file} {_statement(event.query, longest)}"
    return file if event.block_size is None else f"{file}, {event.block_size} bytes"


def _text(raw: bytes, longest: int) -> str:
    # Statements of many lines, and of any size, become one line. It is longer than `longest` where
    # something is left out, so that it is seen to be cut off.
    words = b" ".join(raw.split(None, longest))
    return words[: 4 * (longest + 1)].decode(errors="backslashreplace")


def _plain(value: object, name: str) -> object:
    if isinstance(value, bytes):
        return value.hex() if name in _BINARY else value.decode(errors="backslashreplace")
    if isinstance(value, Gtid | GtidSet | Position):
        return str(value)
    if isinstance(value, enum.Enum):
        return value.name
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {
            field.name: _plain(getattr(value, field.name), field.name)
            for field in dataclasses.fields(value)
        }
        if isinstance(value, UserVar):
            fields["value"] = as_text(value_of_variable(value))
        return fields
    if isinstance(value, QueryEvent):
        shown = without_secrets(value.statement, value.context)
        fields = {
            field: _plain(each, field) for field, each in value._asdict().items() if field != "text"
        }
        return fields | {
            "context": _plain(value.context, "context"),
            "statement": _plain(shown, "statement"),
        }
    if isinstance(value, tuple):
        return [_plain(entry, name) for entry in value]
    return value

"""Transactions built by hand: what a grouper reads, with and without checksums."""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from zlib import crc32

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.groups.grouper import Grouper
from mtsd.binlog.groups.merged_databases import MergedDatabases
from mtsd.filter.filter import Filter
from mtsd.model.group import Group, StreamItem
from mtsd.model.position import Position
from mtsd.model.step import Intvar, LoadFile, Rand, Rows, Satellite, Step, UserVar
from mtsd.model.temporary_tables import NOT_KNOWN, TemporaryTables
from tests.binlog.building import event, query

STMT_END = 0x01
SATELLITE_TYPES: dict[type[Satellite], EventType] = {
    Intvar: EventType.INTVAR_EVENT,
    Rand: EventType.RAND_EVENT,
    UserVar: EventType.USER_VAR_EVENT,
}
UNBOUNDED = 1 << 40


def sealed(plain: bytes) -> bytes:
    """Return the event with its checksum, and the length of both."""
    longer = plain[:9] + (len(plain) + 4).to_bytes(4, "little") + plain[13:]
    return longer + crc32(longer).to_bytes(4, "little")


def placed(events: Iterable[bytes], start: int = 4) -> list[bytes]:
    """Return the events with the positions that they have in a file, from the offset `start`."""
    found: list[bytes] = []
    for plain in events:
        start += len(plain)
        found.append(plain[:13] + (start & 0xFFFFFFFF).to_bytes(4, "little") + plain[17:])
    return found


def in_stream(events: Iterable[bytes], start: int = 4) -> list[bytes]:
    """Return the events as a source sends them: with their positions and checksums."""
    return [sealed(found[:-4]) for found in placed([found + bytes(4) for found in events], start)]


def table_map(number: int, database: str = "d", table: str = "t", flags: int = 1) -> bytes:
    """Return a Table_map event of one INT column."""
    body = number.to_bytes(6, "little") + flags.to_bytes(2, "little")
    for name in (database.encode(), table.encode()):
        body += bytes((len(name),)) + name + b"\0"
    return event(EventType.TABLE_MAP_EVENT, body + b"\x01\x03\x00\x01")


def rows(
    table: int,
    data: bytes = b"",
    flags: int = STMT_END,
    kind: EventType = EventType.WRITE_ROWS_EVENT,
) -> bytes:
    """Return a row event of one column, `data` in place of the images."""
    head = table.to_bytes(6, "little") + flags.to_bytes(2, "little") + b"\x02\x00"
    return event(kind, head + b"\x01\xff" + data)


def gtid(  # one head of a group
    number: int = 0,
    *,
    last_committed: int = 0,
    sequence_number: int = 1,
    commit_time: int = 1_700_000_000_000_000,
    length: int = 100,
) -> bytes:
    """Return a GTID event of 8.0's form, an anonymous one for number 0."""
    body = b"\0" + (b"\x11" * 16 if number else bytes(16)) + number.to_bytes(8, "little") + b"\x02"
    body += last_committed.to_bytes(8, "little") + sequence_number.to_bytes(8, "little")
    body += commit_time.to_bytes(7, "little") + b"\xfe" + length.to_bytes(8, "little")
    kind = EventType.GTID_LOG_EVENT if number else EventType.ANONYMOUS_GTID_LOG_EVENT
    return event(kind, body + (90704).to_bytes(4, "little"))


def begin() -> bytes:
    """Return BEGIN."""
    return query(b"BEGIN")


def xid() -> bytes:
    """Return the end of a transaction."""
    return event(EventType.XID_EVENT, bytes(8))


def grouper(
    *,
    start: Position = Position("f.000001", 4),  # noqa: B008 - it is frozen
    hold_bytes: int = UNBOUNDED,
    chunk_bytes: int = UNBOUNDED,
    replicated: Filter | None = None,
    checksums: bool = False,
    temporary: TemporaryTables = NOT_KNOWN,
    merged: MergedDatabases | None = None,
    referred_in: Mapping[str, AbstractSet[str]] | None = None,
) -> Grouper:
    """Return a grouper whose first group is number 1."""
    return Grouper(
        start=start,
        next_number=1,
        checksums=checksums,
        hold_bytes=hold_bytes,
        chunk_bytes=chunk_bytes,
        replicated=replicated or Filter(position_schema="mtsd"),
        temporary=temporary,
        merged=merged,
        referred_in=referred_in,
    )


def types_of(steps: Iterable[Step]) -> list[int]:
    """Return the event types that the steps come from."""
    types: list[int] = []
    for step in steps:
        if isinstance(step, Rows):
            types += (event[4] for event in step.events)
            continue
        if isinstance(step, LoadFile):
            types.append(step.event[4])
            continue
        types += (SATELLITE_TYPES[type(found)].value for found in step.satellites)
        kind = EventType.EXECUTE_LOAD_QUERY_EVENT if step.file else EventType.QUERY_EVENT
        types.append(kind.value)
    return types


def grouped(*events: bytes, reader: Grouper | None = None) -> list[StreamItem]:
    """Return what the events give, as they stand in a file."""
    reader = reader or grouper()
    return list(reader.groups(placed(events, reader.position.offset)))


def group_of(events: Sequence[bytes]) -> Group:
    """Return the group of one transaction of row events."""
    (group,) = grouped(begin(), *events, xid())
    assert isinstance(group, Group)
    return group


def single(*events: bytes) -> Group:
    (group,) = grouped(*events)
    assert isinstance(group, Group)
    return group

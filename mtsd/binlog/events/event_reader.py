"""From raw events to verified ones, each at its position: everything that reads events uses this.

It reads from a dump, a file, or any part of one that begins with an event, and does no I/O. Every
event has to begin where the previous one ended: a checksum does not reveal that whole events are
missing, duplicated or out of order. A dump by GTID leaves groups out, and the source bridges these
gaps: MySQL with heartbeats, MariaDB with GTID_LIST events that are in no file, but only where it
reaches the place of a domain.
"""

from collections.abc import Iterator, Sequence
from struct import Struct
from typing import Final

from zlib_ng.zlib_ng import crc32

from mtsd.binlog.bytes.checksum import RESIDUE, strip_checksum, verify_format_description
from mtsd.binlog.bytes.event_type import ARTIFICIAL, IGNORABLE, EventType
from mtsd.binlog.bytes.header import HEADER_SIZE
from mtsd.binlog.events.dialect import MYSQL, Dialect, dialect_of
from mtsd.binlog.events.format_description import (
    CHECKSUM_CRC32,
    FormatDescription,
    parse_format_description,
)
from mtsd.binlog.events.heartbeat import parse_heartbeat
from mtsd.binlog.events.payload import payload_events
from mtsd.binlog.events.rotate import parse_rotate
from mtsd.model.errors import BinlogError, NotSupportedError
from mtsd.model.gtid import Gtid
from mtsd.model.position import FIRST_EVENT, Position

_FORMAT_DESCRIPTION: Final[int] = EventType.FORMAT_DESCRIPTION_EVENT.value
_ROTATE: Final[int] = EventType.ROTATE_EVENT.value
_HEARTBEAT: Final[int] = EventType.HEARTBEAT_LOG_EVENT.value
_HEARTBEATS: Final = frozenset({_HEARTBEAT, EventType.HEARTBEAT_LOG_EVENT_V2.value})
_ARTIFICIAL: Final = frozenset({
    _ROTATE, _FORMAT_DESCRIPTION, EventType.PREVIOUS_GTIDS_LOG_EVENT.value,
    EventType.MARIADB_GTID_LIST_EVENT.value, EventType.MARIADB_START_ENCRYPTION_EVENT.value,
})  # fmt: skip
"""Need not be in a file: the source may have created them for the dump."""
_GTID_LIST: Final[int] = EventType.MARIADB_GTID_LIST_EVENT.value
_size_and_end = Struct("<II").unpack_from
"""At byte 9 of a header."""
_LOW: Final = 0xFFFFFFFF


class EventReader:
    """Reads events one after another, starting at `start`.

    `checksums`: whether events before the first format description end with a checksum, as they
    do in a dump, but never in a file. `description` is the file's format description, whole, if
    reading begins after it. With `in_place`, events must be where their headers say; the events
    of a relay log keep the positions that they had on the source, and those of a MariaDB whose
    binary log is inside a storage engine have none. `leaving_out`: the places that a MariaDB has
    been told, one in a domain, up to which it leaves groups out. Until it has reached them all,
    there may be a gap before what is between two groups.
    """

    __slots__ = (
        "_compressed",
        "_in_place",
        "_never_inside",
        "_special",
        "checksums",
        "description",
        "dialect",
        "file",
        "gaps",
        "leaving_out",
        "offset",
        "raw_description",
    )  # fmt: skip

    def __init__(
        self,
        start: Position,
        *,
        checksums: bool = False,
        description: bytes = b"",
        in_place: bool = True,
        leaving_out: Sequence[Gtid] = (),
    ) -> None:
        self.file = start.file
        self.offset = start.offset
        """Where the next event begins."""
        self.checksums = checksums
        """Whether the next event has a checksum."""
        self.description: FormatDescription | None = None
        self.raw_description = b""
        """The event of `description`, whole."""
        self.gaps = 0
        """How many times the source has left events out."""
        self.leaving_out: Sequence[Gtid] = leaving_out
        self._in_place = in_place
        self._speak(MYSQL)
        if description:
            self._describe(description)

    @property
    def position(self) -> Position:
        """Right after the last event read."""
        return Position(self.file, self.offset)

    def read(self, raw: bytes, inside: bool = False) -> bytes:
        """Verify an event and return it without its checksum, but a format description whole.

        `inside` a group, nothing may be missing. Raises BinlogError, which leaves the position
        unchanged, right before the event. Raises NotSupportedError before what is encrypted.
        """
        size = len(raw)
        if size < HEADER_SIZE:
            raise BinlogError(f"an event of {size} bytes is shorter than a header")
        code = raw[4]
        event = raw
        if self.checksums and code != _FORMAT_DESCRIPTION:
            # Inlined, because this runs for every event; the function says what is wrong.
            event = raw[:-4] if crc32(raw) == RESIDUE else strip_checksum(raw)
        claimed, log_pos = _size_and_end(raw, 9)
        if claimed != size:
            raise BinlogError(f"an event of {size} bytes claims a length of {claimed}")
        offset = self.offset + size
        if offset & _LOW != log_pos and self._in_place:
            offset = self._moved(code, event, offset, log_pos, inside)
        if code in self._special:
            if code == _ROTATE:
                self._rotate(parse_rotate(event).position, offset)
                return event
            if code == _FORMAT_DESCRIPTION:
                self._describe(raw)
            elif code in self.dialect.encrypted:
                # In a dump it is for replicas that store encrypted what they receive: the source
                # sends the rest of the file decrypted, and says that this may be ignored.
                if event[17] & IGNORABLE:
                    self.offset = offset
                    return event
                raise NotSupportedError(
                    f"{self.file or 'the file'} is encrypted (encrypt_binlog): only its server can"
                    " read it; with --config, it sends what the file contains"
                )
            elif code in self.dialect.previous_gtids:
                self._reach(event)
            else:
                event = self._compressed[code](event)
        self.offset = offset
        return event

    def inner(self, event: bytes) -> Iterator[bytes]:
        """Yield the events in a transaction payload: they have neither a checksum nor a position.

        Raises BinlogError as `payload_events` does, and for an event not allowed in a payload.
        """
        for inner in payload_events(event):
            if inner[4] in self._never_inside:
                raise BinlogError(f"an event of type {inner[4]} is not allowed")
            yield inner

    def _describe(self, raw: bytes) -> None:
        verify_format_description(raw)
        self.description = parse_format_description(raw)
        self.checksums = self.description.checksum_algorithm == CHECKSUM_CRC32
        self.raw_description = raw
        dialect = dialect_of(self.description.server_version)
        if dialect is not self.dialect:
            self._speak(dialect)

    def _speak(self, dialect: Dialect) -> None:
        self.dialect = dialect
        """Of the last format description."""
        self._compressed = dialect.compressed
        self._never_inside = dialect.never_inside
        self._special = frozenset({_FORMAT_DESCRIPTION, *dialect.compressed, *dialect.encrypted})
        if self._in_place:
            self._special |= {_ROTATE}
        if self.leaving_out:
            self._special |= frozenset(dialect.previous_gtids)

    def _moved(self, code: int, event: bytes, after: int, log_pos: int, inside: bool) -> int:
        """Return the offset after an event that does not directly follow the previous one.

        It would be `after` if it did.
        """
        before = self.offset
        if code in _HEARTBEATS:
            position = parse_heartbeat(event).position
            offset = position.offset
            if code == _HEARTBEAT:
                # It has only the low 32 bits.
                offset = (before & ~_LOW) | log_pos
                offset += (1 << 32) * (offset < before)
            if position.file == self.file and offset >= before:
                return self._bridged(offset, inside, "a heartbeat")
            raise BinlogError(f"a heartbeat at {position}")
        if code == _GTID_LIST and event[17] & ARTIFICIAL and log_pos:
            offset = (before & ~_LOW) | log_pos
            return self._bridged(offset + (1 << 32) * (offset < before), inside, "a GTID_LIST")
        if self.leaving_out and not inside and code in self.dialect.after_gaps:
            offset = (before & ~_LOW) | log_pos
            if offset > after:
                self.gaps += 1
                return offset
        # If the source dies it leaves a partial group, and the next file begins with a Rotate.
        if log_pos == 0 and code in _ARTIFICIAL and (not inside or code == _ROTATE):
            return before
        if log_pos == 0 and self.dialect.unplaced:
            return after
        raise BinlogError(
            f"an event of type {code}, {len(event)} bytes, that ends at {log_pos}:"
            " events are missing, duplicated or out of order"
        )

    def _reach(self, event: bytes) -> None:
        """Note which places are before a list of GTIDs.

        One list tells of several where their ends are at the beginning of a file, or where a later
        one is reached: a source leaves nothing out for those, and sends no list of its own.
        """
        listed = self.dialect.previous_gtids[event[4]](event)
        self.leaving_out = [place for place in self.leaving_out if not listed.has_reached(place)]

    def _bridged(self, offset: int, inside: bool, what: str) -> int:
        """Return where an event says that the next one begins."""
        if inside and offset != self.offset:
            raise BinlogError(f"{what} at {offset} inside a group: events are missing")
        self.gaps += offset != self.offset
        return offset

    def _rotate(self, to: Position, offset: int) -> None:
        # The first one says where a dump begins. After that there is always one that names the
        # next file, and usually one in the file before it too.
        here = Position(self.file, offset)
        if self.description is not None and to != here:
            at_its_start = here.offset == FIRST_EVENT or to.offset != FIRST_EVENT
            if at_its_start or to.file == here.file or to < here:
                raise BinlogError(f"a Rotate event to {to}")
        self.file, self.offset = to

"""A recorded binlog, ways to damage it, and readers of it that go all the way to the appliers."""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

from mtsd.apply.rows.streaming import RowStream
from mtsd.apply.sql import literals
from mtsd.binlog.bytes.framing import FileFramer
from mtsd.binlog.groups.grouper import Grouper
from mtsd.binlog.groups.rewrite import statements_of
from mtsd.binlog.sql.statement import disable_on_replica
from mtsd.cli.binlog import _group_cells, _json_group
from mtsd.cli.listing.event_listing import event_lines
from mtsd.cli.listing.row_listing import RowListing
from mtsd.filter.filter import Filter
from mtsd.model.errors import BinlogError, ServerError
from mtsd.model.group import Group, GroupChunk, GroupClosed, PositionReached, StreamItem
from mtsd.model.gtid import GtidSet
from mtsd.model.position import Position
from mtsd.model.step import Statement, StatementKind, row_events
from mtsd.replica.core.report import contents
from mtsd.wire.dump_packets import COM_BINLOG_DUMP, COM_REGISTER_SLAVE, dump, event_of, register
from mtsd.wire.framing import PacketFramer
from tests.servers.mysqld import Server

LARGEST = 64 << 10
ERRORS = (BinlogError, ServerError, EOFError)
"""What may come out of a damaged binlog, beside groups; EOFError is a dump's end."""

Outcome = tuple[list[StreamItem], BaseException | None]


@dataclass(frozen=True)
class Binlog:
    """A file, or what a source sends of it (`sequence`: the number of its first packet)."""

    name: str
    data: bytes
    checksums: bool
    sequence: int | None = None

    @classmethod
    def of(cls, server: Server, files: Sequence[Path]) -> list["Binlog"]:
        """Return the server's files, and each as a dump."""
        ((algorithm,),) = server.sql("SELECT @@global.binlog_checksum")
        checksums = algorithm != "NONE"
        found = []
        for path in files:
            data = path.read_bytes()
            assert len(data) <= LARGEST
            found.append(cls(path.name, data, checksums))
            found.append(cls(path.name, *_dumped(server, path.name, algorithm, len(data))))
        return found

    def events(self) -> list[bytes]:
        """Return the events, checksums included; of a dump the artificial ones too."""
        if self.sequence is None:
            return list(FileFramer().feed(self.data))
        return [payload[1:] for payload in PacketFramer(self.sequence).feed(self.data)]

    def framed(self, events: Iterable[bytes]) -> bytes:
        """Return these events as they stand in the file or the dump."""
        if self.sequence is None:
            return b"\xfebin" + b"".join(events)
        return b"".join(
            (len(event) + 1).to_bytes(3, "little") + bytes((self.sequence + at & 0xFF, 0)) + event
            for at, event in enumerate(events)
        )

    def feeder(self) -> Callable[[bytes], Iterable[bytes]]:
        """Return what cuts bytes into events."""
        if self.sequence is None:
            return FileFramer().feed
        return PacketFramer(self.sequence, event_of).feed

    def grouper(self, hold_bytes: int = 1 << 40, chunk_bytes: int = 1 << 40) -> Grouper:
        """Return what reads the events from the beginning."""
        return Grouper(
            start=Position(self.name, 4),
            next_number=1,
            checksums=self.checksums and self.sequence is not None,
            hold_bytes=hold_bytes,
            chunk_bytes=chunk_bytes,
            replicated=Filter(position_schema="mtsd"),
        )

    def read(self, data: bytes, sizes: Iterator[int], hold_bytes: int = 1 << 40) -> Outcome:
        """Return what `data` gives, in pieces of these sizes, and the error that ended it."""
        items: list[StreamItem] = []
        framer = FileFramer()
        cut = framer.feed if self.sequence is None else self.feeder()
        reader = self.grouper(hold_bytes, max(hold_bytes // 4, 1))
        at = 0
        try:
            while at < len(data):
                piece = data[at : at + next(sizes)]
                at += len(piece)
                for item in reader.groups(list(cut(piece))):
                    items.append(item)  # noqa: PERF402 - what came before an error counts
            if self.sequence is None:
                framer.finish()
        except ERRORS as error:
            return items, error
        return items, None


def _dumped(server: Server, name: str, algorithm: object, size: int) -> tuple[bytes, bool, int]:
    data = b""
    with closing(server.client()) as client:
        with client.cursor() as cursor:
            cursor.execute(f"SET @source_binlog_checksum = '{algorithm}'")
        client._execute_command(COM_REGISTER_SLAVE, register(4711, "", 0))
        client._read_ok_packet()
        client._execute_command(COM_BINLOG_DUMP, dump(4711, name, 4, to_the_end=True))
        sequence = client._next_seq_id
        framer = PacketFramer(sequence, event_of)
        with suppress(EOFError):
            while piece := client._rfile.read1(1 << 16):
                data += piece
                framer.feed(piece)
    # What follows belongs to the next file.
    binlog = Binlog(name, data, algorithm != "NONE", sequence)
    payloads = PacketFramer(sequence).feed(data)
    events: list[bytes] = []
    for payload in payloads:
        events.append(payload[1:])
        if int.from_bytes(payload[14:18], "little") == size:
            break
    return binlog.framed(events), binlog.checksums, sequence


def sizes(rng: random.Random, largest: int) -> Iterator[int]:
    """Yield sizes of pieces."""
    while True:
        yield rng.randrange(1, largest)


EXTREMES = (b"\0", b"\xff", b"\x7f\xff", b"\x80", b"\xfb", b"\xfc", b"\xfd", b"\xfe", b"\x01")


def damaged_event(rng: random.Random, event: bytes) -> bytes:
    """Return an event with a change of its bytes."""
    changed = bytearray(event or b"\0")
    at = rng.randrange(len(changed))
    match rng.randrange(7):
        case 0:
            changed[at] ^= 1 << rng.randrange(8)
        case 1:
            changed[at : at + 1] = rng.choice(EXTREMES)[:1]
        case 2:
            # A number of some size, huge or nothing.
            size = rng.choice((2, 3, 4, 8))
            value = rng.choice((0, 1, (1 << 8 * size) - 1, 1 << 8 * size - 1, rng.getrandbits(16)))
            changed[at : at + size] = value.to_bytes(8, "little")[:size]
        case 3:
            length = rng.choice((0, 1, 18, 19, 1 << 30, 0xFFFFFFFF, len(event) - 1))
            changed[9:13] = length.to_bytes(4, "little")
        case 4:
            del changed[at : at + rng.randrange(1, 40)]
        case 5:
            changed[at:at] = rng.randbytes(rng.randrange(1, 40))
        case _:
            source = rng.randrange(len(changed))
            size = rng.randrange(1, 64)
            changed[at : at + size] = changed[source : source + size]
    return bytes(changed)


def damaged_order(rng: random.Random, events: Sequence[bytes]) -> list[bytes]:
    """Return events that are lost, come twice, are swapped, or moved with what is behind them."""
    found = list(events)
    first, second = sorted(rng.sample(range(len(found)), 2))
    match rng.randrange(5):
        case 0:
            del found[first]
        case 1:
            found.insert(first, found[first])
        case 2:
            found[first], found[second] = found[second], found[first]
        case 3:
            found[first:second] = []
        case _:
            found[second:second] = found[first : first + rng.randrange(1, 12)]
    return found


def sealed_anew(
    rng: random.Random, events: Iterable[bytes], *, checksums: bool, place: bool
) -> list[bytes]:
    """Return events with right lengths and checksums, and, with `place`, right positions."""
    found: list[bytes] = []
    offset = 4
    for event in events:
        raw = bytearray(event.ljust(23, b"\0"))
        raw[9:13] = len(raw).to_bytes(4, "little")
        if raw[13:17] != b"\0\0\0\0" and raw[4] not in {27, 41}:
            offset += len(raw)
            if place:
                raw[13:17] = (offset & 0xFFFFFFFF).to_bytes(4, "little")
        if checksums and rng.random() < 0.99:
            raw[-4:] = crc32(raw[:-4]).to_bytes(4, "little")
        found.append(bytes(raw))
    return found


def use(item: StreamItem) -> None:
    """Do with an item whatever becomes of one: SQL, messages, listings. Raises BinlogError."""
    group = item.group if isinstance(item, GroupClosed) else item
    if isinstance(group, GroupChunk):
        list(RowStream(1000).statements(row_events(group.steps)))
    elif isinstance(group, PositionReached):
        literals.place(group.end)
        if group.gtids is not None:
            literals.text(str(group.gtids))
            assert GtidSet.parse(str(group.gtids)) == group.gtids
    elif isinstance(group, Group):
        literals.text(",".join(group.databases))
        literals.place(group.end)
        if group.gtid is not None:
            assert group.gtid in GtidSet.parse(str(group.gtid))
        assert all(cell.isprintable() for cell in _group_cells(group, group.number))
        _json_group(group, group.number).encode()
        for step in group.steps:
            if isinstance(step, Statement) and step.kind is StatementKind.EVENT_DDL:
                disable_on_replica(step.query.text)
        contents(group)
        if group.kind.value == "rows" and not group.unsupported:
            merge = group.row_flags is not None
            assert sum(map(len, statements_of(group.rows, 1000, merge=merge))) < 1 << 20


def list_events(binlog: Binlog, events: Sequence[bytes]) -> None:
    """List the events, as a command does; BinlogError ends that."""
    listing = RowListing()
    with suppress(BinlogError):
        for line in event_lines(binlog.name, events):
            assert line.summary().isprintable()
            line.as_json()
            for row in listing.below(line):
                assert all(text.isprintable() for text in row.text())
                row.as_json().encode()

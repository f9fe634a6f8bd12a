import struct
from collections.abc import Iterator
from contextlib import closing

import pymysql
import pytest

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.bytes.framing import FileFramer
from mtsd.binlog.events.previous_gtids import encode_gtid_set
from mtsd.model.errors import BinlogError, ServerError
from mtsd.model.gtid import GtidSet
from mtsd.wire.dump_packets import (
    COM_BINLOG_DUMP,
    COM_BINLOG_DUMP_GTID,
    COM_REGISTER_SLAVE,
    dump,
    dump_gtid,
    event_of,
    register,
)
from mtsd.wire.framing import PacketFramer
from tests.servers.mysqld import Server

HEAD = {
    EventType.FORMAT_DESCRIPTION_EVENT,
    EventType.PREVIOUS_GTIDS_LOG_EVENT,
    EventType.HEARTBEAT_LOG_EVENT_V2,
}
TRANSACTION = {EventType.GTID_LOG_EVENT, EventType.WRITE_ROWS_EVENT, EventType.XID_EVENT}


def payloads_of(client: pymysql.connections.Connection) -> Iterator[bytes]:
    framer = PacketFramer(client._next_seq_id)
    while True:
        # Odd sizes, so that packets are cut anywhere.
        data = client._rfile.read1(1013)
        if not data:
            return
        yield from framer.feed(data)


def dumped(server: Server, command: int, payload: bytes, last: bytes = b"") -> list[bytes]:
    """Return the events that the server sends up to `last`, without artificial ones."""
    events: list[bytes] = []
    with closing(server.client()) as client:
        with client.cursor() as cursor:
            cursor.execute("SET @source_binlog_checksum = 'CRC32'")
        client._execute_command(COM_REGISTER_SLAVE, register(4711, "a.test", 3306))
        client._read_ok_packet()
        client._execute_command(command, payload)
        for found in map(event_of, payloads_of(client)):
            if found[13:17] != bytes(4):
                events.append(found)
            if found == last:
                client._force_close()
                return events
    raise AssertionError(f"not among {len(events)} events")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server({"gtid_mode": "ON", "enforce_gtid_consistency": "ON"}) as server:
        server.sql("CREATE DATABASE d; CREATE TABLE d.t (a INT, b LONGTEXT)")
        server.sql("FLUSH BINARY LOGS")
        # An event of more than one packet of the protocol.
        server.sql("INSERT INTO d.t VALUES (1, REPEAT('x', 20 << 20)), (2, '')")
        server.sql("INSERT INTO d.t VALUES (3, '')")
        yield server


def events_in(server: Server, name: str) -> list[bytes]:
    return list(FileFramer().feed((server.datadir / name).read_bytes()))


@pytest.mark.servers
def test_by_position(server: Server) -> None:
    wanted = events_in(server, "binlog.000002")
    found = dumped(server, COM_BINLOG_DUMP, dump(4711, "binlog.000002", 4), wanted[-1])
    # The description of a file that is still written is sent without the flag that says so.
    assert found[0][4] == EventType.FORMAT_DESCRIPTION_EVENT
    assert found[1:] == wanted[1:]
    assert max(map(len, found)) > 20 << 20


@pytest.mark.servers
def test_by_position_in_the_middle(server: Server) -> None:
    events = events_in(server, "binlog.000002")
    offset = 4 + sum(map(len, events[:7]))
    found = dumped(server, COM_BINLOG_DUMP, dump(4711, "binlog.000002", offset), events[-1])
    assert found == events[7:]


@pytest.mark.servers
def test_by_gtid(server: Server) -> None:
    (uuid,) = server.sql("SELECT @@server_uuid")[0]
    events = [
        event for name in ("binlog.000001", "binlog.000002") for event in events_in(server, name)
    ]
    groups = [event for event in events if event[4] == EventType.GTID_LOG_EVENT]
    assert len(groups) == 4
    for executed in (0, 1, 3):
        known = GtidSet.parse(f"{uuid}:1-{executed}" if executed else "")
        payload = dump_gtid(4711, encode_gtid_set(known))
        found = dumped(server, COM_BINLOG_DUMP_GTID, payload, events[-1])
        after = found.index(groups[executed])
        assert {event[4] for event in found[:after]} <= HEAD
        wanted = events[events.index(groups[executed]) :]
        assert [event for event in found[after:] if event[4] in TRANSACTION] == [
            event for event in wanted if event[4] in TRANSACTION
        ]


@pytest.mark.servers
@pytest.mark.parametrize(
    ("file", "offset", "text"),
    [("binlog.000009", 4, "Could not find"), ("binlog.000002", 1 << 30, "position")],
)
def test_what_the_source_does_not_have(server: Server, file: str, offset: int, text: str) -> None:
    with pytest.raises(ServerError, match=text) as raised:
        dumped(server, COM_BINLOG_DUMP, dump(4711, file, offset))
    assert raised.value.number == 1236
    assert raised.value.sqlstate == "HY000"


def test_past_4_gib() -> None:
    assert dump(1, "f", (1 << 32) - 1)[:4] == b"\xff" * 4
    with pytest.raises(BinlogError, match="beyond 4 GiB"):
        dump(1, "f.000001", 1 << 32)


def test_a_long_host_name() -> None:
    payload = register(0xFFFFFFFF, "h" * 300, 65535)
    assert payload[:5] == b"\xff" * 4 + b"\x3c"
    assert len(payload) == 4 + 1 + 60 + 2 + 2 + 4 + 4


def test_event_of() -> None:
    assert event_of(b"\0event") == b"event"
    with pytest.raises(EOFError):
        event_of(b"\xfe\0\0\2\0")
    with pytest.raises(BinlogError, match="empty"):
        event_of(b"")
    for kind in (b"\1", b"\xef\0\0", b"\xfe" + bytes(9), b"\xff"):
        with pytest.raises(BinlogError, match="instead of an event"):
            event_of(kind)


@pytest.mark.parametrize(
    ("tail", "state", "text"),
    [
        (b"#HY000gone", "HY000", "gone"),
        (b"no state", "", "no state"),
        (b"#08S01\xc3\xa4\xff", "08S01", "ä�"),
        (b"", "", ""),
        (b"#HY000" + b"x" * (1 << 20), "HY000", "x" * 4096),
    ],
)
def test_an_error_packet(tail: bytes, state: str, text: str) -> None:
    with pytest.raises(ServerError) as raised:
        event_of(b"\xff" + struct.pack("<H", 1236) + tail)
    error = raised.value
    assert (error.number, error.sqlstate, error.text) == (1236, state, text)

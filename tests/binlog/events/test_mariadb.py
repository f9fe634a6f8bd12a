"""MariaDB's binlogs: recorded from real servers in every format, and their events by hand."""

import struct
import zlib
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.bytes.framing import FileFramer
from mtsd.binlog.events.decode import decode
from mtsd.binlog.events.dialect import MARIADB, MYSQL, dialect_of
from mtsd.binlog.events.event_reader import EventReader
from mtsd.binlog.events.format_description import parse_format_description
from mtsd.binlog.events.gtid_event import GtidEvent, Opens
from mtsd.binlog.events.load_data import parse_execute_load_query
from mtsd.binlog.events.mariadb_compressed import uncompressed, uncompressed_value
from mtsd.binlog.events.mariadb_gtid_event import parse_gtid_list, parse_mariadb_gtid
from mtsd.binlog.events.mariadb_notes import BinlogCheckpoint
from mtsd.binlog.events.query import parse_mariadb_query, parse_query, parse_status_variables
from mtsd.binlog.events.rows_query import RowsQuery
from mtsd.binlog.groups.grouper import Grouper
from mtsd.model.errors import BinlogError, NotSupportedError
from mtsd.model.group import Group, PositionReached, StreamItem
from mtsd.model.gtid import Gtid
from mtsd.model.position import FIRST_EVENT, Position
from mtsd.model.step import AlterPhase, Statement, StatementKind
from mtsd.model.temporary_tables import NONE_OPEN
from mtsd.model.xa_xid import XaXid
from tests.binlog.binlog_command import mtsd_binlog
from tests.binlog.building import query
from tests.binlog.mariadb_recording import MariadbRecording, recorded_mariadb
from tests.binlog.range_cases import declared, events, parts
from tests.binlog.transactions import placed
from tests.servers.mariadb import provide_mariadb
from tests.servers.mysqld import Server
from tests.servers.provision import Options

CONCURRENT = {"rows", "xa_prepare", "xa_complete", "non_transactional"}
OPEN = NONE_OPEN.opened((1, 7), ("a", "basket"))
ordinary = settings(max_examples=100, deadline=None, derandomize=True)

COMPRESSED: Options = {"log_bin_compress": "ON", "log_bin_compress_min_len": 10}
WAYS: dict[str, tuple[str, Options]] = {
    "10.11-row": ("10.11", {"binlog_format": "ROW"}),
    "10.11-statement": ("10.11", {"binlog_format": "STATEMENT", "binlog_checksum": "NONE"}),
    "10.11-compressed": ("10.11", {"binlog_format": "ROW", **COMPRESSED}),
    "11.8-row": ("11.8", {"binlog_format": "ROW", "binlog_checksum": "NONE"}),
    "11.8-mixed": ("11.8", {"binlog_format": "MIXED", **COMPRESSED}),
    "11.8-compressed": (
        "11.8",
        {"binlog_format": "ROW", "binlog_annotate_row_events": "OFF", **COMPRESSED},
    ),
}


@pytest.fixture(scope="module", params=WAYS)
def mariadb(request: pytest.FixtureRequest) -> Iterator[MariadbRecording]:
    with recorded_mariadb(*WAYS[request.param]) as recording:
        yield recording


def grouped(data: bytes, name: str) -> list[StreamItem]:
    grouper = Grouper(
        start=Position(name, FIRST_EVENT),
        next_number=1,
        checksums=False,
        hold_bytes=1 << 20,
        chunk_bytes=1 << 20,
    )
    return list(grouper.groups(list(FileFramer().feed(data))))


def read(data: bytes) -> list[bytes]:
    reader = EventReader(Position("", FIRST_EVENT))
    return [reader.read(event) for event in FileFramer().feed(data)]


@pytest.mark.servers
def test_every_transaction_is_a_group_under_its_gtid(mariadb: MariadbRecording) -> None:
    items = grouped(mariadb.data, mariadb.file.name)
    groups = {str(item.gtid): item for item in items if isinstance(item, Group)}
    for statement, kind, gtid in mariadb.expected:
        group = groups[gtid]
        wanted = {
            "changes": "rows" if mariadb.rows else "statements",
            "copy": "create_select" if mariadb.rows else "ddl",
        }.get(kind, kind)
        assert group.kind.value == wanted, statement
        assert not group.unsupported, statement
        named = XaXid(1, statement.split("'")[1].encode(), b"") if wanted.startswith("xa") else None
        assert group.xid == named, statement
        if mariadb.rows or wanted == "ddl":
            assert group.databases in {("a",), ()}, statement
        of_tables = kind == "ddl" and statement != "CREATE DATABASE a"
        assert group.alone or of_tables or wanted in CONCURRENT, statement
    (first_of_alter,) = (
        group
        for gtid, group in groups.items()
        if gtid not in {gtid for *_, gtid in mariadb.expected}
    )
    assert first_of_alter.kind.value == "empty"
    (told_at_start,) = (item.gtids for item in items if isinstance(item, PositionReached)
                        and item.gtids is not None)  # fmt: skip
    assert not told_at_start


@pytest.mark.servers
def test_a_table_is_created_and_filled_by_one_group(mariadb: MariadbRecording) -> None:
    if not mariadb.rows:
        return
    items = grouped(mariadb.data, mariadb.file.name)
    (copy,) = (item for item in items if isinstance(item, Group) and item.kind.value ==
               "create_select")  # fmt: skip
    created, _rows = copy.steps
    assert isinstance(created, Statement)
    assert created.kind is StatementKind.CREATE_SELECT
    assert copy.rows


@pytest.mark.servers
def test_the_next_file_says_what_was_executed_before_it(mariadb: MariadbRecording) -> None:
    following = mariadb.server.sql("SHOW MASTER STATUS")[0][0]
    data = (mariadb.server.datadir / following).read_bytes()
    ((state,),) = mariadb.server.sql("SELECT @@gtid_binlog_state")
    (known,) = (
        item.gtids
        for item in grouped(data, following)
        if isinstance(item, PositionReached) and item.gtids is not None
    )
    assert sorted(str(known).split(",")) == sorted(state.split(","))


@pytest.mark.servers
def test_ranges_of_any_size_have_the_groups_of_the_file(mariadb: MariadbRecording) -> None:
    data = mariadb.data
    whole = declared(parts(data))
    assert len(whole) > len(mariadb.expected)
    for size in (97, 500, 1777):
        cuts = range(FIRST_EVENT + size, len(data), size)
        assert declared(parts(data, cuts)) == whole
        assert events(data, cuts) == events(data)


@pytest.mark.servers
def test_its_files_and_its_dump_are_listed(
    mariadb: MariadbRecording, capsys: pytest.CaptureFixture[str]
) -> None:
    assert mtsd_binlog(mariadb.file) == 0
    listed = capsys.readouterr().out
    assert mtsd_binlog("--events", mariadb.file) == 0
    listed_events = capsys.readouterr().out
    for _, _, gtid in mariadb.expected:
        assert f" {gtid} " in listed
        assert f" {gtid}" in listed_events
    assert ("INSERT INTO a.m VALUES (1)" in listed_events) == (
        mariadb.server.options.get("binlog_annotate_row_events") != "OFF"
    )


@pytest.mark.servers
def test_notes_are_decoded(mariadb: MariadbRecording) -> None:
    decoded = [decode(event) for event in read(mariadb.data)]
    (checkpoint,) = (each for each in decoded if isinstance(each, BinlogCheckpoint))
    assert checkpoint.file == mariadb.file.name
    texts = {each.statement for each in decoded if isinstance(each, RowsQuery)}
    annotated = mariadb.rows and mariadb.server.options.get("binlog_annotate_row_events") != "OFF"
    assert (b"INSERT INTO a.m VALUES (1)" in texts) == annotated


@pytest.mark.servers
def test_no_event_survives_a_changed_byte(mariadb: MariadbRecording) -> None:
    """Whatever is damaged, decoding ends in BinlogError; checksums would show it before."""
    for event in read(mariadb.data):
        if event[4] == EventType.FORMAT_DESCRIPTION_EVENT:
            continue
        for at in range(19, min(len(event), 60)):
            for change in (0x01, 0x80, 0xFF):
                damaged = bytearray(event)
                damaged[at] ^= change
                try:
                    decode(bytes(damaged))
                except BinlogError:
                    continue


@pytest.mark.servers
@pytest.mark.parametrize("known", [True, False])
def test_a_dump_by_gtid_goes_on_where_it_was(mariadb: MariadbRecording, known: bool) -> None:
    """It begins with its file, and a list that is in no file bridges what is left out."""
    name = mariadb.file.name
    items = grouped(mariadb.data, name)
    left_out, *_ = (item for item in items if isinstance(item, Group))
    raw = list(FileFramer().feed(mariadb.data))
    at = left_out.end.offset
    bridge = struct.pack("<IBIIIHI", 0, 163, 1, 27, at, 0x20, 0) + b"\0\0\0\0"
    offsets = [FIRST_EVENT + sum(map(len, raw[: n + 1])) for n in range(len(raw))]
    checksums = mariadb.server.options.get("binlog_checksum") != "NONE"
    if checksums:
        bridge = bridge[:-4] + struct.pack("<I", zlib.crc32(bridge[:-4]))
    else:
        bridge = bridge[:9] + struct.pack("<I", 23) + bridge[13:-4]
    grouper = Grouper(
        start=Position(name, at if known else FIRST_EVENT),
        next_number=2,
        checksums=checksums,
        hold_bytes=1 << 20,
        chunk_bytes=1 << 20,
        temporary=OPEN,
    )
    # As in a dump, the first event is a Rotate that is in no file.
    first = offsets.index(at) + 1
    rotate = struct.pack("<IBIIIHQ", 0, 4, 1, 27 + len(name), 0, 0x20, 4) + name.encode()
    if checksums:
        rotate = rotate[:9] + struct.pack("<I", len(rotate) + 4) + rotate[13:]
        rotate += struct.pack("<I", zlib.crc32(rotate))
    found = list(grouper.groups([rotate, *raw[:2], bridge, *raw[first:]]))
    groups = [item for item in found if isinstance(item, Group)]
    assert [group.end for group in groups] == [
        item.end for item in items if isinstance(item, Group)
    ][1:]
    assert grouper.temporary == (OPEN if known else NONE_OPEN.with_gap())
    with pytest.raises(BinlogError, match="missing"):
        list(grouper.groups([raw[-2]]))


@pytest.mark.servers
def test_what_a_dump_by_gtid_leaves_out_before_it_reaches_its_places(
    mariadb: MariadbRecording,
) -> None:
    items = grouped(mariadb.data, mariadb.file.name)
    first, second, *others = (item for item in items if isinstance(item, Group))
    raw = list(FileFramer().feed(mariadb.data))
    offsets = [FIRST_EVENT + sum(map(len, raw[: n + 1])) for n in range(len(raw))]
    begin, end = offsets.index(first.end.offset) + 1, offsets.index(second.end.offset) + 1

    def groups(sent: list[bytes], leaving_out: Sequence[Gtid]) -> list[Position]:
        grouper = Grouper(
            start=Position(mariadb.file.name, FIRST_EVENT),
            next_number=1,
            checksums=False,
            hold_bytes=1 << 20,
            chunk_bytes=1 << 20,
            leaving_out=leaving_out,
        )
        return [item.end for item in grouper.groups(sent) if isinstance(item, Group)]

    without = [*raw[:begin], *raw[end:]]
    ahead = [Gtid("7-1", 5)]
    assert groups(without, ahead) == [first.end, *(group.end for group in others)]
    for damaged, leaving_out in (
        (without, []),
        ([*raw[:begin], *raw[end + 1 :]], ahead),
        ([*raw[:begin], *raw[begin + 1 :]], ahead),
        ([*raw[:end], *raw[begin:]], ahead),
    ):
        with pytest.raises(BinlogError, match=r"missing|outside|without"):
            groups(damaged, leaving_out)


@pytest.mark.servers
@pytest.mark.parametrize("series", ["10.11", "11.8"])
def test_nothing_is_left_out_behind_the_places_that_one_list_tells_of(series: str) -> None:
    """Such as that of a file before which several domains end: the source adds no other one."""
    with Server({"server_id": 1}, installation=provide_mariadb(series)) as server:
        server.sql("CREATE DATABASE a; SET gtid_domain_id = 1; CREATE DATABASE b")
        server.sql("FLUSH BINARY LOGS; CREATE DATABASE c; CREATE DATABASE d; CREATE DATABASE e")
        file, *_ = server.binlog_end()
        raw = list(FileFramer().feed((server.datadir / file).read_bytes()))
    first = next(n for n, event in enumerate(raw) if event[4] == EventType.MARIADB_GTID_EVENT)

    def read_by(places: list[Gtid], sent: list[bytes]) -> int:
        grouper = Grouper(
            start=Position(file, FIRST_EVENT),
            next_number=1,
            checksums=False,
            hold_bytes=1 << 20,
            chunk_bytes=1 << 20,
            leaving_out=places,
        )
        return sum(isinstance(item, Group) for item in grouper.groups(sent))

    places = [Gtid("0-1", 1), Gtid("1-1", 1)]
    assert read_by(places, raw) == 3
    lost = [*raw[: first + 2], *raw[first + 4 :]]
    with pytest.raises(BinlogError, match="missing"):
        read_by(places, lost)
    assert read_by([Gtid("0-1", 3), Gtid("1-1", 1)], lost) == 2


def event_of(kind: EventType, body: bytes, server: int = 3) -> bytes:
    return struct.pack("<IBIIIH", 9, kind, server, 19 + len(body), 0, 0) + body


def gtid_event(flags: int, rest: bytes = b"") -> bytes:
    body = struct.pack("<QIB", 100, 7, flags) + rest
    return event_of(EventType.MARIADB_GTID_EVENT, body.ljust(19, b"\0"))


XID = struct.pack("<IBB", 1, 2, 1) + b"abc"


@pytest.mark.parametrize(
    ("flags", "rest", "opens", "commit_id"),
    [
        (0x0C, b"", Opens.TRANSACTION, 0),
        (0x0E, struct.pack("<Q", 55), Opens.TRANSACTION, 55),
        (0x29, b"", Opens.NOTHING, 0),
        (0x28, b"", Opens.CREATE_SELECT, 0),
        (0x4C, XID, Opens.XA, 0),
        (0x4E, struct.pack("<Q", 55) + XID + b"\x01\xff", Opens.XA, 55),
        (0x8D, XID, Opens.NOTHING, 0),
        (0x29, b"\x02", Opens.NOTHING, 0),
        (0x29, b"\x14" + bytes(8) + bytes(4), Opens.NOTHING, 0),
    ],
)
def test_what_a_gtid_event_begins(flags: int, rest: bytes, opens: Opens, commit_id: int) -> None:
    found = parse_mariadb_gtid(gtid_event(flags, rest))
    assert (found.gtid, found.opens, found.commit_id) == (
        Gtid("7-3", 100), opens, commit_id,
    )  # fmt: skip
    assert found.xid == (XaXid(1, b"ab", b"c") if XID in rest else None)
    assert isinstance(decode(gtid_event(flags, rest)), GtidEvent)


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (gtid_event(0x0C)[:-1], "cut off"),
        (gtid_event(0x0C, b"\x20"), "unknown extra flags 0x20"),
        (gtid_event(0x0C, b"\x01\x01\x07"), "unexpected bytes"),
        (gtid_event(0x4C, struct.pack("<IBB", 1, 65, 0) + bytes(65)), "65 and 0 bytes"),
        (event_of(EventType.MARIADB_GTID_EVENT, bytes(19)), "number is 0"),
    ],
)
def test_a_gtid_event_that_is_not_understood(event: bytes, said: str) -> None:
    with pytest.raises(BinlogError, match=said):
        parse_mariadb_gtid(event)


def test_a_gtid_list_keeps_the_order_of_each_domain() -> None:
    entries = [(0, 2, 105), (0, 1, 100), (7, 1, 3)]
    body = struct.pack("<I", len(entries) | 1 << 28) + b"".join(
        struct.pack("<IIQ", *entry) for entry in entries
    )
    found = parse_gtid_list(event_of(EventType.MARIADB_GTID_LIST_EVENT, body))
    assert str(found) == "0-2-105,0-1-100,7-1-3"
    assert [str(each) for each in found.places()] == ["0-1-100", "7-1-3"]
    for wrong in (body[:-1], body + b"\0", b"\1\0"):
        with pytest.raises(BinlogError):
            parse_gtid_list(event_of(EventType.MARIADB_GTID_LIST_EVENT, wrong))


def test_status_variables_of_mariadb() -> None:
    status = b"\x80\x01\x02\x03" + b"\x81" + bytes(range(8)) + b"\x83\x01\x2d\x00\x2b\x09"
    found = parse_status_variables(status)
    assert found.microseconds == 0x030201
    # Definitions of temporary tables have it too.
    assert found.ddl_xid is None
    assert found.context.character_set_collations == ((45, 2347),)
    for flags, phase in ((2, AlterPhase.START), (4, AlterPhase.COMMIT), (8, AlterPhase.ROLLBACK)):
        number = bytes(8) if flags > 2 else b""
        assert parse_status_variables(b"\x82" + bytes((flags,)) + number).alter_phase is phase


def packed(data: bytes, length: int | None = None) -> bytes:
    size = len(data) if length is None else length
    digits = size.to_bytes(max(1, (size.bit_length() + 7) // 8), "big")
    return bytes((0x80 | len(digits),)) + digits + zlib.compress(data)


def compressed_query(statement: bytes) -> bytes:
    head = struct.pack("<IIBHH", 5, 0, 1, 0, 2) + b"\x07\x00" + b"d\0"
    return event_of(EventType.MARIADB_QUERY_COMPRESSED_EVENT, head + statement)


@ordinary
@given(st.binary(min_size=1, max_size=70_000))
def test_a_compressed_statement_is_what_it_was(statement: bytes) -> None:
    plain = uncompressed(compressed_query(packed(statement)))
    assert plain[4] == EventType.QUERY_EVENT
    assert int.from_bytes(plain[9:13], "little") == len(plain)
    assert plain.endswith(b"d\0" + statement)


@pytest.mark.parametrize(
    "statement",
    [
        b"",
        b"\x80",
        b"\x91\x01" + zlib.compress(b"a"),
        b"\x01\x01" + zlib.compress(b"a"),
        b"\x85\x00\x00\x00\x00\x01" + zlib.compress(b"a"),
        packed(b"abc", 2),
        packed(b"abc", 4),
        packed(b"abc", 1 << 24),
        packed(b"abc")[:-1],
        packed(b"abc") + b"x",
    ],
)
def test_a_compressed_statement_that_is_damaged(statement: bytes) -> None:
    with pytest.raises(BinlogError):
        uncompressed(compressed_query(statement))


@given(st.binary(max_size=2000), st.sampled_from([None, 15, -15]))
def test_a_value_of_a_compressed_column(value: bytes, bits: int | None) -> None:
    if bits is None or not value:
        raw = b"\0" + value if value else b""
    else:
        deflate = zlib.compressobj(wbits=bits)
        head = 0x82 | (bits < 0) << 3
        raw = struct.pack(">BH", head, len(value)) + deflate.compress(value) + deflate.flush()
    assert uncompressed_value(raw) == value


@pytest.mark.parametrize("raw", [
    b"\x10abc", b"\x80", b"\x81", b"\x81\x03", b"\x89\x03" + zlib.compress(b"abc"),
    b"\x81\x04" + zlib.compress(b"abc"), b"\x85\0\0\0\0\x03" + zlib.compress(b"abc"),
    b"\x84\xff\xff\xff\xff" + zlib.compress(b"abc"),
])  # fmt: skip
def test_a_damaged_value_of_a_compressed_column(raw: bytes) -> None:
    with pytest.raises(BinlogError, match="compressed"):
        uncompressed_value(raw)


def test_the_family_is_that_of_the_version() -> None:
    assert dialect_of("9.7.0") is MYSQL
    assert dialect_of("10.11.18-MariaDB-log") is MARIADB
    assert dialect_of("5.5.5-10.6.1-MariaDB") is MARIADB


def described(version: bytes) -> bytes:
    lengths = bytes((56, 13, 0, 8, 0, 18, 0, 4, 4, 4, 4, 18, 0, 0, 228))
    body = struct.pack("<H50sIB", 4, version, 0, 19) + lengths + b"\0" + bytes(4)
    return event_of(EventType.FORMAT_DESCRIPTION_EVENT, body)


def test_a_mariadb_that_is_too_old_is_refused() -> None:
    assert parse_format_description(described(b"5.5.5-10.5.1-MariaDB")).server_version
    for version in (b"10.4.34-MariaDB-log", b"5.5.5-10.4.34-MariaDB"):
        with pytest.raises(BinlogError, match=r"10\.5 or later"):
            parse_format_description(described(version))


def test_an_encrypted_file_is_refused_with_the_reason() -> None:
    reader = EventReader(Position("binlog.000001", FIRST_EVENT), in_place=False)
    reader.read(described(b"10.11.1-MariaDB"))
    encryption = event_of(EventType.MARIADB_START_ENCRYPTION_EVENT, bytes(17))
    with pytest.raises(NotSupportedError, match=r"binlog\.000001 is encrypted \(encrypt_binlog\)"):
        reader.read(encryption)


@pytest.mark.parametrize("in_file", [True, False])
def test_a_dump_of_an_encrypted_file_is_not_encrypted(in_file: bool) -> None:
    """Its server says so by a flag; where a dump begins inside the file, that has no place."""
    description = described(b"10.11.1-MariaDB")
    start = FIRST_EVENT if in_file else 4000
    reader = EventReader(Position("binlog.000001", start))
    reader.read(placed([description])[0] if in_file else description)
    before = reader.offset
    encryption = event_of(EventType.MARIADB_START_ENCRYPTION_EVENT, bytes(17))
    encryption = encryption[:17] + b"\x80\0" + encryption[19:]
    reader.read(placed([encryption], before)[0] if in_file else encryption)
    assert reader.offset == before + len(encryption) * in_file
    following = placed([gtid_event(0)], reader.offset)[0]
    assert reader.read(following) == following


@pytest.mark.parametrize(
    ("statement", "itself"),
    [
        ("SET STATEMENT max_statement_time=1 FOR CREATE EVENT e DO SELECT 1",
         "CREATE EVENT e DO SELECT 1"),
        ("/* x */ set statement a = f('FOR', (SELECT 1 FOR UPDATE)), `for` = 1 for\nDROP TABLE t",
         "DROP TABLE t"),
        ("ANALYZE INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (1)"),
        ("set statement a = 1 for /**/ analyze format = json update t SET a = 1",
         "update t SET a = 1"),
        ("ANALYZE TABLE t", None),
        ("ANALYZE LOCAL TABLES format, insert", None),
        ("SET PASSWORD FOR statement = 'x'", None),
        ("INSERT INTO statement VALUES (1)", None),
        ("SET STATEMENT = 1", None),
    ],
)  # fmt: skip
def test_what_stands_before_is_not_for_a_replica(statement: str, itself: str | None) -> None:
    found = parse_mariadb_query(query(statement.encode(), database=b"d"))
    assert found.statement.decode() == (itself or statement)
    assert parse_query(query(statement.encode())).statement.decode() == statement


def test_where_the_file_is_after_set_statement() -> None:
    prefix, statement = b"SET STATEMENT sql_mode='' FOR ", b"LOAD DATA INFILE 'f' INTO TABLE t"
    start = len(prefix) + statement.index(b"INFILE")
    end = len(prefix) + statement.index(b"INTO")
    fixed = struct.pack("<IIBHH", 7, 0, 1, 0, 0) + struct.pack("<IIIB", 3, start, end, 0)
    event = event_of(EventType.EXECUTE_LOAD_QUERY_EVENT, fixed + b"d\0" + prefix + statement)
    found, file = parse_execute_load_query(event, parse_mariadb_query)
    assert found.statement == statement
    assert statement[file.name_start : file.name_end] == b"INFILE 'f' "

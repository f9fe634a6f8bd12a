import re
import struct
from dataclasses import replace

import pytest

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.events.gtid_event import GtidEvent, parse_gtid
from mtsd.model.errors import BinlogError
from mtsd.model.gtid import Gtid, GtidSet
from tests.binlog.building import event, varlen
from tests.binlog.recording import TAGGED, Recording
from tests.binlog.tagged_gtids import FIELDS, SID, UUID, signed, tagged

HEAD = struct.pack("<B16sqBqq", 1, SID, 7, 2, 3, 4)


def plain(tail: bytes, head: bytes = HEAD, kind: int = EventType.GTID_LOG_EVENT) -> bytes:
    return event(kind, head + tail)


def test_every_field_as_mysqlbinlog_prints_it(recording: Recording) -> None:
    texts = [recording.server.tool("mysqlbinlog", path.name).decode() for path in recording.files]
    printed = re.findall(
        r"last_committed=(\d+)\tsequence_number=(\d+)\trbr_only=(\w+)\t"
        r"original_committed_timestamp=(\d+)\timmediate_commit_timestamp=(\d+)\t"
        r"transaction_length=(\d+)\n.*?"
        r"session.original_server_version=(\d+).*?session.immediate_server_version=(\d+).*?"
        r"GTID_NEXT= '([^']+)'",
        "".join(texts),
        re.DOTALL,
    )
    ours = [
        (
            str(found.last_committed),
            str(found.sequence_number),
            "no" if found.may_have_statements else "yes",
            str(found.original_commit_time),
            str(found.immediate_commit_time),
            str(found.transaction_length),
            str(found.original_server_version),
            str(found.immediate_server_version),
            str(found.gtid),
        )
        for found in recording.decoded(GtidEvent)
    ]
    assert ours == printed
    assert len(ours) > 50


def test_together_they_are_what_was_executed(recording: Recording) -> None:
    found = GtidSet()
    for head in recording.decoded(GtidEvent):
        assert head.gtid
        found.add(head.gtid)
    assert found == GtidSet.parse(recording.gtid_executed)
    assert Gtid(TAGGED, 77, "other") in found
    assert Gtid(TAGGED, 1234567890123) in found


def test_times_and_versions_of_another_origin(recording: Recording) -> None:
    found = [
        head
        for head in recording.decoded(GtidEvent)
        if head.original_commit_time != head.immediate_commit_time
    ]
    assert [head.original_commit_time for head in found] == [1234567890123456, 1234567890123457]
    assert [head.original_server_version for head in found] == [80011, 80011]
    assert [bool(head.gtid and head.gtid.tag) for head in found] == [False, True]


def test_an_anonymous_group_as_9_writes_it() -> None:
    tail = bytes.fromhex("00a0724e180906 fc2c01 10620100")
    found = parse_gtid(
        plain(
            tail, struct.pack("<B16sqBqq", 0, SID, 0, 2, 8, 9), EventType.ANONYMOUS_GTID_LOG_EVENT
        )
    )
    assert found == GtidEvent(
        None, False, 8, 9, 0x0609184E72A000, 0x0609184E72A000, 300, 90640, 90640, None
    )


@pytest.mark.parametrize(
    ("length", "encoded"),
    [
        (250, "fa"),
        (251, "fcfb00"),
        (65536, "fd000001"),
        (1 << 24, "fe0000000100000000"),
        (5 << 32, "fe0000000005000000"),
    ],
)
def test_every_size_of_transaction_length(length: int, encoded: str) -> None:
    found = parse_gtid(plain(bytes(7) + bytes.fromhex(encoded) + b"\x10\x62\x01\x00"))
    assert (found.transaction_length, found.immediate_server_version) == (length, 90640)


def test_all_that_is_optional() -> None:
    tail = (
        (5 | 1 << 55).to_bytes(7, "little")
        + (4).to_bytes(7, "little")
        + b"\x64"
        + struct.pack("<II", 90704 | 1 << 31, 80041)
        + (99).to_bytes(8, "little")
    )
    found = parse_gtid(plain(tail))
    assert found == GtidEvent(Gtid(UUID, 7), True, 3, 4, 5, 4, 100, 90704, 80041, 99)


def test_the_forms_of_older_servers() -> None:
    assert parse_gtid(plain(b"", HEAD[:25])) == GtidEvent(
        Gtid(UUID, 7), True, 0, 0, 0, 0, 0, 0, 0, None
    )
    assert parse_gtid(plain(b"")) == GtidEvent(Gtid(UUID, 7), True, 3, 4, 0, 0, 0, 0, 0, None)


def shortened(recorded: bytes, size: int) -> bytes:
    """Return a real event as if it ended after `size` bytes of its body."""
    event = recorded[: 19 + size]
    return event[:9] + len(event).to_bytes(4, "little") + event[13:]


def test_the_forms_of_8_0_before_8_0_14(recording: Recording) -> None:
    real = next(
        event for event in recording.of(EventType.GTID_LOG_EVENT)
        if parse_gtid(event).original_commit_time == parse_gtid(event).immediate_commit_time
    )  # fmt: skip
    now = parse_gtid(real)
    of_8_0_13 = replace(now, immediate_server_version=0, original_server_version=0)
    end = len(real) - 19 - 4
    assert parse_gtid(shortened(real, end)) == of_8_0_13
    assert parse_gtid(shortened(real, len(HEAD) + 7)) == replace(of_8_0_13, transaction_length=0)
    for damaged in (*range(len(HEAD) + 1, len(HEAD) + 7), *range(end + 1, end + 4)):
        with pytest.raises(BinlogError, match="GTID event"):
            parse_gtid(shortened(real, damaged))
    original = (5 | 1 << 55).to_bytes(7, "little") + (4).to_bytes(7, "little")
    assert parse_gtid(plain(original + b"\x64")).transaction_length == 100
    assert parse_gtid(plain(original)).original_commit_time == 4


def test_a_tagged_one_with_and_without_the_optional_fields() -> None:
    gtid = Gtid(UUID, 1 << 62, "tag")
    when = 1795258616317314
    assert parse_gtid(tagged(FIELDS)) == GtidEvent(
        gtid, True, 5, 6, when, when, 1000, 90704, 90704, None
    )
    full = sorted([*FIELDS, (7, varlen(8)), (10, varlen(80400)), (11, varlen(1 << 63))])
    assert parse_gtid(tagged(full)) == GtidEvent(
        gtid, True, 5, 6, when, 8, 1000, 90704, 80400, 1 << 63
    )


def test_a_tagged_ones_unknown_field_that_may_be_ignored() -> None:
    assert parse_gtid(tagged([*FIELDS, (12, b"anything")])) == parse_gtid(tagged(FIELDS))


@pytest.mark.parametrize(
    ("damaged", "message"),
    [
        (tagged(FIELDS, version=2), "unknown format version 2"),
        (tagged(FIELDS, needed=12), "field 12 is required but unknown"),
        (tagged(FIELDS)[:-1], "announces"),
        (tagged(FIELDS[1:]), "no field flags"),
        (tagged(FIELDS[:1] + FIELDS[2:]), "no field UUID"),
        (tagged(FIELDS[:-1]), "no field immediate server version"),
        (tagged([*FIELDS, (2, b"\0")]), "field 2 comes after field 9"),
        (tagged([FIELDS[0], FIELDS[1], (2, signed(-1)), *FIELDS[3:]]), "-1 is not positive"),
        (tagged([*FIELDS[:3], (3, varlen(33) + b"t" * 33), *FIELDS[4:]]), "'t{33}' is not a tag"),
        (tagged([*FIELDS[:3], (3, varlen(4) + b"a':1"), *FIELDS[4:]]), "a':1\" is not a tag"),
        (tagged([*FIELDS[:3], (3, varlen(1) + b"A"), *FIELDS[4:]]), "'A' is not a tag"),
        (tagged([*FIELDS[:6], (6, varlen(1 << 55)), *FIELDS[7:]]), "time 36028797018963968 is too"),
        (tagged([*FIELDS[:8], (9, varlen(1 << 31))]), "server version 2147483648 is too large"),
        (tagged([FIELDS[0], (1, varlen(256) + bytes(15)), *FIELDS[2:]]), "256 is not a byte"),
        (plain(b"", HEAD[:24]), "a body of 24 bytes has no known format"),
        (plain(b"\0"), "a body of 43 bytes has no known format"),
        (plain(bytes(10)), "cut off after"),
        (plain(b"\0" * 6 + b"\x80"), "cut off after"),
        (plain(b"\0" * 6 + b"\x80" + bytes(5)), "cut off after"),
        (plain(bytes(7) + b"\xff" + bytes(8)), "does not start a length-encoded integer"),
        (plain(bytes(15)), "3 unexpected bytes at its end"),
        (plain(bytes(12), HEAD[:25] + b"\1" + HEAD[26:]), "unknown type 1"),
        (plain(b"", HEAD[:25] + b"\1" + HEAD[26:]), "unknown type 1"),
        (plain(bytes(12), struct.pack("<B16sqBqq", 0, SID, 0, 2, 1, 2)), "0 is not positive"),
        (plain(bytes(12), kind=EventType.ANONYMOUS_GTID_LOG_EVENT), "anonymous, but"),
        (plain(bytes(12), kind=EventType.QUERY_EVENT), "is not 33, 34 or 42"),
        (b"", "a body of -19 bytes"),
    ],
)
def test_what_is_refused(damaged: bytes, message: str) -> None:
    with pytest.raises(BinlogError, match=message):
        parse_gtid(damaged)

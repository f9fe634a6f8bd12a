import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.events.gtid_event import GtidEvent, parse_gtid
from mtsd.binlog.events.previous_gtids import decode_gtid_set, encode_gtid_set, parse_previous_gtids
from mtsd.model.errors import BinlogError
from mtsd.model.gtid import GtidSet
from tests.binlog.recording import Recording

UUID = bytes(range(16))


def test_real_ones_hold_what_came_before_and_encode_to_the_same_bytes(
    recording: Recording,
) -> None:
    before = GtidSet()
    forms = set()
    for raw in recording.raw:
        if raw[4] == EventType.PREVIOUS_GTIDS_LOG_EVENT:
            found = parse_previous_gtids(raw)
            assert found == before
            assert encode_gtid_set(found) == raw[19:]
            forms.add(raw[26])
        elif raw[4] in {EventType.GTID_LOG_EVENT, EventType.GTID_TAGGED_LOG_EVENT}:
            head: GtidEvent = parse_gtid(raw)
            assert head.gtid
            before.add(head.gtid)
    # Without tags, and with them.
    assert forms == {0, 1}


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["0" * 8, "a" * 8, "f" * 8]),
            st.sampled_from(["", "a", "tag_2", "x" * 32]),
            st.integers(1, (1 << 63) - 2),
            st.integers(1, 100),
        )
    )
)
def test_every_set_comes_back(entries: list[tuple[str, str, int, int]]) -> None:
    gtids = GtidSet()
    for start, tag, first, count in entries:
        uuid = f"{start}-0000-0000-0000-00000000000a"
        gtids.add_interval(uuid, tag, first, min(first + count, (1 << 63) - 1))
    assert decode_gtid_set(encode_gtid_set(gtids)) == gtids


def entry(*numbers: int) -> bytes:
    return UUID + b"".join(number.to_bytes(8, "little", signed=True) for number in numbers)


ONE = (1).to_bytes(8, "little")


@pytest.mark.parametrize(
    ("damaged", "message"),
    [
        (bytes(7), "number of entries of 8 bytes"),
        (ONE, "UUID of 16 bytes"),
        (b"\xff" * 6 + b"\0\0", "UUID of 16 bytes"),
        (ONE + entry(1 << 40), "1099511627776 intervals do not fit into 0 bytes"),
        (ONE + entry(1, 5, 5), "interval 5 to 5 after 0"),
        (ONE + entry(1, 0, 5), "interval 0 to 5 after 0"),
        (ONE + entry(2, 1, 5, 5, 7), "interval 5 to 7 after 5"),
        (ONE + entry(1, 1, 5) + b"x", "1 unexpected bytes at its end"),
        (b"\2" + bytes(7) + entry(1, 1, 5) + entry(1, 7, 9), "occurs twice"),
        (b"\0" * 7 + b"\x02", "unknown format 2"),
        (b"\0" * 7 + b"\x01", "begins with format 0, ends with 1"),
        (b"\1\1" + bytes(5) + b"\1" + UUID + b"\x04Tt", "'Tt' is not a tag"),
        (b"\1\1" + bytes(5) + b"\1" + UUID + b"\x82tag", "cut off|exceeds the end"),
    ],
)
def test_what_is_refused(damaged: bytes, message: str) -> None:
    with pytest.raises(BinlogError, match=message):
        decode_gtid_set(damaged)

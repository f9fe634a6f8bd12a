from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtsd.binlog.bytes.checksum import strip_checksum, verify_format_description
from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.bytes.framing import FileFramer
from mtsd.model.errors import BinlogError
from tests.binlog.building import event
from tests.binlog.recording import Recording
from tests.binlog.transactions import sealed


def events_in(path: Path) -> list[bytes]:
    return list(FileFramer().feed(path.read_bytes()))


@given(st.binary(max_size=50))
def test_what_is_stripped_is_the_checksum(body: bytes) -> None:
    plain = event(EventType.QUERY_EVENT, body)
    assert strip_checksum(sealed(plain)) == sealed(plain)[:-4]


@given(st.binary(max_size=50), st.data())
def test_any_flipped_bit_is_noticed(body: bytes, data: st.DataObject) -> None:
    damaged = bytearray(sealed(event(EventType.QUERY_EVENT, body)))
    bit = data.draw(st.integers(0, len(damaged) * 8 - 1))
    damaged[bit // 8] ^= 1 << bit % 8
    with pytest.raises(BinlogError, match="checksum mismatch in an event of type"):
        strip_checksum(bytes(damaged))


@pytest.mark.parametrize("size", [0, 19, 22])
def test_no_room(size: int) -> None:
    with pytest.raises(BinlogError, match="too short for its checksum"):
        strip_checksum(bytes(size))


def test_events_of_a_server(recording: Recording) -> None:
    for path in recording.files:
        description, *others = events_in(path)
        verify_format_description(description)
        for found in others:
            assert strip_checksum(found) == found[:-4]


def test_a_format_description(recording: Recording) -> None:
    description = events_in(recording.files[0])[0]
    in_use = bytearray(description)
    in_use[17] ^= 1
    verify_format_description(bytes(in_use))
    for at in (0, 4, 9, 18, 19, 30, 75, 100, len(description) - 1):
        damaged = bytearray(description)
        damaged[at] ^= 0x10
        with pytest.raises(BinlogError, match="checksum mismatch in a format description"):
            verify_format_description(bytes(damaged))


def test_a_format_description_without_a_checksum(recording: Recording) -> None:
    description = bytearray(events_in(recording.files[0])[0])
    description[-5] = 0
    with pytest.raises(BinlogError, match="checksum mismatch"):
        # The algorithm itself is what was damaged.
        verify_format_description(bytes(description))
    description[-4:] = b"any."
    verify_format_description(bytes(description))


@pytest.mark.parametrize("size", [0, 19, 23])
def test_a_format_description_that_is_cut_off(size: int) -> None:
    with pytest.raises(BinlogError, match="too short for its checksum"):
        verify_format_description(b"\1" * size)

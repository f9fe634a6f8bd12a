import pytest

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.events.rotate import Rotate, parse_rotate
from mtsd.model.errors import BinlogError
from mtsd.model.position import Position
from tests.binlog.building import event
from tests.binlog.recording import Recording

PLACE = (4).to_bytes(8, "little")


def test_real_ones_name_the_next_file(recording: Recording) -> None:
    found = [parse_rotate(raw) for raw in recording.of(EventType.ROTATE_EVENT)]
    names = [path.name for path in recording.files]
    assert [rotate.position.file for rotate in found][:-1] == names[1:]
    assert {rotate.position.offset for rotate in found} == {4}


def test_an_offset_past_four_gigabytes() -> None:
    raw = event(EventType.ROTATE_EVENT, (1 << 40).to_bytes(8, "little") + b"binlog.000009")
    assert parse_rotate(raw) == Rotate(Position("binlog.000009", 1 << 40))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (bytes(7), "offset of 8 bytes"),
        (PLACE, "a file name of 0 bytes"),
        (PLACE + b"b" * 513, "a file name of 513 bytes"),
        (PLACE + b"binlog.000001\x00\x01\x02\x03", "is not a file name"),
        (PLACE + b"\xff", "is not UTF-8"),
        (bytes(8) + b"binlog.000001", "0 is not a position in a file"),
        (bytes(7) + b"\x80binlog.000001", "9223372036854775808 is not a position in a file"),
    ],
)
def test_what_is_refused(body: bytes, message: str) -> None:
    with pytest.raises(BinlogError, match=message):
        parse_rotate(event(EventType.ROTATE_EVENT, body))

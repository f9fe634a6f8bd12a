import pytest

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.bytes.header import EventHeader, parse_header
from mtsd.model.errors import BinlogError
from tests.binlog.recording import Recording


def test_fields() -> None:
    event = bytes.fromhex("01000000 02 03000000 04000000 05000000 8100")
    assert parse_header(event) == EventHeader(1, 2, 3, 4, 5, 0x81)


def test_too_short() -> None:
    with pytest.raises(BinlogError, match="18 bytes"):
        parse_header(bytes(18))


def test_real_headers_lead_from_event_to_event(recording: Recording) -> None:
    server_id = recording.server.options["server_id"]
    position = 4
    for event in recording.raw:
        header = parse_header(event)
        if header.type == EventType.FORMAT_DESCRIPTION_EVENT:
            position = 4
        position += header.size
        assert header.log_pos == position
        assert header.server_id == server_id
        assert header.timestamp >= 1_700_000_000

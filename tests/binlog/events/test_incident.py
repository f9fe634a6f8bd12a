import pytest

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.events.incident import LOST_EVENTS, Incident, parse_incident
from mtsd.model.errors import BinlogError
from tests.binlog.building import event


def test_fields() -> None:
    raw = event(EventType.INCIDENT_EVENT, b"\1\0\x0ferror writing\xff!")
    assert parse_incident(raw) == Incident(LOST_EVENTS, "error writing\ufffd!")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"\1", "number of 2 bytes"),
        (b"\1\0\5lost", "message of 5 bytes"),
        (b"\1\0\3lost", "1 unexpected bytes"),
    ],
)
def test_what_is_refused(body: bytes, message: str) -> None:
    with pytest.raises(BinlogError, match=message):
        parse_incident(event(EventType.INCIDENT_EVENT, body))

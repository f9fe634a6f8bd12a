import pytest

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.events.xa_prepare import XaPrepare, parse_xa_prepare
from mtsd.model.errors import BinlogError
from tests.binlog.building import event
from tests.binlog.recording import Recording

BODY = bytes.fromhex("00 ffffffff 02000000 01000000 616263")


def test_real_ones(recording: Recording) -> None:
    assert recording.decoded(XaPrepare) == [
        XaPrepare(one_phase=False, format_id=3, gtrid=b"gtrid", bqual=b"bqual"),
        XaPrepare(one_phase=True, format_id=1, gtrid=b"one", bqual=b""),
    ]


def test_fields() -> None:
    found = parse_xa_prepare(event(EventType.XA_PREPARE_LOG_EVENT, BODY))
    assert found == XaPrepare(one_phase=False, format_id=-1, gtrid=b"ab", bqual=b"c")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (BODY[:4], "format id of 4 bytes"),
        (b"\2" + BODY[1:], "one phase is 2"),
        (BODY[:-1], "bqual of 1 bytes"),
        (BODY + b"x", "1 unexpected bytes"),
        (BODY[:5] + b"\xff\xff\xff\xff" + BODY[9:], "a name with parts of 4294967295 and 1 bytes"),
    ],
)
def test_what_is_refused(body: bytes, message: str) -> None:
    with pytest.raises(BinlogError, match=message):
        parse_xa_prepare(event(EventType.XA_PREPARE_LOG_EVENT, body))

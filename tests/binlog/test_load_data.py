import pytest

from mtsd.binlog.event_type import EventType
from mtsd.binlog.load_data import LoadData, parse_load_data
from mtsd.model.errors import BinlogError
from tests.binlog.building import event
from tests.binlog.recording import Recording


def test_real_ones(recording: Recording) -> None:
    assert recording.decoded(LoadData) == [
        LoadData(EventType.BEGIN_LOAD_QUERY_EVENT),
        LoadData(EventType.EXECUTE_LOAD_QUERY_EVENT),
    ]


def test_another_event() -> None:
    with pytest.raises(BinlogError, match="QUERY_EVENT is not an event of LOAD DATA"):
        parse_load_data(event(EventType.QUERY_EVENT, b""))

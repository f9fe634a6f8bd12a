"""What a person is told of a source's words about its binary log."""

import pytest

from mtsd.model.errors import ServerError
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.position import Position
from mtsd.source.dump_errors import explained_dump
from mtsd.source.received import Received


@pytest.mark.parametrize(
    "answer",
    [
        "binlog truncated in the middle of event; consider out of disk space on source",
        "bogus data in log event",
    ],
)
def test_no_event_begins_there(answer: str) -> None:
    error = ServerError(1236, "HY000", f"{answer}; the first event 'b.000002' at 198")
    said = explained_dump(error, Received(LowWaterMark(1, Position("b.000002", 198), None)))
    assert answer in said
    assert "RESET BINARY LOGS AND GTIDS" in said

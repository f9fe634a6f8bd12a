"""Row events taken apart row by row lose nothing."""

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.events.rows import ROW_EVENTS, STMT_END, parse_rows_header
from mtsd.binlog.values.single_rows import mapped_rows, single_rows
from tests.binlog.recording import Recording


def test_the_rows_of_an_event_are_the_event(recording: Recording) -> None:
    several = 0
    kinds: set[int] = set()
    for rows in mapped_rows(recording.of(EventType.TABLE_MAP_EVENT, *ROW_EVENTS)):
        singles = list(single_rows(rows, mariadb=False))
        at = parse_rows_header(rows.event).rows_at
        assert b"".join(each.event[at:] for each in singles) == rows.event[at:]
        for each in singles:
            assert each.event[:at] == rows.event[:at]
            assert each.event[25] & STMT_END
            assert [again.event for again in single_rows(each, mariadb=False)] == [each.event]
        several += len(singles) > 1
        kinds.add(rows.event[4])
    assert several
    assert EventType.PARTIAL_UPDATE_ROWS_EVENT in kinds

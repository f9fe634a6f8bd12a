"""When a start of the source is concealed, and shown only by a first file that nothing precedes."""

from dataclasses import replace

import pytest

from mtsd.binlog.events.event_reader import EventReader
from mtsd.binlog.groups.known_temporary_tables import KnownTemporaryTables
from mtsd.model.position import Position
from mtsd.model.temporary_tables import NONE_OPEN, TemporaryTables

START = Position("f.000001", 4)
OPEN = TemporaryTables(complete=True, by_thread={(1, 7): frozenset({("d", "t")})})


@pytest.mark.parametrize(
    ("start", "first", "gaps", "known", "told"),
    [
        (START, True, 0, NONE_OPEN, True),
        (START, False, 0, OPEN, False),
        # What was left out may have been the start, and tables that were opened after it.
        (START, True, 1, replace(OPEN, complete=False), True),
        # By GTID, a dump may begin before the tables that are known.
        (Position("", 0), True, 0, OPEN, False),
    ],
)
def test_a_first_file(
    start: Position, *, first: bool, gaps: int, known: TemporaryTables, told: bool
) -> None:
    reader = EventReader(start)
    tables = KnownTemporaryTables(OPEN, start, reader)
    reader.file, reader.offset, reader.gaps = "f.000001", 500, gaps
    news = tables.after_previous_gtids(first=first)
    assert tables.known == known
    assert (news is not None) == told

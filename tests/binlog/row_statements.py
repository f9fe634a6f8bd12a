"""Statements of row events as a source writes them, at random, and what must be true of ours."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from hypothesis import strategies as st

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.bytes.framing import FileFramer
from tests.binlog.transactions import STMT_END, rows, table_map

_MAP = EventType.TABLE_MAP_EVENT
_KINDS = (
    EventType.WRITE_ROWS_EVENT,
    EventType.UPDATE_ROWS_EVENT,
    EventType.DELETE_ROWS_EVENT_V1,
    EventType.PARTIAL_UPDATE_ROWS_EVENT,
)


@dataclass(frozen=True)
class Change:
    """One row event: `events` before it are not counted."""

    event: bytes
    definition: bytes
    """What its table id stands for."""
    statement: int
    """The source's statement that it belongs to."""


@st.composite
def source_statement(draw: st.DrawFn, flags: Sequence[int] = (0,)) -> list[bytes]:
    """Return the events of one statement of a source: table maps, then rows, the last ends it.

    Some tables are mapped and not changed; an id may stand for another table than before.
    """
    ids = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3, unique=True))
    events = [table_map(number, table=draw(st.sampled_from("ab"))) for number in ids]
    count = draw(st.integers(1, 5))
    for index in range(count):
        end = STMT_END if index == count - 1 else 0
        events.append(
            rows(
                draw(st.sampled_from(ids)),
                bytes(draw(st.integers(0, 60) | st.just(5_000))),
                draw(st.sampled_from(flags)) | end,
                draw(st.sampled_from(_KINDS)),
            )
        )
    return events


def changes(events: Iterable[bytes]) -> list[Change]:
    """Return the row events with what their tables are, in order."""
    definitions: dict[bytes, bytes] = {}
    found: list[Change] = []
    statement = 0
    for event in events:
        table = event[19:25]
        if event[4] == _MAP:
            definitions[table] = event[25:]
        else:
            plain = event[:25] + bytes((event[25] & ~STMT_END,)) + event[26:]
            found.append(Change(plain, definitions[table], statement))
            statement += event[25] & STMT_END
    return found


def split(statement: bytes) -> list[bytes]:
    """Return the events of one of our statements, by the lengths in their headers."""
    framer = FileFramer(at_start=False)
    events = list(framer.feed(statement))
    framer.finish()
    return events


def check(statements: Sequence[bytes], source: Sequence[bytes], limit: int) -> list[list[Change]]:
    """Check that our statements are sound, and say the same as the source's events.

    Returns the source's changes by our statements.
    """
    wanted = changes(source)
    found: list[list[Change]] = []
    taken = 0
    for statement in statements:
        events = split(statement)
        maps = [event for event in events if event[4] == _MAP]
        ours = events[len(maps) :]
        assert ours
        assert all(event[4] != _MAP for event in ours), "the maps go first"
        assert [event[25] & STMT_END for event in ours] == [0] * (len(ours) - 1) + [STMT_END]
        ids = [event[19:25] for event in maps]
        assert len(ids) == len(set(ids)), "one definition of each table"
        assert set(ids) == {event[19:25] for event in ours}, "those that are needed"
        assert len(ours) == 1 or len(statement) <= limit
        part = wanted[taken : taken + len(ours)]
        taken += len(ours)
        assert [(change.event, change.definition) for change in changes(events)] == [
            (change.event, change.definition) for change in part
        ]
        found.append(part)
    assert taken == len(wanted), "nothing is left out"
    return found


def could_join(before: list[Change], after: list[Change], limit: int) -> bool:
    """Tell whether the first event of a statement would have fitted into the one before it."""
    first = after[0]
    definitions = {change.event[19:25]: change.definition for change in before}
    if definitions.get(first.event[19:25], first.definition) != first.definition:
        return False
    definitions[first.event[19:25]] = first.definition
    size = sum(25 + len(definition) for definition in definitions.values())
    return size + sum(len(change.event) for change in [*before, first]) <= limit


def assert_as_few_as_can_be(parts: list[list[Change]], limit: int) -> None:
    """Check that no statement was ended before it had to be."""
    for before, after in pairwise(parts):
        assert not could_join(before, after, limit)

"""What the low-water mark says of temporary tables is what reading everything up to it says.

A source's binlog of sessions that make and drop temporary tables, of rotations and restarts, read
by grouper and GAQ with groups that commit in any order, with lost connections and with restarts of
mtsd that begin anew at the mark with what was stored there.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from mtsd.binlog.bytes.event_type import THREAD_SPECIFIC, EventType
from mtsd.binlog.groups.grouper import Grouper
from mtsd.model.group import Group, GroupClosed, PositionReached
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.position import FIRST_EVENT, Position
from mtsd.model.temporary_tables import (
    MOST,
    NONE_OPEN,
    NOT_KNOWN,
    SourceThread,
    TableName,
    TemporaryTables,
)
from mtsd.schedule.done.group_assigned_queue import GroupAssignedQueue
from tests.binlog.building import description, event, query
from tests.binlog.transactions import begin, gtid, placed, rows, table_map, xid

Tables = dict[SourceThread, frozenset[TableName]]
NAMES = ("t", "T", "ü", "a b")
HOLD_BYTES = 2000


def specific(thread: int, statement: str, database: str = "d") -> bytes:
    """Return a statement of a thread, with the flag THREAD_SPECIFIC."""
    made = query(statement.encode(), database=database.encode(), flags=THREAD_SPECIFIC)
    return made[:19] + thread.to_bytes(4, "little") + made[23:]


@dataclass
class Source:
    """A source's binlog, and what is open after each of its places."""

    known: bool
    """Whether the first file is that of the server's start."""
    files: list[list[bytes]] = field(default_factory=list)
    open: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    at: dict[Position, TemporaryTables] = field(default_factory=dict)
    complete: bool = False

    def __post_init__(self) -> None:
        self.begin_file(created=7 * self.known)

    @property
    def file(self) -> str:
        return f"f.{len(self.files):06}"

    @property
    def end(self) -> Position:
        return Position(self.file, FIRST_EVENT + sum(map(len, self.files[-1])))

    def begin_file(self, created: int) -> None:
        if created:
            self.complete = True
            self.open.clear()
        self.files.append([])
        self.write(description(created=created, algorithm=0))

    def write(self, *events: bytes) -> None:
        """Write what ends a group, or stands between groups."""
        self.files[-1] += placed(events, self.end.offset)
        tables: Tables = {
            (1, thread): frozenset(("d", name) for name in names)
            for thread, names in self.open.items()
            if names
        }
        self.at[self.end] = TemporaryTables(self.complete, tables)

    def half(self, *events: bytes) -> None:
        """Write what has no end."""
        self.files[-1] += placed(events, self.end.offset)

    def act(self, action: str, thread: int, name: str, other: str, number: int) -> None:
        """Do what an action says, and write it."""
        tables = self.open[thread]
        quoted, renamed = f"`{name}`", f"d.`{other}`"
        match action:
            case "create":
                tables.add(name)
                self.write(
                    specific(thread, f"CREATE TEMPORARY TABLE IF NOT EXISTS {quoted} (a INT)")
                )
            case "create inside":
                tables.add(name)
                made = specific(thread, f"create /* x */ temporary table d.{quoted} like b", "x")
                self.write(gtid(number), begin(), made, query(b"ROLLBACK"))
            case "drop":
                tables.discard(name)
                self.write(specific(thread, f"DROP TEMPORARY TABLE IF EXISTS {quoted}, d.nope"))
            case "drop both":
                tables -= {name, other}
                dropped = specific(thread, f"DROP TEMPORARY TABLE {renamed},{quoted} /* by x */")
                self.write(gtid(number), begin(), dropped, query(b"COMMIT"))
            case "rename":
                if name in tables:
                    tables.remove(name)
                    tables.add(other)
                self.write(specific(
                    thread, f"ALTER TABLE {quoted} ADD b SET('a,', 'b'), RENAME TO {renamed}"
                ))  # fmt: skip
            case "end":
                names = ",".join(f"`{table}`" for table in sorted(tables))
                tables.clear()
                dropped = specific(thread, f"DROP /*!40005 TEMPORARY */ TABLE IF EXISTS {names}")
                self.write(dropped)
            case "use":
                self.write(specific(thread, f"TRUNCATE {quoted}"))
            case "rows":
                self.write(gtid(number), begin(), table_map(5), rows(5), xid())
            case "large":
                many = [rows(5, bytes(500), flags=0) for _ in range(6)]
                self.write(gtid(number), begin(), table_map(5), *many, rows(5), xid())
            case "rotate":
                self.write(event(EventType.ROTATE_EVENT, bytes((4,)) + bytes(7) + self.next_file()))
                state = self.at[self.end]
                self.begin_file(created=0)
                self.at[Position(self.file, FIRST_EVENT)] = state
            case "crash":
                self.half(
                    gtid(number), begin(), specific(thread, f"CREATE TEMPORARY TABLE {quoted}")
                )
                self.begin_file(created=number)
            case _:
                self.write(event(EventType.STOP_EVENT, b""))
                self.begin_file(created=number)

    def next_file(self) -> bytes:
        return f"f.{len(self.files) + 1:06}".encode()

    def dump(self, start: Position) -> list[bytes]:
        """Return what the source sends from there on."""
        sent: list[bytes] = []
        for index, events in enumerate(self.files):
            name = f"f.{index + 1:06}"
            if name < start.file:
                continue
            offset = max(FIRST_EVENT, start.offset if name == start.file else 0)
            body = offset.to_bytes(8, "little") + name.encode()
            sent.append(event(EventType.ROTATE_EVENT, body))
            if offset > FIRST_EVENT:
                described = bytearray(events[0])
                described[13:17] = described[71:75] = bytes(4)
                sent.append(bytes(described))
            at = FIRST_EVENT
            for each in events:
                if at >= offset:
                    sent.append(each)
                at += len(each)
        return sent


class Reading:
    """What mtsd has read from a mark on, on one connection after another."""

    def __init__(self, source: Source, mark: LowWaterMark) -> None:
        self.source = source
        self.gaq = GroupAssignedQueue(mark)
        self.position = mark.position
        self.unfinished: list[Group] = []
        self.number = mark.number
        self.connect(mark.temporary)

    def connect(self, temporary: TemporaryTables) -> None:
        self.grouper = Grouper(
            start=self.position,
            next_number=self.number + 1,
            checksums=False,
            hold_bytes=HOLD_BYTES,
            chunk_bytes=1000,
            temporary=temporary,
        )
        self.events = self.source.dump(self.position)

    def reconnect(self) -> None:
        list(self.grouper.abandon())
        self.connect(self.grouper.temporary)

    def read(self, count: int) -> None:
        """Read so many events more."""
        taken, self.events = self.events[:count], self.events[count:]
        for item in self.grouper.groups(taken):
            group = item.group if isinstance(item, GroupClosed) else item
            if isinstance(group, Group):
                self.gaq.enter(group, done=item is not group)
                self.number, self.position = group.number, group.end
                if item is group:
                    self.unfinished.append(group)
            elif isinstance(group, PositionReached):
                self.gaq.reach(group.end, group.gtids, group.temporary)
                self.position = group.end

    def commit(self, choice: int) -> None:
        """Commit one of the groups that are on their way."""
        if self.unfinished:
            self.gaq.commit([self.unfinished.pop(choice % len(self.unfinished))])

    def checked(self) -> LowWaterMark:
        """Return the mark as it is stored, which says what is true there."""
        mark = self.gaq.mark()
        expected = self.source.at.get(mark.position, NOT_KNOWN)
        assert mark.temporary == expected, mark
        temporary = TemporaryTables.parse(mark.temporary.text())
        assert temporary == mark.temporary
        return LowWaterMark(mark.number, mark.position, None, temporary)


ACTIONS = st.tuples(
    st.sampled_from(["create", "create", "create inside", "drop", "drop both", "rename", "end",
                     "use", "rows", "rows", "large", "rotate", "crash", "restart"]),
    st.integers(1, 3),
    st.sampled_from(NAMES),
    st.sampled_from(NAMES),
)  # fmt: skip
STEPS = st.lists(
    st.tuples(st.sampled_from(["read", "read", "commit", "commit", "reconnect", "restart"]),
              st.integers(1, 12)),
    max_size=40,
)  # fmt: skip


@settings(max_examples=150, deadline=None, derandomize=True)
@given(known=st.booleans(), actions=st.lists(ACTIONS, max_size=25), steps=STEPS)
def test_the_mark_says_what_reading_everything_says(
    known: bool, actions: Sequence[tuple[str, int, str, str]], steps: Sequence[tuple[str, int]]
) -> None:
    source = Source(known)
    for number, (action, thread, name, other) in enumerate(actions, 1):
        source.act(action, thread, name, other, number)
    reading = Reading(source, LowWaterMark(0, Position("f.000001", FIRST_EVENT), None))
    for step, choice in steps:
        match step:
            case "read":
                reading.read(choice)
            case "commit":
                reading.commit(choice)
            case "reconnect":
                reading.reconnect()
            case _:
                reading = Reading(source, reading.checked())
        reading.checked()
    reading.read(len(reading.events))
    while reading.unfinished:
        reading.commit(0)
    assert reading.checked().position == source.end
    assert reading.grouper.temporary == source.at[source.end]


def test_too_many_to_be_kept() -> None:
    temporary = NONE_OPEN
    for number in range(MOST):
        temporary = temporary.opened((1, number % 7), ("d", f"t{number}"))
    assert temporary.complete
    assert not temporary.may_have((1, 7))
    assert temporary.opened((1, 7), ("d", "t")) == NOT_KNOWN
    assert NONE_OPEN.opened((1, 7), ("d", "t" * 300)) == NOT_KNOWN


def test_a_text_that_mtsd_cannot_have_written_tells_nothing() -> None:
    for text in ("{", "null", "[1]", '{"complete": true}', '{"complete": true, "threads": [7]}'):
        assert TemporaryTables.parse(text) == NOT_KNOWN
    assert not TemporaryTables.parse('{"complete": "yes", "threads": []}').complete

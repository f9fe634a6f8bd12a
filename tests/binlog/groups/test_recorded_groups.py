"""A real server's binlog, and the groups that are read out of it."""

import random
import re
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace

import pymysql
import pytest

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.bytes.framing import FileFramer
from mtsd.filter.filter import Filter
from mtsd.model.errors import BinlogError
from mtsd.model.group import (
    Group,
    GroupChunk,
    GroupClosed,
    GroupDropped,
    GroupOpened,
    PositionReached,
    StreamItem,
)
from mtsd.model.gtid import GtidSet
from mtsd.model.position import Position
from mtsd.model.step import Rows, Step, row_events
from tests.binlog.group_cases import ANONYMOUS, CASES, Case, Wanted
from tests.binlog.transactions import UNBOUNDED, grouper, types_of
from tests.servers.mysqld import Server

pytestmark = pytest.mark.servers

OPTIONS = {"gtid_mode": "ON", "enforce_gtid_consistency": "ON"}
_TOLD = re.compile(
    r"end_log_pos (\d+) .*\s(?:Anonymous_)?GTID\s+last_committed=(\d+)\s+sequence_number=(\d+)"
    r".*immediate_commit_timestamp=(\d+)\s+transaction_length=(\d+)"
)


@dataclass
class Recorded:
    """A server's binlog files, and what it says of them itself."""

    files: dict[str, list[bytes]] = field(default_factory=dict)
    shown: dict[str, list[tuple[str, int, str, int, int, str]]] = field(default_factory=dict)
    declared: dict[str, list[tuple[int, ...]]] = field(default_factory=dict)
    """Of each group: end of its GTID event, last_committed, sequence_number, time, length."""
    ranges: dict[str, tuple[Position, Position]] = field(default_factory=dict)

    def items(
        self,
        hold_bytes: int = UNBOUNDED,
        chunk_bytes: int = UNBOUNDED,
        position_schema: str = "mtsd",
    ) -> list[StreamItem]:
        """Return what the files give, the end of each included."""
        reader = grouper(
            start=Position(next(iter(self.files)), 4),
            hold_bytes=hold_bytes,
            chunk_bytes=chunk_bytes,
            replicated=Filter(position_schema=position_schema),
        )
        found: list[StreamItem] = []
        for events in self.files.values():
            found += reader.groups(events)
        return found

    def groups(self) -> list[Group]:
        """Return all groups."""
        return [item for item in self.items() if isinstance(item, Group)]


def position(server: Server) -> Position:
    (name, offset, *_), *_ = server.sql("SHOW BINARY LOG STATUS")
    return Position(str(name), int(offset))


def play(server: Server, case: Case) -> tuple[Position, Position]:
    with closing(server.client(case.database)) as client, client.cursor() as cursor:
        for statement in case.setup:
            cursor.execute(statement)
        start = position(server)
        for statement in case.statements:
            cursor.execute(statement)
    return start, position(server)


@pytest.fixture(scope="module")
def recorded() -> Recorded:
    recorded = Recorded()
    with Server(OPTIONS) as server:
        for index, case in enumerate(CASES):
            if case.name == "LOAD DATA":
                (server.datadir / "d1" / "load.txt").write_text("30\n31\n")
            recorded.ranges[case.name] = play(server, case)
            if index == 10:
                server.sql("FLUSH BINARY LOGS")
        for mode in ("ON_PERMISSIVE", "OFF_PERMISSIVE", "OFF"):
            server.sql(f"SET GLOBAL gtid_mode = {mode}")
        server.sql("SET GLOBAL enforce_gtid_consistency = OFF")
        for case in ANONYMOUS:
            recorded.ranges[case.name] = play(server, case)
        # A statement that is too large for its cache, and cannot be undone, leaves an incident.
        server.sql("SET GLOBAL max_binlog_stmt_cache_size = 4096")
        server.sql("CREATE TABLE d1.large (a LONGTEXT) ENGINE = MyISAM")
        with suppress(pymysql.err.OperationalError):
            server.sql("INSERT INTO d1.large VALUES (REPEAT('x', 100000))")
        names = [str(name) for name, *_ in server.sql("SHOW BINARY LOGS")]
        for name in names:
            recorded.shown[name] = [
                (str(file), int(at), str(kind), int(number), int(end), str(info))
                for file, at, kind, number, end, info in server.sql(
                    f"SHOW BINLOG EVENTS IN '{name}'"
                )
            ]
        server.stop()
        for name in names:
            data = (server.datadir / name).read_bytes()
            framer = FileFramer()
            recorded.files[name] = list(framer.feed(data))
            framer.finish()
            text = server.tool("mysqlbinlog", "--base64-output=DECODE-ROWS", name).decode()
            recorded.declared[name] = [tuple(map(int, found)) for found in _TOLD.findall(text)]
    return recorded


@pytest.mark.parametrize("case", [*CASES, *ANONYMOUS], ids=lambda case: case.name)
def test_what_a_client_did(recorded: Recorded, case: Case) -> None:
    start, end = recorded.ranges[case.name]
    found = [group for group in recorded.groups() if start < group.end <= end]
    assert [
        Wanted(
            group.kind.value,
            tuple(sorted(group.databases)),
            tuple(types_of(group.steps)),
            group.alone,
            group.unsupported,
            str(group.gtid) if group.gtid and "-bbbb-" in str(group.gtid) else "",
        )
        for group in found
    ] == [
        Wanted(
            wanted.kind,
            tuple(sorted(wanted.databases)),
            wanted.types,
            wanted.alone,
            wanted.unsupported,
            wanted.gtid,
        )
        for wanted in case.wanted
    ]


def test_every_group_is_there_once(recorded: Recorded) -> None:
    groups = recorded.groups()
    assert [group.number for group in groups] == list(range(1, len(groups) + 1))
    ends = []
    for file, shown in recorded.shown.items():
        kinds = [kind for _, _, kind, *_ in shown]
        starts = [index for index, kind in enumerate(kinds) if "gtid" in kind.lower()]
        # The first is Previous_gtids, and behind the last group there may be a Rotate.
        starts = [*starts[1:], len(shown) - kinds.count("Rotate")]
        ends += [Position(file, shown[index - 1][4]) for index in starts[1:]]
    assert [group.end for group in groups] == ends


def test_heads(recorded: Recorded) -> None:
    groups = recorded.groups()
    wanted = []
    for file, shown in recorded.shown.items():
        heads = [info for _, _, kind, _, _, info in shown if "gtid" in kind.lower() and "'" in info]
        declared = recorded.declared[file]
        assert len(heads) == len(declared)
        wanted += [
            (head.split("'")[1], *numbers[1:4])
            for head, numbers in zip(heads, declared, strict=True)
        ]
    assert [
        (
            str(group.gtid or "ANONYMOUS"),
            group.last_committed,
            group.sequence_number,
            group.commit_time,
        )
        for group in groups
    ] == wanted
    assert {str(group.gtid is None) for group in groups} == {"True", "False"}


def test_an_incident_keeps_its_gtid(recorded: Recorded) -> None:
    *_, last = recorded.groups()
    assert last.kind.value == "incident"
    assert last.sequence_number > 0
    assert last.steps == ()


def test_between_the_groups(recorded: Recorded) -> None:
    """Rotate, format description, Previous_gtids and Stop move the position; nothing else does."""
    reached = [item for item in recorded.items() if isinstance(item, PositionReached)]
    wanted = []
    for file, events in recorded.files.items():
        offset = 4
        for event in events:
            offset += len(event)
            if event[4] in {15, 35, 3}:
                wanted.append(Position(file, offset))
            elif event[4] == EventType.ROTATE_EVENT:
                name = event[27:-4].decode()
                wanted.append(Position(name, 4))
    assert [item.end for item in reached] == wanted
    assert list(recorded.files.values())[-1][-1][4] == EventType.STOP_EVENT


def test_previous_gtids_are_what_came_before(recorded: Recorded) -> None:
    seen = GtidSet()
    declared = 0
    for item in recorded.items():
        if isinstance(item, PositionReached) and item.gtids is not None:
            assert item.gtids == seen
            declared += 1
        elif isinstance(item, Group) and item.gtid is not None:
            seen.add(item.gtid)
    assert declared == len(recorded.files) > 2


def apart(steps: Sequence[Step]) -> Iterator[Step | bytes]:
    """Yield every row event by itself, and the other steps."""
    for step in steps:
        if isinstance(step, Rows):
            yield from step.events
        else:
            yield step


def last_size(chunk: GroupChunk) -> int:
    """Return the bytes that the last event had, roughly: of a statement, all around its text."""
    *_, last = apart(chunk.steps)
    return len(last) if isinstance(last, bytes) else chunk.size


@pytest.mark.parametrize(("hold", "chunk"), [(0, 1), (200, 100), (200, 1 << 20), (3000, 500)])
def test_streamed_groups_are_the_same(recorded: Recorded, hold: int, chunk: int) -> None:
    whole = {group.number: group for group in recorded.groups()}
    opened: GroupOpened | None = None
    pieces: list[GroupChunk] = []
    streamed = 0
    for item in recorded.items(hold, chunk):
        if isinstance(item, GroupOpened):
            assert opened is None
            opened, pieces = item, []
        elif isinstance(item, GroupChunk):
            assert opened is not None
            assert item.steps
            if all(isinstance(step, Rows) for step in item.steps):
                assert item.size == sum(map(len, row_events(item.steps)))
            # Not larger than it must be.
            assert item.size - last_size(item) <= (hold if not pieces else min(hold, chunk))
            pieces.append(item)
        elif isinstance(item, GroupClosed):
            assert opened is not None
            assert pieces
            group = whole.pop(item.group.number)
            assert opened.number == group.number
            assert opened.gtid == group.gtid
            assert opened.commit_time == group.commit_time
            assert opened.format_description == group.format_description
            assert opened.creates_table == (group.kind.value == "create_select")
            # What is found later is told at the end.
            assert opened.unsupported in {"", group.unsupported}
            steps = tuple(step for piece in pieces for step in piece.steps)
            if group.kind.value == "rows":
                # Savepoints were let go before it was known that nothing goes back to them.
                steps = tuple(step for step in steps if isinstance(step, Rows))
            else:
                assert item.group.size == group.size
            assert list(apart(steps)) == list(apart(group.steps))
            assert item.group == replace(
                group, steps=(), size=item.group.size, unsupported=group.unsupported
            )
            opened = None
            streamed += 1
        elif isinstance(item, Group):
            assert opened is None
            # One statement outside of a transaction is one event, and is not cut.
            assert item.size <= hold or item.kind.value in {"ddl", "xa_complete"}
            assert whole.pop(item.number) == item
    assert whole == {}
    assert streamed > 5 or hold == 3000


def test_a_position_schema_under_another_name(recorded: Recorded) -> None:
    groups = [item for item in recorded.items(position_schema="d2") if isinstance(item, Group)]
    assert all("d2" not in group.databases for group in groups)
    assert any("mtsd" in group.databases for group in groups)
    start, end = recorded.ranges["two databases"]
    (group,) = (group for group in groups if start < group.end <= end)
    assert types_of(group.steps) == [19, 30]
    start, end = recorded.ranges["a statement over two tables"]
    (group,) = (group for group in groups if start < group.end <= end)
    assert types_of(group.steps) == [19, 31]


def test_cut_off_anywhere_and_read_again(recorded: Recorded) -> None:
    """A connection may end behind any event: nothing of the half group is left."""
    whole = recorded.groups()
    (file, events), *_ = recorded.files.items()
    before = 0
    at = Position(file, 4)
    for count in range(len(events)):
        reader = grouper(start=Position(file, 4), hold_bytes=100, chunk_bytes=50)
        items = list(reader.groups(events[:count]))
        left = list(reader.abandon())
        opened = sum(isinstance(item, GroupOpened) for item in items)
        closed = [item.group for item in items if isinstance(item, GroupClosed)]
        assert left == ([GroupDropped(reader.next_number)] if opened > len(closed) else [])
        complete = [item for item in items if isinstance(item, Group)] + closed
        assert reader.next_number == len(complete) + 1
        assert reader.position.offset == 4 + sum(map(len, events[:count]))
        assert before <= len(complete)
        before = len(complete)
        at = max((group.end for group in complete), default=at, key=lambda end: end.offset)
    assert at == max(
        (group.end for group in whole if group.end.file == file), key=lambda end: end.offset
    )


@pytest.mark.parametrize("bit", [0, 5, 7])
def test_a_flipped_bit_stops_the_reading(recorded: Recorded, bit: int) -> None:
    (file, events), *_ = recorded.files.items()
    rng = random.Random(bit)
    for _ in range(100):
        index = rng.randrange(len(events))
        damaged = bytearray(events[index])
        damaged[rng.randrange(len(damaged))] ^= 1 << bit
        if index == 0 and damaged[17] != events[0][17]:
            continue
        reader = grouper(start=Position(file, 4))
        before = Position(file, 4 + sum(map(len, events[:index])))
        with pytest.raises(BinlogError) as raised:
            list(reader.groups([*events[:index], bytes(damaged)]))
        assert raised.value.position == before
        assert str(before) in str(raised.value)

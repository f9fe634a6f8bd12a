"""Plain transactions found together are those that a grouper finds one by one."""

import random
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.bytes.framing import MAGIC
from mtsd.binlog.files.range_parts import GroupPart
from mtsd.binlog.files.range_reader import RangeReader
from mtsd.binlog.files.ranges import ByteRange, Tail
from mtsd.model.errors import BinlogError
from mtsd.model.group import GroupKind
from mtsd.model.step import Rows
from mtsd.spark.arrays.plain_groups import PlainFinder, PlainGroups
from tests.binlog.building import event, query
from tests.binlog.event_trials import described, mariadb_gtid
from tests.binlog.range_cases import NAME, Contents
from tests.binlog.transactions import begin, gtid, rows, sealed, table_map, xid

Told = tuple[object, ...]


def of_parts(parts: Iterable[GroupPart]) -> list[Told]:
    """Return each group: where it is, its GTID and time, its kind, its row events and tables."""
    found: list[Told] = []
    for part in parts:
        maps: dict[bytes, bytes] = {}
        told: list[tuple[bytes, bytes]] = []
        for step in part.steps:
            for one in step.events if isinstance(step, Rows) else ():
                if one[4] == EventType.TABLE_MAP_EVENT:
                    maps[one[19:25]] = one[19:]
                else:
                    told.append((maps.get(one[19:25], b""), one))
        name = None if part.gtid is None else str(part.gtid)
        kind = None if part.group is None else part.group.kind
        found.append((part.begin, part.end, name, part.commit_time, kind, told))
    return found


def of_plain(groups: PlainGroups) -> list[Told]:
    tables = [groups.tables[number][19:] for number in groups.table_of.tolist()]
    events = groups.events(np.arange(len(groups.rows)))
    assert groups.kinds().tolist() == [one[4] for one in events]
    told: list[list[tuple[bytes, bytes]]] = [[] for _ in range(len(groups))]
    for number, table, one in zip(groups.of.tolist(), tables, events, strict=True):
        told[number].append((table, one))
    columns = (groups.begins.tolist(), groups.ends.tolist(), groups.gtids())
    return [
        (*one, GroupKind.ROWS, told[number])
        for number, one in enumerate(zip(*columns, groups.commit_times.tolist(), strict=True))
    ]


def read(data: bytes, bounds: ByteRange, least: int | None) -> tuple[list[Told], str, int]:
    """Return the groups, the error at the end, and how many were found together; None: not so."""
    found: list[Told] = []
    together = 0
    try:
        reader = RangeReader(Contents(data), bounds, NAME)
        if least is None:
            return of_parts(reader.parts()), "", 0
        for part in reader.stretches(PlainFinder(reader.dialect, least)):
            if isinstance(part, PlainGroups):
                found += of_plain(part)
                together += len(part)
            else:
                found += of_parts([part])
    except BinlogError as error:
        return found, str(error), together
    return found, "", together


def agree(data: bytes, bounds: ByteRange | None = None, least: int = 1) -> int:
    """Check that both ways give the same; return how many groups were found together."""
    whole = bounds or ByteRange(NAME, 4, len(data), len(data), tail=Tail.GROWING)
    wanted: list[Told] = []
    problem = ""
    try:
        for part in RangeReader(Contents(data), whole, NAME).parts():
            wanted += of_parts([part])
    except BinlogError as error:
        problem = str(error)
    found, error_there, together = read(data, whole, least)
    assert (found, error_there) == (wanted, problem)
    return together


def log_of(family: str, events: Iterable[bytes]) -> list[bytes]:
    """Return the events of a file, the format description first."""
    plain = [described(family, checksums=True) + bytes(4), *(one + bytes(4) for one in events)]
    start = 4
    found = []
    for one in plain:
        start += len(one)
        found.append(sealed((one[:13] + start.to_bytes(4, "little") + one[17:])[:-4]))
    return found


tables = st.builds(table_map, st.integers(1, 3), st.sampled_from(["a", "b"]))
row_events = st.builds(
    rows,
    st.integers(1, 3),
    st.binary(max_size=60),
    st.sampled_from([0, 1, 1, 17]),
    st.sampled_from([
        EventType.WRITE_ROWS_EVENT, EventType.UPDATE_ROWS_EVENT, EventType.DELETE_ROWS_EVENT,
    ]),
)  # fmt: skip
mysql_others = st.sampled_from([
    query(b"CREATE TABLE x (y INT)", database=b"a"),
    query(b"COMMIT"),
    query(b"XBEGIN"),
    event(EventType.ROWS_QUERY_LOG_EVENT, b"\x03abc"),
    event(EventType.XID_EVENT, bytes(3)),
    event(99, b"unknown"),
])  # fmt: skip
changes = st.lists(st.one_of(tables, tables, *[row_events] * 4), min_size=1, max_size=6)
whole = st.tuples(tables, st.lists(row_events, min_size=1, max_size=2)).map(
    lambda one: [table_map(number, "c") for number in (1, 2, 3)] + [one[0], *one[1]]
)
mysql = st.builds(
    lambda number, time, found: [gtid(number, commit_time=time), begin(), *found, xid()],
    st.integers(0, 5),
    st.sampled_from([0, 1_700_000_000_000_001]),
    st.one_of(whole, whole, changes),
)
mariadb = st.builds(
    lambda head, found: [head, *found, xid()],
    st.sampled_from([
        *[mariadb_gtid(0x0C)] * 3,
        mariadb_gtid(0x0E, b"7" * 8),
        mariadb_gtid(0x28),
        mariadb_gtid(0x29),
    ]),
    st.one_of(
        whole, changes, whole.map(lambda found: [event(EventType.MARIADB_ANNOTATE_ROWS_EVENT, b"x"),
                                                *found])
    ),
)  # fmt: skip
transactions = {"MySQL": mysql, "MariaDB": mariadb}


@pytest.mark.parametrize("family", ["MySQL", "MariaDB"])
@given(st.data())
@settings(deadline=None, max_examples=150, derandomize=True)
def test_both_ways_agree(family: str, data: st.DataObject) -> None:
    others = st.lists(mysql_others, min_size=1, max_size=2) if family == "MySQL" else mariadb
    stream = data.draw(
        st.lists(st.one_of(*[transactions[family]] * 4, others), min_size=1, max_size=9)
    )
    log = log_of(family, (one for found in stream for one in found))
    damage = data.draw(st.sampled_from(["none", "none", "bit", "lost", "twice"]))
    at = data.draw(st.integers(1, len(log) - 1))
    if damage == "lost":
        del log[at]
    elif damage == "twice":
        log.insert(at, log[at])
    elif damage == "bit":
        damaged = bytearray(log[at])
        damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= 1 << data.draw(st.integers(0, 7))
        log[at] = bytes(damaged)
    agree(MAGIC + b"".join(log), least=data.draw(st.integers(1, 3)))


def test_transactions_between_others_are_found_together() -> None:
    changes = (table_map(1), rows(1, b"x"), rows(1, b"y"))
    plain = [one for number in range(1, 21) for one in (gtid(number), begin(), *changes, xid())]
    other = [gtid(21), query(b"CREATE TABLE x (y INT)", database=b"a")]
    data = MAGIC + b"".join(log_of("MySQL", [*plain, *other, *plain, *other, *plain[:-1]]))
    # The last one has not ended.
    assert agree(data, least=16) == 20 + 20 + 19
    assert agree(data, least=20) == 20 + 20
    assert agree(data, least=21) == 0


def test_what_is_passed_over_before_a_transaction_is_a_part_of_it() -> None:
    passed = event(EventType.ROWS_QUERY_LOG_EVENT, b"\x03abc")
    one = [gtid(1), begin(), table_map(1), rows(1), xid()]
    assert agree(MAGIC + b"".join(log_of("MySQL", [passed, *one, *one]))) == 1


def test_a_table_map_counts_in_its_own_transaction() -> None:
    first = [gtid(1), begin(), table_map(1), rows(1), xid()]
    second = [gtid(2), begin(), table_map(2), rows(1), xid()]
    late = [gtid(3), begin(), rows(1), table_map(1), xid()]
    for wrong in (second, late):
        assert agree(MAGIC + b"".join(log_of("MySQL", [*first, *wrong, *first]))) == 2


def test_every_range_of_a_real_file() -> None:
    data = Path("docs/example/binlog.000001").read_bytes()
    # A Rotate event follows the last one.
    assert agree(data) == 2
    size = len(data)
    for cut in range(5, size, 3):
        for begin_, end in ((4, cut), (cut, size)):
            agree(data, ByteRange(NAME, begin_, end, size))


def test_one_checksum_shows_the_damage_of_any_event() -> None:
    changes = (table_map(1), rows(1, bytes(range(200))), xid())
    log = [one for number in range(1, 40) for one in (gtid(number), begin(), *changes)]
    data = bytearray(MAGIC + b"".join(log_of("MySQL", log)))
    rng = random.Random(2)
    for _ in range(60):
        at = rng.randrange(200, len(data))
        bit = 1 << rng.randrange(8)
        data[at] ^= bit
        agree(bytes(data))
        data[at] ^= bit

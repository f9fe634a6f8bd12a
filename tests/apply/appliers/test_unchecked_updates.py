"""Updates that no foreign key concerns, apart from what the server has to check."""

import random
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final, Literal, NamedTuple

import pymysql
import pytest

from mtsd.apply.rows.unchecked_updates import WORTH, UncheckedUpdates
from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.bytes.header import HEADER_SIZE
from mtsd.binlog.events.rows import NO_FOREIGN_KEY_CHECKS, USE_SQL_FOREIGN_KEY, parse_rows_header
from mtsd.model.fault_points import FaultPoint
from tests.binlog.recording import events_of
from tests.binlog.row_values import row_events_of
from tests.fix_daemon import NEEDS_PERSON, SIGKILLED
from tests.fix_families import families
from tests.load.compare import differences
from tests.replica.daemon_process import DaemonProcess
from tests.servers.mysqld import Server

WRITE: Final = EventType.WRITE_ROWS_EVENT
UPDATE: Final = EventType.UPDATE_ROWS_EVENT
DELETE: Final = EventType.DELETE_ROWS_EVENT
MAP: Final = EventType.TABLE_MAP_EVENT
Table = Literal["p", "c"]
Row = tuple[int, int, int]
"""An id, a code, and a value. The code of a row of `c` refers to one of `p`."""
Rows = dict[tuple[Table, int], Row]


class Change(NamedTuple):
    table: Table
    before: Row | None
    after: Row | None


def event(kind: EventType, body: bytes) -> bytes:
    head = b"\7\0\0\0" + bytes((kind,)) + b"\1\0\0\0"
    return head + (HEADER_SIZE + len(body)).to_bytes(4, "little") + b"\0" * 6 + body


def table_map(table: Table) -> bytes:
    columns = b"\x03\x03\x03\x03\0\0"
    return event(
        MAP, bytes((ord(table),)) + b"\0" * 5 + b"\1\0\1d\0\1" + table.encode() + b"\0" + columns
    )


def row_event(change: Change) -> bytes:
    images = [image for image in (change.before, change.after) if image is not None]
    kind = UPDATE if len(images) > 1 else WRITE if change.before is None else DELETE
    values = b"".join(
        b"\0" + b"".join(value.to_bytes(4, "little") for value in image) for image in images
    )
    head = bytes((ord(change.table),)) + b"\0" * 5 + bytes((USE_SQL_FOREIGN_KEY, 0, 2, 0, 3))
    return event(kind, head + b"\7" * len(images) + values)


def changes_of(rows: Rows, number: int) -> Iterator[Change]:
    """Yield what a source could do next: it checks keys, and nothing cascades."""
    for id_ in (1, 2):
        row = rows.get(("p", id_))
        if row is None:
            yield Change("p", None, (id_, id_, number))
            continue
        yield Change("p", row, (id_, row[1], number))
        if not any(table == "c" and child[1] == row[1] for (table, _), child in rows.items()):
            yield Change("p", row, None)
            yield Change("p", row, (id_, row[1] ^ 8, number))
    codes = [row[1] for (table, _), row in rows.items() if table == "p"]
    child = rows.get(("c", 5))
    if child is not None:
        yield Change("c", child, None)
        yield Change("c", child, (5, child[1], number))
    for code in codes:
        if child is None:
            yield Change("c", None, (5, code, number))
        elif code != child[1]:
            yield Change("c", child, (5, code, number))


def apply(rows: Rows, change: Change) -> None:
    """Apply a change as a server does that checks everything."""
    table, before, after = change
    if before is not None:
        assert rows.pop((table, before[0])) == before
    if after is not None:
        assert (table, after[0]) not in rows
        rows[table, after[0]] = after
    codes = [row[1] for (name, _), row in rows.items() if name == "p"]
    assert len(codes) == len(set(codes))
    assert {row[1] for (name, _), row in rows.items() if name == "c"} <= set(codes)


def decoded(events: Sequence[bytes]) -> Iterator[Change]:
    """Yield the changes of row events, which may have several rows each."""
    maps = set()
    for each in events:
        if each[4] == MAP:
            maps.add(each[19:25])
            continue
        assert each[19:25] in maps
        table: Table = "p" if each[19] == ord("p") else "c"
        images = [
            tuple(int.from_bytes(each[at + n : at + n + 4], "little") for n in (1, 5, 9))
            for at in range(parse_rows_header(each).rows_at, len(each), 13)
        ]
        three = [(first, second, third) for first, second, third in images]
        if each[4] == UPDATE:
            yield from (Change(table, *pair) for pair in zip(three[::2], three[1::2], strict=True))
        else:
            inserts = each[4] == WRITE
            yield from (Change(table, *((None, row) if inserts else (row, None))) for row in three)


def histories(rows: Rows, past: list[Change], left: int) -> Iterator[list[Change]]:
    yield past
    if left:
        for change in changes_of(rows, len(past) + 100):
            then = dict(rows)
            apply(then, change)
            yield from histories(then, [*past, change], left - 1)


@pytest.mark.parametrize("largest", [1, 1 << 16])
def test_every_short_history_has_the_same_effect(largest: int) -> None:
    """As it is sent, each change passes all checks, and finds the row that it changes."""
    keyed = {table_map("p"): (0, 1), table_map("c"): (0, 1)}
    unchecked = UncheckedUpdates(keyed, worth=0)
    start: Rows = {("p", 1): (1, 1, 0), ("c", 5): (5, 1, 0)}
    set_apart = 0
    for history in histories(start, [], 4):
        in_order, rows = dict(start), dict(start)
        for change in history:
            apply(in_order, change)
        events = [each for one in history for each in (table_map(one.table), row_event(one))]
        for flags, run in unchecked.apart(events, USE_SQL_FOREIGN_KEY, largest):
            for change in decoded(run):
                apply(rows, change)
                if flags:
                    assert flags == NO_FOREIGN_KEY_CHECKS
                    assert change.before is not None
                    assert change.after is not None
                    assert change.before[:2] == change.after[:2]
                    set_apart += 1
        assert rows == in_order
    assert set_apart > 1000


def test_rows_that_are_not_set_apart() -> None:
    """Those of a source that checks in its engines, of unchecked ones, and of tables apart."""
    events = [table_map("p"), row_event(Change("p", (1, 1, 0), (1, 1, 5)))]
    unchecked = UncheckedUpdates({events[0]: (0, 1)})
    assert [flags for flags, _ in unchecked.apart(events, USE_SQL_FOREIGN_KEY, 9)] == [2]
    for flags in (0, NO_FOREIGN_KEY_CHECKS, NO_FOREIGN_KEY_CHECKS | USE_SQL_FOREIGN_KEY):
        assert unchecked.apart(events, flags, 9) == [(0, events)]
    assert UncheckedUpdates({}).apart(events, USE_SQL_FOREIGN_KEY, 9) == [(0, events)]
    assert unchecked.apart(events[:1], USE_SQL_FOREIGN_KEY, 9) == [(0, events[:1])]
    few = [table_map("p"), row_event(Change("p", None, (2, 2, 0))), *events]
    assert unchecked.apart(few, USE_SQL_FOREIGN_KEY, 9) == [(0, few)]
    many = [*few, *events * (WORTH - 1)]
    assert [flags for flags, _ in unchecked.apart(many, USE_SQL_FOREIGN_KEY, 9)] == [0, 2]
    others = UncheckedUpdates({table_map("c"): (0, 1)})
    assert others.apart(events, USE_SQL_FOREIGN_KEY, 9) == [(0, events)]


TABLES: Final = """
    CREATE DATABASE a; USE a;
    CREATE TABLE parent (id INT PRIMARY KEY, code INT UNIQUE, v INT);
    CREATE TABLE child (id INT PRIMARY KEY, code INT, v VARCHAR(20), CONSTRAINT of_parent
        FOREIGN KEY (code) REFERENCES parent (code) ON UPDATE CASCADE ON DELETE CASCADE);
    CREATE TABLE kept (id INT PRIMARY KEY, child INT, v INT,
        FOREIGN KEY (child) REFERENCES child (id));
    INSERT INTO parent VALUES (1, 1, 0), (2, 2, 0), (3, 3, 0), (4, NULL, 0);
    INSERT INTO child VALUES (1, 1, ''), (2, 1, ''), (3, 2, ''), (4, NULL, '');
    INSERT INTO kept VALUES (1, 1, 0), (2, NULL, 0)
"""


def change_at_random(source: Server, seed: int, transactions: int) -> None:
    """Run transactions with updates of all kinds; what a foreign key refuses is left out."""
    chance = random.Random(seed)
    with closing(source.client("a")) as client, client.cursor() as cursor:
        for _ in range(transactions):
            cursor.execute("BEGIN")
            for _ in range(chance.randint(1, 8)):
                table = chance.choice(["parent", "child", "kept"])
                column = "child" if table == "kept" else "code"
                id_, key, value = chance.randint(1, 9), chance.randint(1, 9), chance.randint(0, 99)
                try:
                    cursor.execute(
                        chance.choice([
                            f"UPDATE {table} SET v = {value} WHERE id = {id_}",
                            f"UPDATE {table} SET v = {value} WHERE id > {id_}",
                            f"UPDATE {table} SET {column} = {key} WHERE id = {id_}",
                            f"INSERT INTO {table} VALUES ({id_}, {key}, {value})",
                            f"DELETE FROM {table} WHERE id = {id_}",
                        ])
                    )  # fmt: skip
                except pymysql.err.IntegrityError:
                    continue
            cursor.execute("COMMIT")


@pytest.mark.servers
@pytest.mark.timeout(300)
def test_servers_end_with_the_same_rows(tmp_path: Path) -> None:
    with families("9.7", "9.7") as pair:
        pair.source.sql(TABLES)
        daemon = DaemonProcess(pair.source, pair.target, tmp_path)
        # Now the tables are known: those of the first packets are not yet.
        daemon.start()
        daemon.wait_until_caught_up()
        change_at_random(pair.source, 1, 20)
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        change_at_random(pair.source, 2, 300)
        for point in (FaultPoint.BUNDLE_SENT, FaultPoint.AFTER_BUNDLE):
            daemon.start(fault=f"{point}:1")
            assert daemon.wait() == SIGKILLED, daemon.last_words()
        daemon.start()
        daemon.wait_until_caught_up()
        change_at_random(pair.source, 3, 100)
        daemon.wait_until_caught_up()
        # Nothing has to be checked between these.
        pair.source.sql("; ".join(f"UPDATE a.parent SET v = {n}" for n in range(20)))
        daemon.wait_until_caught_up()
        assert daemon.running
        assert differences(pair.source, pair.target) == []
        log = str(pair.target.sql("SHOW BINARY LOGS")[-1][0])
        # No foreign key cascades into this table, so nobody else has set the flag.
        parents = row_events_of([*events_of(pair.target.datadir / log)], "parent")
        flags = [
            (each[4], each[25] & NO_FOREIGN_KEY_CHECKS) for _, rows in parents for each in rows
        ]
        assert (UPDATE, NO_FOREIGN_KEY_CHECKS) in flags
        assert (WRITE, 0) in flags
        # What concerns a foreign key is checked as before.
        pair.source.sql("INSERT INTO a.parent VALUES (20, 20, 0)")
        daemon.wait_until_caught_up()
        pair.target.sql("SET foreign_key_checks = 0; DELETE FROM a.parent WHERE id = 20")
        pair.source.sql(
            "BEGIN; UPDATE a.parent SET v = -1 WHERE id < 9;"
            "INSERT INTO a.child VALUES (20, 20, ''); COMMIT"
        )
        assert daemon.wait() == NEEDS_PERSON, daemon.last_words()
        assert "a foreign key constraint fails" in str(daemon.records()[-1]["error"])

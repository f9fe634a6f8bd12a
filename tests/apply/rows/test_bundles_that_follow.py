"""A bundle that was sent behind another one commits only if that one has."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import pytest

from mtsd.apply.appliers.applier import Applier
from mtsd.apply.appliers.binlog_rows import BinlogRows
from mtsd.apply.appliers.making import applier_by_binlog
from mtsd.apply.position.position_tables import PositionTables
from mtsd.apply.rows.bundle import Bundle, Command, binlog_statement, together
from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.bytes.framing import FileFramer
from mtsd.binlog.events.rows import STMT_END
from mtsd.binlog.groups.rewrite import plain_format_description
from mtsd.model.errors import ServerError
from mtsd.model.gtid import Gtid, GtidSet
from mtsd.model.position import Position
from mtsd.schedule.done.executed_groups import ExecutedGroups
from mtsd.schedule.done.worker_row import WorkerRow
from tests.apply.sending import Sending
from tests.apply.sessions import open_session
from tests.binlog.building import event
from tests.servers.locks import wait_for_the_end_of_all_transactions
from tests.servers.mysqld import Server

pytestmark = pytest.mark.servers

TABLES = PositionTables("mtsd", "")
NO_TABLES: frozenset[bytes] = frozenset()
UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
FAILS = b"INSERT INTO a.t VALUES (1)"
FINE = b"INSERT INTO a.t VALUES (%d)"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as server:
        server.sql("CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY)")
        for definition in TABLES.definitions():
            server.sql(definition.decode())
        yield server


@pytest.fixture
async def applier(server: Server) -> AsyncIterator[Applier]:
    server.sql("DELETE FROM a.t; INSERT INTO a.t VALUES (1)")
    put(server, row(0))
    session = await open_session(server)
    applier = applier_by_binlog(session, TABLES, 1 << 20)
    with (server.datadir / "binlog.000001").open("rb") as file:
        description = next(FileFramer().feed(file.read(4096)))
    await applier.rows.begin(plain_format_description(description))
    yield applier
    session.connection.close()


def described(applier: Applier) -> bytes:
    """Return the format description that the session has."""
    assert isinstance(applier.rows, BinlogRows)
    return applier.rows._format


def row(number: int) -> WorkerRow:
    """Return the row of worker 1 behind group `number`."""
    last = Position("binlog.000001", number * 100)
    gtids = GtidSet.parse(f"{UUID}:1-{number}") if number else GtidSet()
    executed = ExecutedGroups(1, (1 << number) - 1)
    return WorkerRow(1, last, Position("binlog.000001", 4), executed, gtids, 1000 + number)


def put(server: Server, row: WorkerRow) -> None:
    server.sql(TABLES.workers.replace(row).decode())


def bundle(applier: Applier, number: int, *statements: bytes, after: int | None = None) -> Bundle:
    """Return the bundle of group `number`, which counts on that of `after`."""
    before = row(number - 1 if after is None else after)
    events = TABLES.workers.events(row(number), before, event(EventType.XID_EVENT, b""), 0)
    record = binlog_statement(b"".join(events))
    whole = [b"BEGIN", *statements, record, b"COMMIT"] if statements else [record]
    return Bundle(described(applier), (Command(b";".join(whole), len(whole)),), NO_TABLES)


def committed(server: Server) -> tuple[list[int], int]:
    """Return the keys in the table, and the group that the worker's row stands at."""
    keys = [int(found) for (found,) in server.sql("SELECT id FROM a.t ORDER BY id")]
    ((offset, relay),) = server.sql(
        "SELECT Master_log_pos, Relay_log_pos FROM mtsd.slave_worker_info"
    )
    assert offset == relay
    return keys, int(offset) // 100


async def test_both_commit(server: Server, applier: Applier) -> None:
    sending = Sending(applier)
    for first in range(1, 20, 2):
        await sending.send(bundle(applier, first, FINE % (first + 1)))
        following = bundle(applier, first + 1)
        assert following.is_single_statements
        await sending.send(following)
        await sending.answer()
        await sending.answer()
    assert committed(server) == ([1, *range(2, 21, 2)], 20)
    assert await applier.session.connection.query("SELECT 1") == [(1,)]


@pytest.mark.parametrize("statements", [(FAILS, FINE % 2), (FINE % 2, FAILS)])
async def test_the_first_fails(
    server: Server, applier: Applier, statements: tuple[bytes, ...]
) -> None:
    sending = Sending(applier)
    await sending.send(bundle(applier, 1, *statements))
    await sending.send(bundle(applier, 2))
    with pytest.raises(ServerError) as raised:
        await sending.answer()
    assert raised.value.number == 1062
    assert committed(server) == ([1], 0)
    await sending.apply(bundle(applier, 1, FINE % 2))
    assert committed(server) == ([1, 2], 1)


async def test_the_second_fails(server: Server, applier: Applier) -> None:
    sending = Sending(applier)
    await sending.send(bundle(applier, 1, FINE % 2))
    await sending.send(bundle(applier, 3, after=2))
    await sending.answer()
    with pytest.raises(ServerError) as raised:
        await sending.answer()
    assert raised.value.number == 1032
    assert committed(server) == ([1, 2], 1)


async def test_a_statement_alone_is_applied_whole_or_not_at_all(
    server: Server, applier: Applier
) -> None:
    sending = Sending(applier)
    definition, change = TABLES.workers.events(row(1), row(0), event(EventType.XID_EVENT, b""), 0)
    first = bytearray(change)
    first[25] &= ~STMT_END

    async def both(before: int) -> None:
        _, second = TABLES.workers.events(row(9), row(before), event(EventType.XID_EVENT, b""), 0)
        packet = Command(binlog_statement(definition + bytes(first) + second), 1)
        await sending.apply(Bundle(described(applier), (packet,), NO_TABLES))

    for before in (2, 0):
        with pytest.raises(ServerError) as raised:
            await both(before)
        assert raised.value.number == 1032
        assert committed(server) == ([1], 0)
    await both(1)
    assert committed(server) == ([1], 9)
    wait_for_the_end_of_all_transactions(server)


def triples(applier: Applier, server: Server, *, missing: int = 0) -> list[Bundle]:
    """Return groups 1 to 9, three to a packet, and put the row there that the first counts on.

    The last of each packet moves the token. Group `missing` counts on one that is not there.
    """
    before = replace(row(0), token=7)
    put(server, before)
    bundles = []
    for number in range(1, 10):
        change = replace(row(number), token=before.token + (number % 3 == 0))
        found = replace(before, token=77) if number == missing else before
        events = TABLES.workers.events(change, found, event(EventType.XID_EVENT, b""), 0)
        statement = Command(binlog_statement(b"".join(events)), 1)
        bundles.append(Bundle(described(applier), (statement,), NO_TABLES))
        before = change
    return [together(bundles[at : at + 3]) for at in (0, 3, 6)]


async def test_several_transactions_in_a_packet(server: Server, applier: Applier) -> None:
    sending = Sending(applier)
    first, *others = triples(applier, server)
    await sending.send(first)
    for following in others:
        assert following.is_single_statements
        await sending.send(following)
    assert len(sending) == 3
    for number in range(1, 10):
        await sending.answer()
        assert committed(server)[1] >= number
    assert len(sending) == 0
    assert await applier.session.connection.query("SELECT 1") == [(1,)]


@pytest.mark.parametrize("missing", range(1, 7))
async def test_one_of_several_in_a_packet_fails(
    server: Server, applier: Applier, missing: int
) -> None:
    sending = Sending(applier)
    first, *others = triples(applier, server, missing=missing)
    await sending.send(first)
    for following in others:
        await sending.send(following)
    for _ in range(missing - 1):
        await sending.answer()
    with pytest.raises(ServerError) as raised:
        await sending.answer()
    assert raised.value.number == 1032
    assert len(sending) == 0
    assert committed(server) == ([1], missing - 1)
    assert await applier.session.connection.query("SELECT 1") == [(1,)]


async def test_a_bundle_counts_on_the_row_before(server: Server, applier: Applier) -> None:
    sending = Sending(applier)
    await sending.apply(bundle(applier, 1, FINE % 2))
    for after in (0, 2):
        with pytest.raises(ServerError) as raised:
            await sending.apply(bundle(applier, 2, FINE % 3, after=after))
        assert raised.value.number == 1032
        assert "slave_worker_info" in raised.value.text
    server.sql("DELETE FROM mtsd.slave_worker_info")
    with pytest.raises(ServerError) as raised:
        await sending.apply(bundle(applier, 2, FINE % 3))
    assert raised.value.number == 1032
    put(server, row(1))
    await sending.apply(bundle(applier, 2, FINE % 3))
    assert committed(server) == ([1, 2, 3], 2)


LONG = "binlog-" + "n" * 500
ROWS = [
    row(1),
    row(2),
    replace(row(3), last=Position("binlog.000002", 1 << 40)),
    replace(row(4), last=Position(LONG, (1 << 64) - 1), checkpoint=Position(LONG, 1 << 63)),
    replace(row(5), executed=ExecutedGroups(1 << 60, 1 << 60000)),
    replace(row(6), gtids=GtidSet.parse(",".join(f"{UUID}:{n}" for n in range(1, 20000, 2)))),
    replace(row(7), executed=ExecutedGroups(8), gtids=GtidSet()),
    replace(row(8), token=(1 << 63) + 8),
    row(9),
]


async def test_a_row_event_writes_what_a_statement_writes(server: Server, applier: Applier) -> None:
    put(server, row(0))
    found = []
    before = row(0)
    for written in ROWS:
        events = TABLES.workers.events(written, before, event(EventType.XID_EVENT, b""), 0)
        whole = binlog_statement(b"".join(events)) + b";COMMIT"
        await applier.session.connection.run(whole, 2)
        found.append(server.sql("SELECT * FROM mtsd.slave_worker_info"))
        before = written
    for written, by_event in zip(ROWS, found, strict=True):
        server.sql(TABLES.workers.update(written).decode())
        assert server.sql("SELECT * FROM mtsd.slave_worker_info") == by_event
        (columns,) = await applier.session.connection.query(TABLES.workers.select())
        assert TABLES.workers.row(columns) == written


async def test_what_is_single_statements(applier: Applier) -> None:
    whole = bundle(applier, 1)
    assert whole.is_single_statements
    assert not bundle(applier, 1, FINE % 2).is_single_statements
    commands = tuple(whole.commands)
    assert not Bundle(described(applier), (*commands, *commands), NO_TABLES).is_single_statements
    assert not Bundle(described(applier), iter(commands), NO_TABLES).is_single_statements
    assert together([whole, whole]).is_single_statements


@pytest.mark.parametrize(
    "aligned",
    [None, Gtid(UUID, 700), Gtid(UUID, -3), Gtid(UUID, 0, "tag")],
    ids=["listed", "aligned", "under 1", "tag"],
)
async def test_a_row_reads_as_it_was_written(
    server: Server, applier: Applier, aligned: Gtid | None
) -> None:
    sending = Sending(applier)
    first = replace(row(0), aligned=aligned)
    put(server, first)
    assert await stored(applier) == first
    # With another checkpoint all columns are written, with the same one the few that change.
    for base in (2, 2):
        second = replace(
            first,
            last=Position("binlog.000001", first.token),
            executed=ExecutedGroups(base, 5),
            gtids=GtidSet.parse(f"{UUID}:{first.token}"),
            token=first.token + 1,
        )
        events = TABLES.workers.events(second, first, event(EventType.XID_EVENT, b""), 0)
        record = Command(binlog_statement(b"".join(events)), 1)
        await sending.apply(Bundle(described(applier), (record,), NO_TABLES))
        assert await stored(applier) == second
        first = second
    third = replace(first, executed=ExecutedGroups(3, 1), token=first.token + 1)
    server.sql(TABLES.workers.update(third).decode())
    assert await stored(applier) == third


async def stored(applier: Applier) -> WorkerRow:
    (found,) = await applier.session.connection.query(TABLES.workers.select())
    return TABLES.workers.row(found)

"""Row events of a real source, rewritten in every way, make a real target equal."""

import random
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import closing

import pytest
from pymysql.cursors import Cursor

from mtsd.apply.session.session import TargetSession
from mtsd.binlog.bytes.framing import FileFramer
from mtsd.model.group import Group, GroupChunk, GroupClosed, GroupKind, GroupOpened, StreamItem
from mtsd.model.position import Position
from tests.apply.sending import Applying
from tests.apply.sessions import open_session
from tests.binlog.transactions import UNBOUNDED, grouper
from tests.servers.mysqld import Server
from tests.servers.pair import Pair

pytestmark = pytest.mark.servers

DATABASES = ("a", "b", "c")
CASCADE = "FOREIGN KEY (p) REFERENCES {table}.parent (k) ON DELETE CASCADE ON UPDATE CASCADE)"
DEFINITIONS = [
    *(f"CREATE DATABASE {name}" for name in DATABASES),
    *(
        definition.format(name=name)
        for name in DATABASES
        for definition in (
            "CREATE TABLE {name}.keyed (k INT PRIMARY KEY, v INT, t VARCHAR(200), UNIQUE (v))",
            "CREATE TABLE {name}.bare (n INT, t LONGTEXT)",
            "CREATE TABLE {name}.docs (k INT PRIMARY KEY, d JSON)",
            "CREATE TABLE {name}.parent (k INT PRIMARY KEY)",
            "CREATE TABLE {name}.child (k INT, p INT, KEY (p), " + CASCADE.format(table="{name}"),
        )
    ),
    "CREATE TABLE c.grandchild (p INT, " + CASCADE.format(table="a"),
]
TABLES = [
    f"{name}.{table}"
    for name in DATABASES
    for table in ("keyed", "bare", "docs", "child", "parent")
] + ["c.grandchild"]


def load(source: Server, transactions: int) -> None:
    """Change rows in as many ways as row events have."""
    rng = random.Random(4)
    with closing(source.client()) as client, client.cursor() as cursor:
        for number in range(transactions):
            settings = {
                "binlog_transaction_compression": rng.random() < 0.1,
                "foreign_key_checks": rng.random() < 0.9,
                "unique_checks": rng.random() < 0.9,
                "binlog_row_image": "'MINIMAL'" if rng.random() < 0.2 else "'FULL'",
                "binlog_row_value_options": "'PARTIAL_JSON'" if rng.random() < 0.3 else "''",
            }
            cursor.execute(
                "SET " + ", ".join(f"SESSION {name} = {value}" for name, value in settings.items())
            )
            cursor.execute("BEGIN")
            for _ in range(rng.randrange(1, 4)):
                change(cursor, rng, rng.choice(DATABASES), number)
            cursor.execute("COMMIT")
            if number % 50 == 49:
                # Tables get new ids.
                cursor.execute("FLUSH TABLES")


def change(cursor: Cursor, rng: random.Random, name: str, number: int) -> None:
    key = rng.randrange(30)
    other = rng.randrange(30)
    choice = rng.randrange(10)
    if choice < 3:
        # Also moves a unique value from row to row.
        cursor.execute(
            f"REPLACE INTO {name}.keyed VALUES ({key}, {other}, REPEAT('x', {rng.randrange(99)}))"
        )
    elif choice == 3:
        cursor.execute(f"DELETE FROM {name}.keyed WHERE k BETWEEN {key} AND {key + 5}")
    elif choice == 4:
        size = rng.choice([1, 100, 20_000])
        cursor.execute(
            f"INSERT INTO {name}.bare VALUES ({key}, REPEAT('y', {size})), ({number}, ''), (1, '')"
        )
    elif choice == 5:
        cursor.execute(f"UPDATE {name}.bare SET n = n + 1 WHERE n < {key} LIMIT 20")
    elif choice == 6:
        cursor.execute(
            f"INSERT INTO {name}.docs VALUES"
            f" ({key}, JSON_OBJECT('n', {number}, 't', REPEAT('z', 99)))"
            f" ON DUPLICATE KEY UPDATE d = JSON_SET(d, '$.n', {number})"
        )
    elif choice == 7:
        values = ", ".join(f"({value})" for value in range(key, key + 9))
        cursor.execute(f"INSERT IGNORE INTO {name}.parent VALUES {values}")
        cursor.execute(f"INSERT IGNORE INTO {name}.child VALUES ({number}, {key}), (0, {key + 1})")
        if name == "a":
            cursor.execute(f"INSERT IGNORE INTO c.grandchild VALUES ({key}), ({key + 2})")
    elif choice == 8:
        cursor.execute(f"DELETE FROM {name}.parent WHERE k BETWEEN {key} AND {key + 4}")
    else:
        cursor.execute(
            f"UPDATE {name}.parent SET k = k + 100 WHERE k BETWEEN {key} AND {key + 3}"
            f" AND k + 100 NOT IN (SELECT k FROM (SELECT k FROM {name}.parent) AS p)"
        )


def contents(server: Server) -> dict[str, list[str]]:
    """Return the rows of every table, sorted."""
    with closing(server.client()) as client, client.cursor() as cursor:
        found = {}
        for table in TABLES:
            cursor.execute(f"SELECT * FROM {table}")
            found[table] = sorted(map(repr, cursor.fetchall()))
        return found


class Replayed:
    """A source's load, and a target to which it can be applied again and again."""

    def __init__(self, pair: Pair) -> None:
        self.target = pair.target
        for server in (pair.source, pair.target):
            for definition in DEFINITIONS:
                server.sql(definition)
        (name, offset, *_), *_ = pair.source.sql("SHOW BINARY LOG STATUS")
        self._start = Position(str(name), int(offset))
        load(pair.source, 400)
        self.wanted = contents(pair.source)
        framer = FileFramer()
        data = (pair.source.datadir / str(name)).read_bytes()
        self._events = list(framer.feed(data))

    def items(self, hold: int = UNBOUNDED, chunk: int = UNBOUNDED) -> Iterator[StreamItem]:
        """Yield what the load has become, from its first group on."""
        reader = grouper(start=Position(self._start.file, 4), hold_bytes=hold, chunk_bytes=chunk)
        started = False
        for event in self._events:
            for item in reader.groups([event]):
                if started:
                    yield item
            started = started or reader.position == self._start

    def groups(self) -> list[Group]:
        """Return its groups."""
        groups = [item for item in self.items() if isinstance(item, Group)]
        kinds = {group.kind for group in groups}
        assert kinds <= {GroupKind.ROWS, GroupKind.EMPTY, GroupKind.DDL}
        return [group for group in groups if group.kind is GroupKind.ROWS]

    def empty_target(self) -> None:
        """Take away what was applied before."""
        self.target.sql(
            "SET foreign_key_checks = 0; " + "; ".join(f"DELETE FROM {table}" for table in TABLES)
        )


@pytest.fixture(scope="module")
def replayed() -> Iterator[Replayed]:
    options = {"gtid_mode": "ON", "enforce_gtid_consistency": "ON"}
    with Pair(options, options) as pair:
        yield Replayed(pair)


@pytest.fixture
async def session(replayed: Replayed) -> AsyncIterator[TargetSession]:
    replayed.empty_target()
    session = await open_session(replayed.target, binary_log=False)
    yield session
    await session.connection.quit()


def batches(groups: Sequence[Group], size: int) -> Iterator[Sequence[Group]]:
    for at in range(0, len(groups), size):
        yield groups[at : at + size]


def test_the_load_has_what_is_hard(replayed: Replayed) -> None:
    groups = replayed.groups()
    assert len({group.row_flags for group in groups}) > 4
    assert None in {group.row_flags for group in groups}
    tables: dict[bytes, set[bytes]] = {}
    for group in groups:
        for event in group.rows:
            if event[4] == 19:
                tables.setdefault(event[25:], set()).add(event[19:25])
    assert max(map(len, tables.values())) > 3
    assert {event[4] for group in groups for event in group.rows} == {19, 30, 31, 32, 39}


@pytest.mark.parametrize(
    ("batch", "statement_bytes"),
    [(1, 1 << 22), (1, 1), (3, 1 << 22), (3, 500), (128, 1 << 22), (128, 3000), (1000, 1 << 22)],
)
async def test_batches(
    replayed: Replayed, session: TargetSession, batch: int, statement_bytes: int
) -> None:
    applying = Applying(replayed.target, session, statement_bytes)
    for groups in batches(replayed.groups(), batch):
        await applying.rows(groups)
    assert contents(replayed.target) == replayed.wanted


@pytest.mark.parametrize(
    ("hold", "chunk", "statement_bytes"), [(0, 1, 1 << 22), (500, 200, 300), (2000, 1000, 1 << 22)]
)
async def test_streamed(
    replayed: Replayed, session: TargetSession, hold: int, chunk: int, statement_bytes: int
) -> None:
    applying = Applying(replayed.target, session, statement_bytes)
    applier = applying.applier
    streamed = 0
    for item in replayed.items(hold, chunk):
        if isinstance(item, GroupOpened):
            await applier.begin(item.format_description, None)
        elif isinstance(item, GroupChunk):
            await applier.apply_steps(item.steps)
        elif isinstance(item, GroupClosed):
            row = applying.row_after(item.group)
            await applier.commit(row)
            applying.applied(row)
            streamed += 1
        elif isinstance(item, Group) and item.kind is GroupKind.ROWS:
            await applying.rows([item])
    assert streamed > 20
    assert contents(replayed.target) == replayed.wanted


async def test_in_order(replayed: Replayed, session: TargetSession) -> None:
    """The way of groups that hold statements too."""
    applying = Applying(replayed.target, session, 1 << 22)
    for group in replayed.groups():
        row = applying.row_after(group)
        await applying.applier.apply_in_order(group, row)
        applying.applied(row)
    assert contents(replayed.target) == replayed.wanted

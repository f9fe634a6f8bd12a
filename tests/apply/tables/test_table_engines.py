"""Which statements may change a table that cannot roll back, by what the target has."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from mtsd.apply.tables.known_tables import KnownTables
from mtsd.apply.tables.table_engines import TableEngines
from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.bytes.framing import FileFramer
from mtsd.binlog.events.table_map import name_of
from mtsd.model.group import Group
from mtsd.model.step import QueryEvent, Statement
from tests.apply.sessions import open_session
from tests.binlog.transactions import grouper
from tests.fix_families import installed
from tests.servers.mysqld import NO_GTIDS, Options, Server

pytestmark = pytest.mark.servers

TABLE_MAP = EventType.TABLE_MAP_EVENT.value
DEFINITIONS = (
    "CREATE DATABASE a; CREATE DATABASE b; CREATE DATABASE c; CREATE DATABASE d;"
    "CREATE TABLE b.m (n INT) ENGINE = MyISAM;"
    "CREATE TABLE b.tä (n INT) ENGINE = MyISAM;"
    "CREATE TABLE b.12 (n INT) ENGINE = MyISAM;"
    "CREATE TABLE b.plain (n INT);"
    "CREATE TABLE a.t (n INT);"
    "CREATE TABLE a.plain (n INT);"
    "CREATE TABLE d.plain (n INT);"
    "CREATE TRIGGER a.g BEFORE INSERT ON a.t FOR EACH ROW INSERT INTO b.m VALUES (NEW.n);"
    "CREATE VIEW a.v AS SELECT * FROM b.m;"
    "CREATE VIEW c.w AS SELECT * FROM a.v;"
    "CREATE FUNCTION c.f (x INT) RETURNS INT BEGIN INSERT INTO b.m VALUES (x); RETURN x; END"
)
UNSAFE = {
    "a table": ("b", "INSERT INTO m VALUES (1)"),
    "a table by its qualified name": ("a", "INSERT INTO b.m VALUES (1)"),
    "a table with a name of digits": ("a", "INSERT INTO b.12 VALUES (1)"),
    "a trigger": ("a", "INSERT INTO t VALUES (1)"),
    "a trigger of another database": ("d", "INSERT INTO a.t VALUES (1)"),
    "a view": ("a", "INSERT INTO v VALUES (1)"),
    "a view of another database": ("d", "INSERT INTO a.v VALUES (1)"),
    "a view on a view": ("c", "INSERT INTO w VALUES (1)"),
    "a function": ("c", "INSERT INTO d.plain VALUES (f(1))"),
    "a function of another database": ("a", "INSERT INTO plain VALUES (c.f(1))"),
    "a function by itself": ("d", "DO c.f(1)"),
}
SAFE = {
    "a table in a database of its own": ("d", "INSERT INTO plain VALUES (1)"),
    "a table of the same name elsewhere": ("d", "INSERT INTO a.plain VALUES (1)"),
    "a table beside one": ("b", "INSERT INTO plain VALUES (1)"),
}


@pytest.fixture(scope="module", params=["9.7", "11.8"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    options: Options = {"log_bin_trust_function_creators": 1, "binlog_format": "STATEMENT"}
    if request.param == "9.7":
        options = {**options, **NO_GTIDS}
    with Server(options, installation=installed(request.param)) as server:
        server.sql(DEFINITIONS)
        yield server


def logged(server: Server, database: str, statement: str, names: str = "utf8mb4") -> QueryEvent:
    """Return the event by which a source logs a statement."""
    server.sql("FLUSH BINARY LOGS")
    with closing(server.client(database)) as client, client.cursor() as cursor:
        cursor.execute(f"SET NAMES {names}")
        client.encoding = {"latin1": "latin-1"}.get(names, names.replace("mb4", ""))
        cursor.execute(statement)
    path = max(server.datadir.glob("binlog.0*[0-9]"))
    events = list(FileFramer().feed(path.read_bytes()))
    (group,) = (item for item in grouper().groups(events) if isinstance(item, Group))
    (step,) = (step for step in group.steps if isinstance(step, Statement))
    return step.query


async def may_change(server: Server, query: QueryEvent) -> bool:
    session = await open_session(server)
    try:
        return await TableEngines().may_change(session.connection, [query], 0)
    finally:
        session.connection.close()


@pytest.mark.parametrize("what", UNSAFE)
async def test_what_may_change_one(server: Server, what: str) -> None:
    assert await may_change(server, logged(server, *UNSAFE[what]))


@pytest.mark.parametrize("names", ["latin1", "gbk", "utf8mb4"])
async def test_names_are_in_the_clients_character_set(server: Server, names: str) -> None:
    statement = "INSERT INTO tä VALUES (1)" if names != "gbk" else "INSERT INTO m VALUES (1)"
    assert await may_change(server, logged(server, "b", statement, names))


@pytest.mark.parametrize("what", SAFE)
async def test_what_cannot(server: Server, what: str) -> None:
    assert not await may_change(server, logged(server, *SAFE[what]))


async def test_all_sessions_ask_once_until_there_is_another_definition(server: Server) -> None:
    query = logged(server, *SAFE["a table beside one"])
    engines = TableEngines()
    asked = []
    for definitions in (0, 0, 1):
        session = await open_session(server)
        before = selects(server)
        try:
            assert not await engines.may_change(session.connection, [query], definitions)
        finally:
            session.connection.close()
        asked.append(selects(server) > before)
    assert asked == [True, False, True]


def selects(server: Server) -> int:
    return int(server.sql("SHOW GLOBAL STATUS LIKE 'Com\\_select'")[0][1])


async def test_what_is_forgotten_is_asked_again(server: Server) -> None:
    server.sql("FLUSH BINARY LOGS")
    server.sql(
        "SET binlog_format = ROW; INSERT INTO b.m VALUES (1); INSERT INTO b.plain VALUES (1)"
    )
    path = max(server.datadir.glob("binlog.0*[0-9]"))
    maps = [event for event in FileFramer().feed(path.read_bytes()) if event[4] == TABLE_MAP]
    assert len(maps) == 2
    session = await open_session(server)
    try:
        known = KnownTables(session.traits.server, most=0)
        for asked in (maps[:1], maps, maps):
            await known.learn(session.connection, asked)
            found = known.of(asked)
            assert [name_of(each) for each in found if found[each].without_transactions] == ["b.m"]
            assert [name_of(each) for each in found if known.are_safe([each])] == [
                name_of(each) for each in asked[1:]
            ]
    finally:
        session.connection.close()

"""What the daemon remembers of the target's tables, and when it looks again."""

from collections.abc import AsyncIterator, Collection

import pytest

from mtsd.apply.session.session import TargetSession
from mtsd.apply.tables.facts_reading import NO_SETTING, Setting
from mtsd.apply.tables.known_tables import KnownTables
from mtsd.model.group import Group
from tests.apply.sessions import open_session
from tests.binlog.building import query
from tests.binlog.transactions import grouped, gtid, table_map
from tests.servers.mysqld import NO_GTIDS, Server

pytestmark = pytest.mark.servers

DEFINITIONS = (
    # Names are shown without quotes then, unless the session says otherwise.
    "SET GLOBAL sql_quote_show_create = OFF;"
    "CREATE DATABASE d; CREATE TABLE d.t (`check` INT PRIMARY KEY, `a(b` INT);"
    "CREATE TABLE d.`other` (a INT PRIMARY KEY, c INT);"
    "CREATE TABLE d.child (a INT PRIMARY KEY, b INT, FOREIGN KEY (b) REFERENCES d.t (`check`)"
    " ON UPDATE CASCADE);"
    "CREATE TABLE d.less (a INT UNSIGNED PRIMARY KEY, b INT UNSIGNED, c BIGINT AS (a - b))"
)
MODE = (b"SET sql_mode = 'NO_UNSIGNED_SUBTRACTION'", b"SET sql_mode = ''")
COMPUTED = "ADD x INT, ADD CHECK (x - 1 < a)"


class Looked:
    """What is known after a look, with how many tables the target was asked for."""

    def __init__(self, server: Server, session: TargetSession) -> None:
        self.now = 0.0
        self.server = server
        self.connection = session.connection
        self.known = KnownTables(session.traits.server, clock=lambda: self.now)

    async def at(self, table_maps: Collection[bytes], state: Setting = NO_SETTING) -> int:
        before = self.statements("show_create_table")
        await self.known.learn(self.connection, table_maps, state)
        return self.statements("show_create_table") - before

    def statements(self, kind: str) -> int:
        return int(self.server.sql(f"SHOW GLOBAL STATUS LIKE 'Com\\_{kind}'")[0][1])

    def defined(self, statement: str) -> None:
        """Run a definition, which a source has logged, too."""
        self.server.sql(f"USE d; {statement}")
        (group,) = grouped(gtid(), query(statement.encode(), database=b"d"))
        assert isinstance(group, Group)
        self.known.forget(group, ())


@pytest.fixture
async def looked() -> AsyncIterator[Looked]:
    with Server(NO_GTIDS) as server:
        server.sql(DEFINITIONS)
        session = await open_session(server)
        yield Looked(server, session)
        session.connection.close()


async def test_a_table_is_read_once_for_all_sessions_and_anew_when_it_may_be_another(
    looked: Looked,
) -> None:
    known, parent, other = looked.known, table_map(1), table_map(2, table="other")
    # The child that a cascade leads to is read, too.
    assert [await looked.at([parent, other]), await looked.at([parent, other])] == [3, 0]
    assert known.are_safe([parent, other])
    assert known.are_plain([parent, other])
    # One that is not there stops neither the others nor the next one.
    assert await looked.at([table_map(8, table="none"), table_map(9, table="other")]) == 2
    assert known.are_safe([table_map(8, table="none")])

    looked.defined("ALTER TABLE other ADD d INT")
    assert await looked.at([parent, other]) == 0
    looked.defined(f"ALTER TABLE child {COMPUTED}")
    assert not known.are_safe([parent])
    assert await looked.at([parent, other]) == 2
    assert known.are_safe([parent, other])
    assert [known.are_plain([each]) for each in (parent, other)] == [False, True]

    # What a person changes is found with the next id, which shares nothing that is older.
    looked.server.sql("ALTER TABLE d.other ENGINE = MyISAM")
    assert [await looked.at([table_map(number, table="other")]) for number in (3, 4)] == [1, 0]
    assert not known.are_safe([table_map(3, table="other")])
    looked.server.sql("ALTER TABLE d.other ENGINE = InnoDB")
    assert await looked.at([table_map(5, table="other")]) == 0
    looked.now += 1
    assert await looked.at([table_map(6, table="other")]) == 1
    assert known.are_safe([table_map(6, table="other")])

    # Where its cascades lead to is asked for at once, as they led there before.
    known.clear()
    before = looked.statements("select")
    assert await looked.at([parent]) == 2
    assert looked.statements("select") == before + 1

    # Of a table that has another id again and again, old ones are forgotten, but none asked for.
    several = [table_map(number, table="other") for number in range(20, 30)]
    await looked.at(several)
    assert len(known.of(several)) == 10
    await looked.at([table_map(30, table="other")])
    assert len(known.of(several)) == 3

    # A table keeps the state that it is opened in, also if one beside it is not there.
    looked.server.sql("FLUSH TABLES d.less")
    assert await looked.at([table_map(10, table="absent"), table_map(11, table="less")], MODE) > 1
    await looked.connection.run(b"INSERT INTO d.less (a, b) VALUES (1, 2)", 1)

    looked.defined("DROP DATABASE d")
    assert not known.are_safe([parent])

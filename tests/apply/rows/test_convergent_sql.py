"""Rows as SQL that may be applied twice, or in another order: they leave what the newest says."""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import closing
from itertools import permutations
from typing import Final

import pytest

from mtsd.apply.rows.convergent_sql import ConvergentSql
from mtsd.apply.session.session import TargetSession
from mtsd.model.errors import NotSupportedError
from tests.apply.rows.statements_of_rows import MODE, both, statements_of
from tests.apply.sessions import open_session
from tests.binlog.row_values import logged
from tests.servers.mysqld import Server

pytestmark = pytest.mark.servers

TABLE: Final = "CREATE TABLE n (id INT PRIMARY KEY, v VARCHAR(9), changed BIGINT UNSIGNED)"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as server:
        yield server


@pytest.fixture
async def session(server: Server) -> AsyncIterator[TargetSession]:
    session = await open_session(server, binary_log=False)
    yield session
    await session.connection.quit()


async def changes(
    server: Server, session: TargetSession, texts: Sequence[str], newer: str = "CHANGED"
) -> list[list[bytes]]:
    """Let the source make changes of `s.n`; return the statements for `t.n` of each."""
    found = []
    for text in texts:
        making = ConvergentSql(1 << 20, newer=newer)
        events = logged(server, [text], "s")
        found.append([each.sql for each in await statements_of(session, events, making)])
    return found


def run(server: Server, statements: Sequence[bytes]) -> None:
    with closing(server.client(flags=2)) as client, client.cursor() as cursor:
        for setting in ("SET sql_log_bin = 0", "SET time_zone = '+00:00'", MODE):
            cursor.execute(setting)
        for statement in statements:
            cursor.execute(statement)


def rows(server: Server, database: str) -> list[tuple[object, ...]]:
    return sorted(server.sql(f"SELECT * FROM {database}.n"))


async def test_the_newer_row_wins_in_every_order(server: Server, session: TargetSession) -> None:
    both(server, TABLE)
    made = await changes(
        server,
        session,
        [
            "INSERT INTO n VALUES (1, 'a', 1), (2, 'b', NULL), (3, 'c', 18446744073709551613)",
            "UPDATE n SET v = 'd', changed = 2 WHERE id < 3",
            "UPDATE n SET v = 'e', changed = changed + 1",
            "UPDATE n SET v = 'f', changed = changed + 1 WHERE id <> 2",
        ],
    )
    for order in permutations(made):
        server.sql("SET sql_log_bin = 0; DELETE FROM t.n")
        run(server, [statement for statements in order for statement in statements])
        assert rows(server, "t") == rows(server, "s")


async def test_a_delete_leaves_what_is_newer(server: Server, session: TargetSession) -> None:
    both(server, TABLE)
    inserted, deleted, again = await changes(
        server,
        session,
        [
            "INSERT INTO n VALUES (1, 'a', 5), (2, 'b', 5), (3, 'c', NULL)",
            "DELETE FROM n",
            "INSERT INTO n VALUES (1, 'a', 6), (3, 'c', 1)",
        ],
    )
    for order in ([inserted, deleted, again], [inserted, again, deleted]):
        server.sql("SET sql_log_bin = 0; DELETE FROM t.n")
        run(server, [statement for statements in order for statement in statements])
        assert rows(server, "t") == rows(server, "s") == [(1, "a", 6), (3, "c", 1)]


@pytest.mark.parametrize("newer", ["", "changed"])
async def test_applied_twice(server: Server, session: TargetSession, newer: str) -> None:
    """From whatever part of them has been applied already, one or many."""
    both(server, TABLE)
    made = await changes(
        server,
        session,
        [
            "INSERT INTO n VALUES (1, 'a', 1), (2, 'b', 1), (4, 'x', 1)",
            "UPDATE n SET id = 3, v = 'c', changed = 2 WHERE id = 1",
            "INSERT INTO n VALUES (1, 'd', 3)",
            "DELETE FROM n WHERE id = 2",
            "UPDATE n SET id = 2, v = 'e', changed = 4 WHERE id = 3",
            "UPDATE n SET v = 'f', changed = 5 WHERE id = 4",
        ],
        newer,
    )
    for applied in range(1 << len(made)):
        before = [each for at, each in enumerate(made) if applied >> at & 1]
        server.sql("SET sql_log_bin = 0; DELETE FROM t.n")
        run(server, [statement for statements in (*before, *made) for statement in statements])
        assert rows(server, "t") == rows(server, "s")


@pytest.mark.parametrize(
    ("setting", "change"),
    [
        ("SET binlog_row_image = MINIMAL", "UPDATE n SET v = 'z' WHERE id = 1"),
        ("SET binlog_row_image = MINIMAL", "UPDATE n SET id = 9 WHERE id = 1"),
    ],
)
async def test_whole_rows_are_needed(
    server: Server, session: TargetSession, setting: str, change: str
) -> None:
    both(server, TABLE)
    server.sql("INSERT INTO s.n VALUES (1, 'a', 1)")
    events = logged(server, [setting, change], "s")
    with pytest.raises(NotSupportedError, match="binlog_row_image = FULL"):
        await statements_of(session, events, ConvergentSql(1 << 20))


async def test_the_column_has_to_be_a_number_or_a_time(
    server: Server, session: TargetSession
) -> None:
    both(server, TABLE)
    events = logged(server, ["INSERT INTO n VALUES (1, 'a', 1)"], "s")
    with pytest.raises(NotSupportedError, match="column `v`, by which the newer row is to win"):
        await statements_of(session, events, ConvergentSql(1 << 20, newer="v"))

"""However a server reads a text of the source, it runs one statement of it or none."""

import random
from collections.abc import Iterator

import pytest

from mtsd.binlog.bytes.character_sets import any_collation
from mtsd.binlog.sql.invoker import with_invoker
from mtsd.binlog.sql.one_statement import surely_one
from mtsd.model.errors import NotSupportedError, ServerError
from mtsd.model.session import SessionContext
from mtsd.model.statement_text import StatementText
from mtsd.wire.connection import Connection
from tests.apply.sessions import endpoint
from tests.servers.mariadb import provide_mariadb
from tests.servers.mysqld import Server

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]

SECOND = b"INSERT INTO d.second VALUES (1)"
TEXTS = (
    b"INSERT INTO d.first VALUES (1) %b",
    b"INSERT INTO d.first SELECT LENGTH('%b')",
    b'INSERT INTO d.first SELECT LENGTH("%b")',
    b"INSERT INTO d.first SELECT 1 AS `%b`",
    b"INSERT INTO d.first SELECT 1 /*%b*/",
    b"INSERT INTO d.first SELECT @`%b`",
    b"INSERT INTO d.first SELECT N'%b' IS NULL",
    b"INSERT INTO d.first SELECT x'%b' IS NULL",
    b"BEGIN NOT ATOMIC %b END",
)
FRAGMENTS = (
    *(b"'", b'"', b"`", b"''", b"``", b"\\", b"\\\\", b";", b"\n", b" ", b"\0", b"(", b")", b","),
    *(b"/*", b"*/", b"/*!", b"/*!50000 ", b"/*!99999 ", b"/*!999999 ", b"/*M!", b"/*M!100000 "),
    *(b"/*+", b"--", b"-- ", b"#", b"-", b"/", b"$$", b"$a$", b"[", b"]", b"{", b"}", b"@", b"N'"),
    *(b"_gbk'", b"x'", b"0x", b"\\N", b"DELIMITER //\n", b"//", b"END", b"1", b"AS $$ "),
    *(bytes((byte,)) for byte in b"\x80\x81\x8e\x8f\xa1\xad\xc3\xe0\xe4\xf0\xf9\xfc\xfe\xff"),
    *(b"\x81\\", b"\x81'", b"\x81`", b"\xe4\xb8\xad", b"\xf0\x9f\x98\x80", b"\x8130\x81"),
)
MODES = {"": 0, "ANSI_QUOTES": 4, "NO_BACKSLASH_ESCAPES": 0x100000}
MODES["ANSI_QUOTES,NO_BACKSLASH_ESCAPES"] = 0x100004
SETS = ("utf8mb4", "latin1", "gbk", "sjis", "big5", "utf8mb3", "cp932", "ujis", "eucjpms", "euckr")
BEHIND = (
    b"SET @b='%b'",
    b'SET @b=(SELECT 1 AS "%b")',
    b"SET @b=(SELECT 1 AS `%b`)",
    b"SET @b=1 /*%b*/",
    b"SET @b=1 -- %b",
)
"""What shares a packet with a text: taken in by it, what is in the quotes would be SQL."""


@pytest.fixture(scope="module", params=["9.7", "11.8"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with Server(installation=provide_mariadb("11.8") if request.param == "11.8" else None) as each:
        each.sql("CREATE DATABASE d; CREATE TABLE d.first (n TEXT); CREATE TABLE d.second (n INT)")
        yield each


def generated(chance: random.Random) -> bytes:
    pieces = [chance.choice(FRAGMENTS) for _ in range(chance.randint(0, 4))]
    pieces.insert(chance.randint(0, len(pieces)), b";" + SECOND + chance.choice((b"", b";")))
    pieces += [chance.choice(FRAGMENTS) for _ in range(chance.randint(0, 2))]
    return chance.choice(TEXTS) % b"".join(pieces)


def sure(chance: random.Random) -> bytes:
    """Return a text of which most are surely one statement, or look so."""
    inside = b"".join(chance.choice(FRAGMENTS) for _ in range(chance.randint(0, 4)))
    return chance.choice(TEXTS) % inside


async def alone(connection: Connection, text: bytes) -> int:
    """Run a text as one of the source; return its error number, 0 for none."""
    connection.ask(text)
    try:
        await connection.results()
    except ServerError as error:
        return error.number
    return 0


async def in_a_packet(connection: Connection, text: bytes, behind: bytes) -> int:
    connection.send(b"SET @a=1;%b;%b" % (text, behind))
    try:
        answers = await connection.receive_answers(3)
    except ServerError as error:
        return error.number
    assert len(answers) == 3
    return 0


@pytest.mark.parametrize(
    ("count", "seed"),
    [(60, "suite"), *(pytest.param(4000, str(n), marks=pytest.mark.long) for n in range(5))],
)
async def test_one_statement_runs_or_none(server: Server, count: int, seed: str) -> None:
    chance = random.Random(seed)
    connection = await Connection.open(endpoint(server))
    ran = shared = 0
    try:
        for name in SETS:
            for mode, bits in MODES.items():
                await connection.run(
                    f"SET sql_mode='{mode}';SET character_set_client={name}".encode(), 2
                )
                context = SessionContext(sql_mode=bits, character_set_client=any_collation(name))
                for _ in range(count // 2):
                    ran += not await alone(connection, generated(chance))
                    text = sure(chance)
                    if not surely_one(text, context):
                        continue
                    shared += 1
                    behind = chance.choice(BEHIND) % (b";%b;" % SECOND)
                    error = await alone(connection, text)
                    assert await in_a_packet(connection, text, behind) == error, text
        await connection.run(b"SET character_set_client=utf8mb4", 1)
        assert await connection.query("SELECT * FROM d.second") == []
        assert ran > count, "most texts are none"
        assert shared > count
    finally:
        connection.close()


async def test_what_is_sent_for_several(server: Server) -> None:
    """As the server's own replica, which has no several statements: an error, and nothing runs."""
    connection = await Connection.open(endpoint(server))
    try:
        for text in (b"INSERT INTO d.first VALUES (1);%b", b"CREATE TABLE d.third (n INT);%b"):
            assert await alone(connection, text % SECOND) == 1064
        assert await connection.query("SELECT * FROM d.second") == []
        assert await connection.query("SHOW TABLES FROM d LIKE 'third'") == []
        with pytest.raises(NotSupportedError, match="taken a statement for several"):
            await in_a_packet(connection, b"SET @a=1;SET @a=2", b"SET @a=3")
    finally:
        connection.close()


async def test_an_account_in_each_character_set(server: Server) -> None:
    """Names whose last byte is a quote or a backslash in one set or the other."""
    connection = await Connection.open(endpoint(server))
    server.sql("CREATE EVENT d.e ON SCHEDULE EVERY 1 DAY DISABLE DO SELECT 1")
    known = {str(name) for (name,) in server.sql("SELECT character_set_name FROM"
                                                 " information_schema.character_sets")}  # fmt: skip
    written = 0
    try:
        for name in ("gb18030", "gb2312", *SETS):
            if name not in known:
                continue
            await connection.run(f"SET character_set_client={name}".encode(), 1)
            context = SessionContext(character_set_client=any_collation(name))
            for user in ("中", "ソ", "表", "俓", "功", "乗", "가", "é`", "x y"):
                try:
                    text = with_invoker(
                        StatementText(b"ALTER EVENT d.e COMMENT 'x'", context),
                        (user.encode(), b"%.`local"),
                    )
                except NotSupportedError:
                    continue
                written += 1
                assert await alone(connection, text) == 0, (name, user)
                definer = "SELECT definer FROM information_schema.events WHERE event_name = 'e'"
                assert await connection.query(definer) == [(f"{user}@%.`local",)], (name, user)
        assert written > 40
    finally:
        connection.close()
        server.sql("DROP EVENT d.e")

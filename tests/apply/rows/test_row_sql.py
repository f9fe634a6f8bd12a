"""SQL made of row events leaves the table that the events describe, for values of every type."""

import random
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import closing
from dataclasses import replace

import pytest

from mtsd.apply.rows.row_sql import RowSql, SqlStatement
from mtsd.apply.session.session import TargetSession
from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.events.rows import ROW_EVENTS, parse_rows_header
from tests.apply.rows.statements_of_rows import MODE, both, statements_of
from tests.apply.sessions import open_session
from tests.binlog.row_values import KINDS, LENIENT, Kind, create, logged, names, one_of, row, shown
from tests.servers.mysqld import Server

pytestmark = pytest.mark.servers

KEYS = {
    "primary": "PRIMARY KEY (id)",
    "unique": "UNIQUE KEY (id)",
    "none": "KEY (id)",
}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server({"max_allowed_packet": "256M"}) as server:
        yield server


@pytest.fixture
async def session(server: Server) -> AsyncIterator[TargetSession]:
    session = await open_session(server, binary_log=False)
    yield session
    await session.connection.quit()


def run(server: Server, statements: Sequence[SqlStatement]) -> None:
    with closing(server.client(flags=2)) as client, client.cursor() as cursor:
        for setting in ("SET sql_log_bin = 0", "SET time_zone = '+00:00'", MODE):
            cursor.execute(setting)
        for statement in statements:
            found = cursor.execute(statement.sql)
            assert found == statement.rows, statement.sql[:500]


def changes(rng: random.Random, count: int) -> Iterator[str]:
    """Yield statements that insert, update and delete rows of every type."""
    for number in range(count):
        yield f"INSERT INTO v (id, {names(KINDS)}) VALUES ({number}, {row(rng)})"
    for number in range(0, count, 2):
        some = rng.sample(list(KINDS), 5)
        values = ", ".join(f"`{name}` = {KINDS[name].literal(rng)}" for name in some)
        yield f"UPDATE v SET {values} WHERE id IN ({number}, {number + 1})"
    yield f"UPDATE v SET id = id + {count} WHERE id < {count // 4} ORDER BY id DESC"
    yield "DELETE FROM v WHERE id % 5 = 0"
    yield "UPDATE v SET `enum_few` = NULL WHERE id % 3 = 0"


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("metadata", ["FULL", "MINIMAL"])
@pytest.mark.parametrize("image", ["FULL", "MINIMAL", "NOBLOB"])
async def test_every_type(
    server: Server, session: TargetSession, key: str, metadata: str, image: str
) -> None:
    definition = create("v").replace("id INT PRIMARY KEY", "id INT NOT NULL")[:-1]
    both(server, f"{definition}, {KEYS[key]})")
    settings = [
        f"SET GLOBAL binlog_row_metadata = {metadata}",
        f"SET binlog_row_image = {image}",
        LENIENT,
        "SET sql_mode = 'ALLOW_INVALID_DATES'",
    ]
    events = logged(server, [*settings, *changes(random.Random(f"{key}{image}"), 16)], "s")
    one_by_one = await statements_of(session, events, RowSql(1 << 20))
    run(server, one_by_one)
    assert shown(server, "t.v") == shown(server, "s.v")
    assert checksums(server, "v")
    server.sql("SET sql_log_bin = 0; TRUNCATE t.v")
    joined = await statements_of(session, events, RowSql(1 << 20, joins=True), net=True)
    assert (len(joined) < len(one_by_one)) == (key != "none")
    run(server, joined)
    assert shown(server, "t.v") == shown(server, "s.v")
    assert checksums(server, "v")


async def test_rows_of_which_nothing_is_logged(server: Server, session: TargetSession) -> None:
    """With MINIMAL a row of defaults is an event without a byte of rows, and one row."""
    both(server, "CREATE TABLE v (id INT DEFAULT 5, w VARCHAR(9) DEFAULT 'x')")
    inserts = ["SET binlog_row_image = MINIMAL", *["INSERT INTO v VALUES ()"] * 3]
    events = logged(server, [*inserts, "INSERT INTO v (id) VALUES (6)"], "s")
    run(server, await statements_of(session, events, RowSql(1 << 20, joins=True)))
    assert server.sql("SELECT COUNT(*) FROM t.v") == [(4,)]
    assert checksums(server, "v")


def checksums(server: Server, table: str) -> bool:
    (_, one), (_, other) = server.sql(f"CHECKSUM TABLE s.{table}, t.{table}")
    return bool(one == other)


TYPED: dict[str, Kind] = {"d": KINDS["json"]}
IN_DOCUMENTS = {
    "integer": [("BIGINT", "(0), (-1), (9223372036854775807), (-9223372036854775808)")],
    "unsigned": [("BIGINT UNSIGNED", "(5), (65535), (4294967295), (18446744073709551615)")],
    "real": [("DOUBLE", "(5), (-0e0), (1e15), (5e-324)"), ("FLOAT", "(5), (0.1)")],
    "decimal": [
        ("DECIMAL(65,0)", f"(5), (-1), ({'9' * 65})"),
        ("DECIMAL(30,30)", "(0), (0.5), (-0.1)"),
        ("DECIMAL(30,10)", "(5), (0)"),
        ("DECIMAL(65,30)", f"({'9' * 35}.5), (-{'9' * 35}), ({'9' * 27}), (0.001)"),
    ],
    "bit": [("BIT(1)", "(0), (1)"), ("BIT(33)", "(5)"), ("BIT(64)", "(18446744073709551615)")],
    "year": [("YEAR", "(1999), (0)")],
    "date": [("DATE", "('0000-00-00'), ('2024-00-00'), ('2023-02-31'), ('9999-12-31')")],
    "time": [("TIME(6)", "('-838:59:59'), ('-00:00:00.000001')"), ("TIME", "('01:02:03')")],
    "datetime": [("DATETIME(6)", "('0000-00-00'), ('2023-02-31'), ('9999-12-31 23:59:59.000001')")],
    "timestamp": [
        ("TIMESTAMP(6)", "('0000-00-00'), ('1970-01-01 00:00:01'), ('2038-01-19 03:14:07.999999')"),
    ],
    "bytes": [
        *((kind, "(''), ('ab'), (X'ff00')") for kind in (
            "BINARY(4)", "BINARY(255)", "VARBINARY(4)", "TINYBLOB", "BLOB", "MEDIUMBLOB",
            "LONGBLOB",
        )),
        ("ENUM('', 'ab') CHARACTER SET binary", "(''), ('ab')"),
        ("VARBINARY(65000)", "(REPEAT(X'ff', 65000))"), ("LONGBLOB", "(REPEAT(X'ff', 70000))"),
    ],
    "other": [
        ("SET('x','y')", "('x,y'), ('')"), ("POINT", "(POINT(1, 2))"), ("JSON", "('[1, {}, 1.0]')"),
        ("VARCHAR(9)", "(''), ('é😀')"),
    ],
}  # fmt: skip
"""What is in a document comes from columns of these types with these values."""


async def test_documents_keep_their_types(server: Server, session: TargetSession) -> None:
    both(server, "CREATE TABLE j (id INT PRIMARY KEY, d JSON)")
    rng = random.Random(5)
    documents = [TYPED["d"].literal(rng) for _ in range(300)]
    documents += [
        "JSON_ARRAY(CAST(5 AS UNSIGNED), 5, 5.0, 5e0, -0e0, 1e22, 0.1e0)",
        "CAST(7e0 AS JSON)",
    ]
    events = logged(
        server,
        [LENIENT, *(f"INSERT INTO j VALUES ({n}, {d})" for n, d in enumerate(documents))],
        "s",
    )
    run(server, await statements_of(session, events, RowSql(1 << 16)))
    assert checksums(server, "j")


@pytest.mark.parametrize("kind", IN_DOCUMENTS)
async def test_documents_keep_the_types_of_columns(
    server: Server, session: TargetSession, kind: str
) -> None:
    both(server, "CREATE TABLE k (d JSON, n INT)")
    made = [LENIENT, "SET sql_mode = 'ALLOW_INVALID_DATES'"]
    for column, values in IN_DOCUMENTS[kind]:
        made += [
            f"CREATE TEMPORARY TABLE c (v {column})", f"INSERT INTO c VALUES {values}",
            "INSERT INTO k SELECT JSON_ARRAY(JSON_OBJECT('v', v)), 0 FROM c",
            "INSERT INTO k SELECT JSON_SET('[7]', '$[0]', v), 1 FROM c", "DROP TEMPORARY TABLE c",
        ]  # fmt: skip
    # Without a key, a row is only found if its document is equal.
    made += ["UPDATE k SET n = 2 WHERE n = 1", "DELETE FROM k WHERE n = 0"]
    events = logged(server, made, "s")
    run(server, await statements_of(session, events, RowSql(1 << 16)))
    assert images(server, "s.k") == images(server, "t.k") != []


def images(server: Server, table: str) -> list[bytes]:
    """Empty a table, and return the bytes of its rows as they are logged then.

    A checksum is of documents as text, which does not have their types.
    """
    events = logged(server, [f"DELETE FROM {table}"], "s")
    return [event[parse_rows_header(event).rows_at :] for event in events if event[4] in ROW_EVENTS]


async def test_partial_updates_of_documents(server: Server, session: TargetSession) -> None:
    both(server, "CREATE TABLE p (id INT PRIMARY KEY, d JSON, e JSON)")
    filler = ", ".join(f"'k{n}', 'some text to make it worth it'" for n in range(20))
    statements = [
        "SET binlog_row_value_options = PARTIAL_JSON",
        f"INSERT INTO p VALUES (1, JSON_OBJECT('a', JSON_ARRAY(1, 2, 3), {filler}), '[]')",
        f"INSERT INTO p VALUES (2, JSON_OBJECT('a', JSON_ARRAY(), {filler}), NULL)",
        "UPDATE p SET d = JSON_SET(d, '$.a[0]', CAST('2024-01-01' AS DATE), '$.k3', 1.50)",
        "UPDATE p SET d = JSON_ARRAY_INSERT(d, '$.a[0]', 'x', '$.a[5]', 'y')",
        "UPDATE p SET d = JSON_SET(JSON_REMOVE(d, '$.k4', '$.a[0]'), '$.\"new ]\"', 1e0), e = '{}'",
    ]
    events = logged(server, statements, "s")
    assert EventType.PARTIAL_UPDATE_ROWS_EVENT in {event[4] for event in events}
    run(server, await statements_of(session, events, RowSql(1 << 16, joins=True), net=True))
    assert checksums(server, "p")


async def test_updates_of_the_same_column_are_one_statement(
    server: Server, session: TargetSession
) -> None:
    both(server, create("u"))
    rng = random.Random(11)
    filled = [f"INSERT INTO u (id, {names(KINDS)}) VALUES ({n}, {row(rng)})" for n in range(24)]
    changed = {
        name: [
            f"UPDATE u SET `{name}` = {'NULL' if n % 5 == 3 else kind.literal(rng)} WHERE id = {n}"
            for n in rng.sample(range(24), 24)
        ]
        for name, kind in KINDS.items()
    }
    run(
        server,
        await statements_of(session, logged(server, [LENIENT, *filled], "s"), RowSql(1 << 20)),
    )
    for name, updates in changed.items():
        events = logged(server, [LENIENT, *updates], "s")
        joined = await statements_of(session, events, RowSql(1 << 20, joins=True), net=True)
        apart = name.startswith(("json", "point", "geometry", "vector")) or name == "enum_few"
        assert apart or len(joined) == 1, name
        assert all(f"`{name}`=".encode() in each.sql for each in joined)
        run(server, joined)
        assert checksums(server, "u"), name
    assert shown(server, "t.u") == shown(server, "s.u")


async def test_updates_name_what_changes(server: Server, session: TargetSession) -> None:
    both(
        server,
        "CREATE TABLE n (a VARCHAR(9), b INT, u INT UNIQUE, v INT, g INT AS (v + 1) STORED,"
        " h INT AS (v * 2) VIRTUAL, w TIMESTAMP NULL ON UPDATE CURRENT_TIMESTAMP,"
        " PRIMARY KEY (a, b))",
    )
    inserted = logged(
        server,
        ["INSERT INTO n (a, b, u, v) VALUES ('x', 1, 1, 1), ('X', 2, 2, 2), ('y', 1, 3, 3)"],
        "s",
    )
    run(server, await statements_of(session, inserted, RowSql(1 << 16)))
    changed = [
        "UPDATE n SET v = v + 1, w = w",
        "UPDATE n SET u = u + 1 ORDER BY u DESC",
        "UPDATE n SET v = v * 2, w = '2020-01-02 03:04:05' WHERE b = 1",
        "UPDATE n SET a = CONCAT(a, a), v = 7, w = w WHERE b = 1",
        "UPDATE n SET a = 'z', w = w WHERE b = 2",
    ]
    events = logged(server, ["BEGIN", *changed, "COMMIT"], "s")
    found = await statements_of(session, events, RowSql(1 << 16, joins=True), net=True)
    assert [each.sql.partition(b" WHERE (`a`")[0] for each in found if each.rows > 1] == [
        (
            b"UPDATE `t`.`n` SET `v`=CASE WHEN `a`=_utf8mb4 X'78' AND `b`=1 THEN 2"
            b" WHEN `a`=_utf8mb4 X'58' AND `b`=2 THEN 3 WHEN `a`=_utf8mb4 X'79' AND `b`=1 THEN 4"
            b" END,`w`=`w`"
        ),
        (
            b"UPDATE `t`.`n` SET `v`=CASE WHEN `a`=_utf8mb4 X'78' AND `b`=1 THEN 4"
            b" WHEN `a`=_utf8mb4 X'79' AND `b`=1 THEN 8 END,`w`='2020-01-02 03:04:05'"
        ),
    ]
    assert [each.sql.partition(b" WHERE ")[0] for each in found if each.rows == 1][-1] == (
        b"UPDATE `t`.`n` SET `a`=_utf8mb4 X'7a',`w`=`w`"
    )
    run(server, found)
    assert checksums(server, "n")


async def test_rows_of_one_operation_are_one_statement(
    server: Server, session: TargetSession
) -> None:
    both(server, "CREATE TABLE r (a INT, b VARCHAR(9), g INT AS (a + 1), PRIMARY KEY (b, a))")
    events = logged(
        server,
        [
            "INSERT INTO r (a, b) VALUES (1, 'x'), (2, 'Y')",
            "INSERT INTO r (a, b) VALUES (3, 'z')",
            "UPDATE r SET a = a + 10",
            "DELETE FROM r WHERE a < 13",
        ],
        "s",
    )
    found = await statements_of(session, events, RowSql(1 << 16))
    assert [(each.sql.split()[0], each.rows) for each in found] == [
        (b"INSERT", 3), (b"UPDATE", 1), (b"UPDATE", 1), (b"UPDATE", 1), (b"DELETE", 2),
    ]  # fmt: skip
    assert all(each.table == "t.r" for each in found)
    run(server, found)
    assert checksums(server, "r")
    found = await statements_of(session, events, RowSql(1))
    assert [each.rows for each in found] == [1] * 8


async def test_rows_without_an_index_are_found_by_one_reading(
    server: Server, session: TargetSession
) -> None:
    unlisted = ("json", "geometry", "point", "vector", "polygon")
    kinds = {name: kind for name, kind in KINDS.items() if not name.startswith(unlisted)}
    # Not one that is none of its members, which has to be written by itself.
    kinds["enum_few"] = replace(kinds["enum_few"], literal=one_of(1, 2, 3, 4))
    columns = ", ".join(f"`{name}` {kind.definition}" for name, kind in kinds.items())
    both(server, f"CREATE TABLE w (id INT, {columns})")
    rng = random.Random(7)
    made = []
    for number in range(40):
        values = ", ".join(
            "NULL" if number % 4 == 3 and name == "text" else kind.literal(rng)
            for name, kind in kinds.items()
        )
        made.append(f"INSERT INTO w (id, {names(kinds)}) VALUES ({number % 38}, {values})")
    inserted = logged(server, [LENIENT, *made], "s")
    changed = logged(
        server,
        [
            *("UPDATE w SET id = id + 1 WHERE id % 7 = 1", "UPDATE w SET id = id + 9 WHERE id < 5"),
            *(
                "DELETE FROM w WHERE id BETWEEN 10 AND 29",
                "UPDATE w SET `text` = 'x' WHERE id > 33",
            ),
        ],
        "s",
    )
    run(server, await statements_of(session, inserted, RowSql(1 << 20)))
    joined = await statements_of(session, changed, RowSql(1 << 20, joins=True), net=True)
    run(server, joined)
    # Those with NULL have statements of their own.
    assert 4 <= len(joined) <= 8, [(each.rows, each.sql[:99]) for each in joined]
    assert checksums(server, "w")
    # A row that is missing, or there twice, is noticed.
    again = logged(server, ["UPDATE w SET id = id + 100"], "s")
    joined = await statements_of(session, again, RowSql(1 << 20, joins=True), net=True)
    for difference in ("DELETE FROM t.w LIMIT 1", "INSERT INTO t.w SELECT * FROM t.w LIMIT 2"):
        server.sql(f"SET sql_log_bin = 0; SET sql_mode = ''; {difference}")
        with closing(server.client()) as client, client.cursor() as cursor:
            for setting in ("SET sql_log_bin = 0", "SET time_zone = '+00:00'", MODE):
                cursor.execute(setting)
            found = [cursor.execute(each.sql) for each in joined]
            client.rollback()
        assert found != [each.rows for each in joined]

"""Groups in the worst order that their keys allow, on a real target: equal rows, and no error.

Of all groups that nothing holds back, each time the newest one is applied: so a dependency that is
not seen shows. What depends on what is found out with the target's keys, from a source's events.
"""

import asyncio
import random
from base64 import b64encode
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field

import pymysql
import pytest

from mtsd.apply.tables.changed_keys import ChangedKeys
from mtsd.apply.tables.key_definitions import KeyDefinitions, read_key_definitions
from mtsd.binlog.bytes.framing import FileFramer
from mtsd.binlog.groups.rewrite import statements_of
from mtsd.model.group import Group, GroupKind
from mtsd.model.server import Flavour
from mtsd.model.step import Rows, Statement
from tests.apply.sessions import open_session
from tests.binlog.transactions import grouper
from tests.schedule.worlds.simulated_run import may_conflict
from tests.servers.mysqld import NO_GTIDS, Options, Server

pytestmark = pytest.mark.servers

EXPECTED = {1022, 1062, 1169, 1213, 1451, 1452, 1701, 1761, 3101, 3730}
"""Statements at random hit duplicates and missing rows: then the source logs nothing."""


@dataclass(frozen=True)
class Case:
    """What is defined, on the target too unless it has definitions of its own; what is changed.

    In the changes `{a}`, `{b}` are small numbers, `{w}` that of a word, and `{n}` is the number of
    the change. `by_row`: most pairs of groups are independent of each other.
    """

    definitions: str
    changes: Sequence[str]
    by_row: bool = True
    on_target: str = ""
    settings: Sequence[str] = ()
    conversions: str = ""
    least: int = field(default=20)


ROWS = (
    "INSERT INTO t VALUES ({a}, {b})", "UPDATE t SET v = {b} WHERE id = {a}",
    "UPDATE t SET id = {b} WHERE id = {a}", "DELETE FROM t WHERE id = {a}",
)  # fmt: skip
WORDS = ("a", "A", "b", "é", "E", "e", "a ", "ss", "ß", "a\t", "ab", "cs", "ccs", "cscs", "")
WORD = f"ELT({{w}} + 1, {', '.join(repr(word) for word in WORDS)})"
OF_WORDS = (
    f"INSERT INTO t VALUES ({{a}}, {WORD})", f"UPDATE t SET v = {WORD} WHERE id = {{a}}",
    "UPDATE t SET id = {b} WHERE id = {a}", "DELETE FROM t WHERE id = {a}",
)  # fmt: skip
OF_FAMILIES = (
    "INSERT INTO parent VALUES ({a}, {b})",
    "INSERT INTO child VALUES ({a}, {b}, {n})",
    "INSERT INTO child VALUES ({a}, {a}, {n})",
    "UPDATE child SET parent_id = {b} WHERE id = {a}",
    "UPDATE child SET v = {n} WHERE id = {a}",
    "UPDATE parent SET id = {b} WHERE id = {a}",
    "UPDATE parent SET v = {n} WHERE id = {a}",
    "DELETE FROM parent WHERE id = {a}",
    "DELETE FROM child WHERE id = {a}",
    "INSERT INTO grandchild VALUES ({a}, {b}, {n})",
    "DELETE FROM grandchild WHERE id = {a}",
)
PARENT = "CREATE TABLE parent (id INT PRIMARY KEY, v INT);"


def family(child: str, grandchild: str = "") -> str:
    return (
        f"{PARENT} CREATE TABLE child (id INT PRIMARY KEY, parent_id INT, v INT,"
        f" FOREIGN KEY (parent_id) REFERENCES parent (id) {child});"
        "CREATE TABLE grandchild (id INT PRIMARY KEY, child_id INT, v INT,"
        f" FOREIGN KEY (child_id) REFERENCES child (id) {grandchild})"
    )


def words(definition: str, key: str = "v") -> str:
    return f"CREATE TABLE t (id INT PRIMARY KEY, v {definition}, UNIQUE ({key}))"


CASES = {
    "a primary key": Case("CREATE TABLE t (id INT PRIMARY KEY, v INT)", ROWS),
    "a unique key that may be NULL": Case(
        "CREATE TABLE t (id INT PRIMARY KEY, v INT UNIQUE)",
        [*ROWS, "UPDATE t SET v = NULL WHERE id = {a}", "INSERT INTO t VALUES ({a}, NULL)",
         "UPDATE t SET id = {n} + 100, v = {b} WHERE id = {a}"],
    ),
    "keys of two columns": Case(
        "CREATE TABLE t (id INT, v INT, w INT, x INT, PRIMARY KEY (v, id), UNIQUE (w, x))",
        ["INSERT INTO t VALUES ({a}, {b} % 3, {a} % 3, {b} % 3)", "DELETE FROM t WHERE id = {a}",
         "UPDATE IGNORE t SET w = {b} % 3 WHERE id = {a}", "UPDATE t SET x = NULL WHERE id = {a}",
         "UPDATE IGNORE t SET v = {b} % 3 WHERE id = {a}"],
    ),
    "many rows of several tables": Case(
        "CREATE TABLE t (id INT PRIMARY KEY, v INT UNIQUE);"
        "CREATE TABLE u (id INT PRIMARY KEY, v INT UNIQUE)",
        ["BEGIN; INSERT INTO t VALUES ({a}, {b}); INSERT INTO u VALUES ({b}, {a}); COMMIT",
         "BEGIN; DELETE FROM t WHERE id = {a}; UPDATE u SET v = {n} WHERE id = {b}; COMMIT",
         "DELETE t, u FROM t JOIN u USING (id) WHERE id BETWEEN {a} AND {b}", *ROWS,
         "UPDATE t SET v = v + 100 WHERE id > {a}", "UPDATE t SET v = v - 100 WHERE v > 100"],
    ),
    "words": Case(words("VARCHAR(20) COLLATE utf8mb4_0900_ai_ci"), OF_WORDS),
    "words with blanks at their end": Case(
        words("VARCHAR(20) COLLATE utf8mb4_general_ci"), OF_WORDS
    ),
    "words of a primary key": Case(
        "CREATE TABLE t (v VARCHAR(20) CHARACTER SET latin1 PRIMARY KEY, id INT)",
        [f"INSERT INTO t VALUES ({WORD}, {{n}})", f"DELETE FROM t WHERE v = {WORD}",
         f"UPDATE t SET id = {{n}} WHERE v = {WORD}",
         f"UPDATE IGNORE t SET v = {WORD} WHERE id % 10 = {{a}} LIMIT 1"],
    ),
    "words of Hungarian": Case(
        words("VARCHAR(20) COLLATE utf8mb4_hu_0900_ai_ci"), OF_WORDS, by_row=False
    ),
    "words by their bytes": Case(words("VARCHAR(20) COLLATE utf8mb4_bin"), OF_WORDS),
    "words in UTF-16": Case(words("CHAR(20) CHARACTER SET utf16 COLLATE utf16_bin"), OF_WORDS),
    "words in UTF-16 whose case does not count": Case(
        words("CHAR(20) CHARACTER SET utf16"), OF_WORDS, by_row=False
    ),
    "bytes": Case(words("VARBINARY(20)"), OF_WORDS),
    "bytes with zeros at their end": Case(
        words("BINARY(6)"), [*OF_WORDS, "UPDATE t SET v = 'a\\0' WHERE id = {a}"]
    ),
    "a prefix of words": Case(words("VARCHAR(20)", "v(2)"), OF_WORDS),
    "a prefix of a text": Case(words("TEXT COLLATE utf8mb4_bin", "v(1)"), OF_WORDS),
    "a prefix of a blob": Case(words("BLOB", "v(1)"), OF_WORDS),
    "numbers with two zeros": Case(
        words("DOUBLE"),
        [*ROWS, "UPDATE t SET v = -0.0e0 WHERE id = {a}", "UPDATE t SET v = 0 WHERE id = {a}",
         "INSERT INTO t VALUES ({a}, -0.0e0)", "INSERT INTO t VALUES ({a}, 0.0e0)"],
    ),
    "decimals and moments": Case(
        "CREATE TABLE t (id INT PRIMARY KEY, v DECIMAL(9,2) UNIQUE, m DATETIME(3) UNIQUE)",
        ["INSERT INTO t VALUES ({a}, {b} - 5, '2020-01-01' + INTERVAL {b} SECOND)",
         "UPDATE IGNORE t SET v = -{b} / 10 WHERE id = {a}", "DELETE FROM t WHERE id = {a}",
         "UPDATE IGNORE t SET m = '2020-01-01 00:00:00.001' WHERE id = {a}"],
    ),
    "members": Case(
        words("ENUM('b', 'a', 'c', '', 'd')"),
        ["INSERT INTO t VALUES ({a}, 1 + {b} % 5)", "DELETE FROM t WHERE id = {a}",
         "UPDATE t SET v = 1 + {b} % 5 WHERE id = {a}"],
    ),
    "a unique key on a virtual column": Case(
        "CREATE TABLE t (id INT PRIMARY KEY, v INT, g INT AS (v % 7) VIRTUAL UNIQUE)",
        [change.replace("t VALUES", "t (id, v) VALUES") for change in ROWS], by_row=False,
        settings=["SET binlog_row_image = MINIMAL"],
    ),
    "a unique key on a stored column": Case(
        "CREATE TABLE t (id INT PRIMARY KEY, v INT, g INT AS (v % 7) STORED UNIQUE)",
        [change.replace("t VALUES", "t (id, v) VALUES") for change in ROWS], by_row=False,
    ),
    "a unique key on an expression": Case(
        "CREATE TABLE t (id INT PRIMARY KEY, v INT, UNIQUE ((v % 7)))", ROWS, by_row=False,
    ),
    "a unique key on an array": Case(
        "CREATE TABLE t (id INT PRIMARY KEY, v JSON,"
        " UNIQUE ((CAST(v -> '$' AS UNSIGNED ARRAY))))",
        ["INSERT INTO t VALUES ({a}, '[{a}, {b}]')", "DELETE FROM t WHERE id = {a}",
         "UPDATE t SET v = JSON_ARRAY_INSERT(v, '$[0]', {b}) WHERE id = {a}"], by_row=False,
    ),
    "parts of documents": Case(
        "CREATE TABLE t (id INT PRIMARY KEY, v INT UNIQUE, d JSON)",
        ["INSERT INTO t VALUES ({a}, {b}, '{{\"a\": \"long enough\", \"b\": 1}}')",
         "UPDATE t SET d = JSON_SET(d, '$.b', {n}) WHERE id = {a}",
         "UPDATE t SET v = {b}, d = JSON_SET(d, '$.a', {n}) WHERE id = {a}",
         "DELETE FROM t WHERE id = {a}"],
        settings=["SET binlog_row_value_options = PARTIAL_JSON"],
    ),
    "images without what has not changed": Case(
        "CREATE TABLE t (id INT PRIMARY KEY, v INT UNIQUE, w INT)",
        ["INSERT INTO t VALUES ({a}, {b}, {n})", "UPDATE t SET v = {b} WHERE id = {a}",
         "UPDATE t SET w = {n} WHERE id = {a}", "DELETE FROM t WHERE id = {a}",
         "INSERT INTO t (id, w) VALUES ({a}, {n})"],
        settings=["SET binlog_row_image = MINIMAL"],
    ),
    "images of a primary key alone": Case(
        "CREATE TABLE t (id INT PRIMARY KEY, v INT)", ROWS,
        settings=["SET binlog_row_image = MINIMAL"],
    ),
    "images without blobs": Case(
        words("BLOB", "v(1)"), OF_WORDS, settings=["SET binlog_row_image = NOBLOB"],
    ),
    "no key": Case("CREATE TABLE t (id INT, v INT)", ROWS, by_row=False),
    "no key but one that may be NULL": Case(
        "CREATE TABLE t (id INT UNIQUE, v INT)",
        [*ROWS, "UPDATE t SET id = NULL WHERE id = {a} LIMIT 1"], by_row=False,
    ),
    "keys that only the target has": Case(
        "CREATE TABLE t (id INT PRIMARY KEY, v INT)",
        ["DELETE FROM t WHERE id = {a}",
         "INSERT INTO t SELECT {a}, {b} WHERE {b} NOT IN (SELECT v FROM t)"],
        on_target="CREATE TABLE t (id INT PRIMARY KEY, v INT UNIQUE)",
    ),
    "no key on the target": Case(
        "CREATE TABLE t (id INT PRIMARY KEY, v INT)", ROWS, by_row=False,
        on_target="CREATE TABLE t (id INT, v INT)",
    ),
    "a wider type on the target": Case(
        "CREATE TABLE t (id INT PRIMARY KEY, v INT)", ROWS, by_row=False,
        on_target="CREATE TABLE t (id BIGINT PRIMARY KEY, v INT)",
        conversions="ALL_NON_LOSSY",
    ),
    "a narrower type on the target": Case(
        "CREATE TABLE t (id INT PRIMARY KEY, v DOUBLE)",
        ["INSERT INTO t SELECT {a}, 1 + {b} * 1e-9 WHERE NOT EXISTS (SELECT * FROM t)",
         "DELETE FROM t"], by_row=False,
        on_target="CREATE TABLE t (id INT PRIMARY KEY, v FLOAT UNIQUE)",
        conversions="ALL_LOSSY", least=5,
    ),
    "one column more on the target": Case(
        "CREATE TABLE t (id INT PRIMARY KEY, v INT)",
        ["DELETE FROM t WHERE id = {a}",
         "INSERT INTO t SELECT {a}, {b} WHERE {b} NOT IN (SELECT v FROM t)"], by_row=False,
        on_target="CREATE TABLE t (id INT PRIMARY KEY, v INT,"
        " w INT AS (v) VIRTUAL INVISIBLE UNIQUE)",
    ),
    "foreign keys": Case(family(""), OF_FAMILIES),
    "foreign keys that cascade deletes": Case(
        family("ON DELETE CASCADE", "ON DELETE CASCADE"), OF_FAMILIES
    ),
    "foreign keys that cascade updates": Case(
        family("ON UPDATE CASCADE", "ON DELETE SET NULL"), OF_FAMILIES
    ),
    "foreign keys that are set to NULL": Case(
        family("ON DELETE SET NULL ON UPDATE SET NULL"), OF_FAMILIES
    ),
    "foreign keys of one table": Case(
        "CREATE TABLE t (id INT PRIMARY KEY, v INT, FOREIGN KEY (v) REFERENCES t (id)"
        " ON DELETE CASCADE)",
        [*ROWS, "INSERT INTO t VALUES ({a}, NULL)", "UPDATE t SET v = NULL WHERE id = {a}"],
    ),
    "foreign keys to what is not unique": Case(
        f"SET restrict_fk_on_non_standard_key = OFF; {PARENT} ALTER TABLE parent ADD KEY (v);"
        "CREATE TABLE child (id INT PRIMARY KEY, parent_id INT, v INT,"
        " FOREIGN KEY (parent_id) REFERENCES parent (v))",
        [*OF_FAMILIES[:9], "UPDATE parent SET v = {b} WHERE id = {a}"],
    ),
    "foreign keys of two columns": Case(
        "CREATE TABLE parent (id INT, v INT, PRIMARY KEY (v, id));"
        "CREATE TABLE child (id INT PRIMARY KEY, parent_id INT, v INT,"
        " FOREIGN KEY (v, parent_id) REFERENCES parent (v, id) ON UPDATE CASCADE)",
        ["INSERT INTO parent VALUES ({a}, {b} % 2)", "DELETE FROM parent WHERE id = {a}",
         "INSERT INTO child VALUES ({a}, {b}, {a} % 2)", "DELETE FROM child WHERE id = {a}",
         "UPDATE child SET v = NULL WHERE id = {a}", "UPDATE child SET v = 1 WHERE id = {a}",
         "UPDATE IGNORE parent SET v = 1 - v WHERE id = {a}"],
    ),
    "foreign keys by words": Case(
        "CREATE TABLE parent (id VARCHAR(20) PRIMARY KEY, v INT);"
        "CREATE TABLE child (id INT PRIMARY KEY, v VARCHAR(30),"
        " FOREIGN KEY (v) REFERENCES parent (id))",
        [f"INSERT INTO parent VALUES ({WORD}, {{n}})", f"DELETE FROM parent WHERE id = {WORD}",
         f"INSERT INTO child VALUES ({{a}}, {WORD})", "DELETE FROM child WHERE id = {a}"],
    ),
    "foreign keys of the target alone": Case(
        "CREATE TABLE parent (id INT PRIMARY KEY, v INT);"
        "CREATE TABLE child (id INT PRIMARY KEY, parent_id INT, v INT)",
        ["INSERT INTO parent VALUES ({a}, {b})",
         "INSERT INTO child SELECT {a}, id, {n} FROM parent WHERE id = {b}",
         "DELETE FROM child WHERE id = {a}",
         "DELETE FROM parent WHERE id = {a} AND id NOT IN (SELECT parent_id FROM child)"],
        on_target="CREATE TABLE parent (id INT PRIMARY KEY, v INT);"
        "CREATE TABLE child (id INT PRIMARY KEY, parent_id INT, v INT,"
        " FOREIGN KEY (parent_id) REFERENCES parent (id))",
    ),
    "foreign keys to another database": Case(
        "CREATE TABLE other.parent (id INT PRIMARY KEY, v INT);"
        "CREATE TABLE child (id INT PRIMARY KEY, parent_id INT, v INT,"
        " FOREIGN KEY (parent_id) REFERENCES other.parent (id))",
        [change.replace(" parent ", " other.parent ") for change in OF_FAMILIES[:9]],
    ),
    "statements and rows": Case(
        "CREATE TABLE t (id INT PRIMARY KEY, v INT UNIQUE);"
        "CREATE TABLE u (id INT PRIMARY KEY, v INT)",
        [*ROWS, *ROWS,
         "SET binlog_format = STATEMENT; DELETE FROM t WHERE id = {a}; SET binlog_format = ROW"],
    ),
    "definitions between changes": Case(
        "CREATE TABLE t (id INT PRIMARY KEY, v INT)",
        [*ROWS * 3, "ALTER TABLE t COMMENT '{n}'", "TRUNCATE t",
         "CREATE TABLE t{n} (id INT PRIMARY KEY, v INT, FOREIGN KEY (v) REFERENCES t (id))",
         "DROP TABLE IF EXISTS t{b}"], by_row=False,
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[Server, Server]]:
    options: Options = {**NO_GTIDS, "sync_binlog": 0, "innodb_flush_log_at_trx_commit": 0}
    with Server(options) as source, Server(options) as target:
        yield source, target


def define(server: Server, definitions: str) -> None:
    server.sql(
        "SET sql_log_bin = 0, foreign_key_checks = 0; DROP DATABASE IF EXISTS a;"
        "DROP DATABASE IF EXISTS other; CREATE DATABASE a; CREATE DATABASE other; USE a;"
        f"SET foreign_key_checks = 1; {definitions}"
    )


def change(server: Server, case: Case, seed: int, count: int) -> list[Group]:
    """Let a source make changes at random; return what it has logged."""
    server.sql("FLUSH BINARY LOGS")
    chance = random.Random(seed)
    with closing(server.client("a")) as client, client.cursor() as cursor:
        for setting in case.settings:
            cursor.execute(setting)
        made = n = 0
        while made < count and n < 10 * count:
            n += 1
            a, b, w = chance.randrange(8), chance.randrange(8), chance.randrange(len(WORDS))
            try:
                for each in chance.choice(case.changes).format(a=a, b=b, w=w, n=n).split("; "):
                    made += cursor.execute(each) > 0
            except pymysql.err.MySQLError as error:
                if error.args[0] not in EXPECTED:
                    raise
                cursor.execute("ROLLBACK")
    path = max(server.datadir.glob("binlog.0*[0-9]"))
    groups = grouper().groups(list(FileFramer().feed(path.read_bytes())))
    return [each for each in groups if isinstance(each, Group) and each.kind is not GroupKind.EMPTY]


def keys_of_target(target: Server) -> KeyDefinitions:
    async def read() -> KeyDefinitions:
        session = await open_session(target)
        try:
            return await read_key_definitions(session.connection, Flavour.MYSQL, fold_case=False)
        finally:
            session.connection.close()

    return asyncio.run(read())


def waits_of(groups: Sequence[Group]) -> list[set[int]]:
    """Return by place of each group the places of those before it that it waits for."""
    return [
        {
            before
            for before, earlier in enumerate(groups[:place])
            if earlier.alone or group.alone or may_conflict(earlier.keys, group.keys)
        }
        for place, group in enumerate(groups)
    ]


def worst_order(waits: Sequence[set[int]], chance: random.Random | None) -> Iterator[int]:
    """Yield places, each time the last one that waits for nothing, or any of these."""
    left = set(range(len(waits)))
    while left:
        able = sorted(place for place in left if waits[place].isdisjoint(left))
        chosen = able[-1] if chance is None else chance.choice(able)
        left.remove(chosen)
        yield chosen


def apply(target: Server, groups: Sequence[Group], case: Case) -> None:
    with closing(target.client("a")) as client, client.cursor() as cursor:
        cursor.execute("SET GLOBAL replica_type_conversions = %s", [case.conversions])
        binlog(cursor, groups[0].format_description)
        for group in groups:
            rows = [step for step in group.steps if isinstance(step, Rows)]
            for step in group.steps:
                if isinstance(step, Statement):
                    cursor.execute("SET timestamp = 1")
                    cursor.execute(step.query.statement)
            cursor.execute("BEGIN")
            events = [event for step in rows for event in step.events]
            for statement in statements_of(events, 1 << 30, merge=False):
                binlog(cursor, statement)
            cursor.execute("COMMIT")


def binlog(cursor: "pymysql.cursors.Cursor", events: bytes) -> None:
    cursor.execute(f"BINLOG '{b64encode(events).decode()}'")


def contents(server: Server) -> dict[str, list[tuple[object, ...]]]:
    tables = server.sql(
        "SELECT CONCAT(table_schema, '.', table_name) FROM information_schema.tables"
        " WHERE table_schema IN ('a', 'other')"
    )
    return {str(name): sorted(server.sql(f"SELECT * FROM {name}"), key=repr) for (name,) in tables}


def go_through(servers: tuple[Server, Server], case: Case, seed: int, orders: int) -> float:
    """Apply changes in several orders; return the share of pairs that wait for each other."""
    source, target = servers
    define(source, case.definitions)
    groups = change(source, case, seed, 60)
    assert len(groups) >= case.least
    waits: list[set[int]] = []
    for order in range(orders):
        define(target, case.on_target or case.definitions)
        fill = ChangedKeys(keys_of_target(target))
        filled = [fill(group) for group in groups]
        waits = waits_of(filled)
        chance = random.Random(order) if order else None
        apply(target, [filled[place] for place in worst_order(waits, chance)], case)
        assert contents(target) == contents(source)
    pairs = len(groups) * (len(groups) - 1) / 2
    return sum(map(len, waits)) / pairs


@pytest.mark.parametrize("name", CASES)
def test_the_worst_order(servers: tuple[Server, Server], name: str) -> None:
    case = CASES[name]
    share = go_through(servers, case, seed=1, orders=2)
    assert (share < 0.95) == case.by_row, share


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", CASES)
def test_many_orders(servers: tuple[Server, Server], name: str) -> None:
    for seed in range(2, 12):
        go_through(servers, CASES[name], seed, orders=5)

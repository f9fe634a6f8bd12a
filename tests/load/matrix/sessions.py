"""What lives in sessions: temporary tables and XA transactions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.load.matrix.place import MYSQLS, ROWS_OR_MARIADBS, Part, Place, Step


def temporary(place: Place) -> Iterator[str | Step]:
    """Use temporary tables of two sessions, that hide base tables and one another."""
    there = place.there
    yield "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(40), n INT)"
    yield "CREATE TABLE h (a INT PRIMARY KEY, b INT)"
    yield "INSERT INTO h VALUES (100, 100)"
    for session in (0, 1):
        base = 1000 * session

        def step(sql: str, session: int = session) -> Step:
            return Step(sql, session)

        yield step("CREATE TEMPORARY TABLE h (a INT, b INT, KEY (a))")
        yield step(f"INSERT INTO h VALUES ({base + 1}, 1), ({base + 2}, 2)")
        yield step(f"CREATE TEMPORARY TABLE {there}.tt ENGINE = MyISAM SELECT {session} a")
        yield Step("INSERT INTO t (v, n) SELECT 'other', a FROM h", 2)
        yield step("INSERT INTO t (v, n) SELECT 'h', a FROM h ORDER BY a")
        yield step("BEGIN")
        yield step("INSERT INTO h VALUES (3, 3)")
        yield step("INSERT INTO t (v, n) SELECT 'in', a FROM h ORDER BY a")
        yield step("COMMIT")
        yield step("BEGIN")
        yield step("UPDATE h SET b = b + 1")
        yield step("INSERT INTO t (v, n) SELECT 'undone', b FROM h ORDER BY a")
        yield step("ROLLBACK")
        yield step(f"INSERT INTO t (v, n) SELECT 'two', h.a + tt.a FROM h, {there}.tt ORDER BY h.a")
        yield step(f"CREATE TABLE {there}.like_h{session} LIKE h")
        yield step(f"CREATE TABLE {there}.filled{session} SELECT a, b FROM h")
    for session in (1, 0):
        yield Step("ALTER TABLE h ADD c INT DEFAULT 5, RENAME TO w", session)
        yield Step("CREATE INDEX i ON w (b)", session)
        yield Step("INSERT INTO t (v, n) SELECT 'w', c FROM w", session)
        # The base table is no longer hidden.
        yield Step(f"INSERT INTO h VALUES ({50 + session}, 50)", session)
        yield Step("TRUNCATE w", session)
        yield Step("INSERT INTO t (v, n) SELECT 'none', COUNT(*) FROM w", session)
        yield Step("DROP INDEX i ON w", session)
    yield Step(f"DROP TEMPORARY TABLE IF EXISTS {there}.tt", 1)
    # Its other tables end with the session.
    yield Step("", 1)
    yield "DROP TABLE w"
    if place.has(ROWS_OR_MARIADBS, "OR REPLACE, and RENAME TABLE of a temporary table"):
        yield "CREATE OR REPLACE TEMPORARY TABLE w SELECT 9 AS a"
        yield "INSERT INTO t (v, n) SELECT 'w', a FROM w"
        # Otherwise the source logs RENAME TABLE without what it renames.
        if place.between.binlog_format == "STATEMENT":
            yield "RENAME TABLE w TO w2"
            yield "INSERT INTO t (v, n) SELECT 'w2', a FROM w2"


def xa(place: Place) -> Iterator[str | Step]:
    """Prepare, commit, roll back, in one phase and on other sessions; one stays prepared."""
    there = place.there
    yield "CREATE TABLE t (id INT PRIMARY KEY, n INT) ENGINE = InnoDB"
    yield f"CREATE TABLE {there}.t LIKE t"
    yield "INSERT INTO t VALUES (1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (6, 6)"
    yield f"INSERT INTO {there}.t SELECT id, n FROM t"
    xids = ["'plain'", "'with','branch'", "X'00FF','b',7", "'largest','',2147483647", "'quote '''"]
    if place.has(MYSQLS, "xids without a global part"):
        xids.append("'','branch'")
    session = 1
    for end in ("COMMIT", "ROLLBACK", "COMMIT"):
        for number, xid in enumerate(xids):
            session += 1
            first = 100 * session
            yield Step(f"XA START {xid}", session)
            yield Step(f"INSERT INTO t VALUES ({first}, 1), ({first + 1}, 2)", session)
            yield Step(f"UPDATE {there}.t SET n = n + 1 WHERE id = {number + 1}", session)
            yield Step(f"XA END {xid}", session)
            yield Step(f"XA PREPARE {xid}", session)
            # On MariaDB it is bound to its session until that ends.
            yield Step("", session)
            yield f"INSERT INTO t VALUES ({first + 2}, 0)"
        for xid in sorted(xids):
            yield f"XA {end} {xid}"
    yield from (
        "XA START 'one'",
        "INSERT INTO t VALUES (10, 10)",
        "UPDATE t SET n = 0 WHERE id = 1",
    )
    yield from ("XA END 'one'", "XA COMMIT 'one' ONE PHASE")
    yield from ("XA START 'undone'", "DELETE FROM t", "XA END 'undone'", "XA ROLLBACK 'undone'")
    yield from ("XA START 'same'", f"DELETE FROM {there}.t WHERE id = 2", "XA END 'same'")
    yield from ("XA PREPARE 'same'", "XA COMMIT 'same'")
    yield from ("XA START 'back'", "DELETE FROM t WHERE id = 2", "XA END 'back'")
    yield from ("XA PREPARE 'back'", "XA ROLLBACK 'back'")
    yield from ("BEGIN", "UPDATE t SET n = 99 WHERE id = 4", "COMMIT")
    yield Step("XA START 'left'", 1)
    yield Step("INSERT INTO t VALUES (99, 99)", 1)
    yield Step("XA END 'left'", 1)
    yield Step("XA PREPARE 'left'", 1)


PARTS: Final[tuple[Part, ...]] = (temporary, xa)

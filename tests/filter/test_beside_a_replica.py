"""The rules do what they do in the server's own replica, for statements and for rows."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.filter.beside_a_replica import Change, Rules, Three, contents

pytestmark = pytest.mark.servers

DATA: list[Change] = [
    ("a", "INSERT INTO t VALUES (1@, 1)"),
    ("a", "INSERT INTO b.t VALUES (2@, 1)"),
    ("a", "INSERT INTO c.T1 SELECT i + 30@0, v FROM t WHERE i < 3"),
    ("b", "INSERT INTO t VALUES (3@, 1)"),
    ("b", "REPLACE INTO a.u VALUES (4@, 1), (1, 4@)"),
    ("b", "UPDATE LOW_PRIORITY a.t SET v = v + 1@ WHERE i = (SELECT 1 FROM u WHERE i = 1)"),
    ("c", "UPDATE t SET v = v + 2@ WHERE i = 2"),
    ("c", "DELETE QUICK FROM b.u WHERE i = @"),
    ("x", "INSERT INTO t VALUES (5@, 1)"),
    ("", "INSERT INTO a.t VALUES (6@, 1)"),
    ("", "INSERT INTO b.T1 VALUES (7@, 1)"),
    ("a_b", "INSERT INTO t VALUES (8@, 1)"),
    ("aXb", "INSERT INTO t VALUES (9@, 1)"),
    ("a", "BEGIN; INSERT INTO t VALUES (10@, 1); INSERT INTO b.u VALUES (10@, 1); COMMIT"),
    ("c", "BEGIN; UPDATE a.t SET v = 7 WHERE i = 4; UPDATE b.t SET v = 7 WHERE i = 4; COMMIT"),
    ("c", "BEGIN; UPDATE a.u SET v = 8; SET foreign_key_checks = 0; UPDATE a.t SET v = 9; COMMIT"),
]  # fmt: skip
SEVERAL: list[Change] = [
    ("a", "UPDATE t, b.u SET b.u.v = b.u.v + 1 WHERE t.i = b.u.i AND t.i = 1"),
    ("a", "UPDATE a.t AS p JOIN b.u q ON p.i = q.i SET p.v = 20@ WHERE q.i = 2"),
    (
        "b",
        "UPDATE a.t p LEFT JOIN (b.u q, c.t r) ON p.i = q.i SET q.v = 30@, p.v = 31@ WHERE p.i = 3",
    ),
    ("b", "DELETE p FROM a.t p JOIN b.t q USING (i) WHERE p.i = 1@"),
    ("b", "DELETE FROM p, q USING a.T1 p JOIN b.T1 q ON p.i = q.i WHERE p.i = @"),
    ("c", "DELETE a.u.*, t FROM a.u, t WHERE u.i = t.i AND t.i = @ + 2"),
]
DEFINITIONS: list[Change] = [
    ("a", "CREATE TABLE n@ (i INT PRIMARY KEY); INSERT INTO n@ VALUES (1)"),
    ("b", "CREATE TABLE IF NOT EXISTS b.n@ LIKE a.t"),
    ("a", "CREATE TABLE c.n@ AS SELECT i FROM t"),
    ("a", "ALTER TABLE aXb.u ADD COLUMN n@ INT, ADD KEY k@ (v)"),
    ("b", "CREATE UNIQUE INDEX k@ ON u (i); DROP INDEX k@ ON u"),
    ("b", "CREATE INDEX l@ ON a.u (v)"),
    ("a", "CREATE TABLE r@ (i INT); RENAME TABLE r@ TO b.r@"),
    ("c", "CREATE TABLE r@ (i INT); RENAME TABLE r@ TO s@; TRUNCATE s@; DROP TABLE s@"),
    ("c", "TRUNCATE TABLE aXb.t"),
    ("a", "CREATE OR REPLACE VIEW w@ AS SELECT i FROM t; CREATE VIEW y@ AS SELECT 1 AS one"),
    ("a", "DROP VIEW y@"),
    ("b", "CREATE SQL SECURITY INVOKER VIEW w@ AS SELECT i FROM a.t"),
    ("a", "CREATE PROCEDURE p@ () INSERT INTO b.t VALUES (1, 1)"),
    ("b", "CREATE FUNCTION f@ () RETURNS INT RETURN 1"),
    ("", "CREATE PROCEDURE c.p@ () SELECT 1"),
    ("a", "CREATE TRIGGER g@ BEFORE INSERT ON T1 FOR EACH ROW SET NEW.v = 1"),
    ("b", "CREATE EVENT e@ ON SCHEDULE EVERY 1 DAY DO SELECT 1"),
    ("a", "CREATE DATABASE d@; ALTER DATABASE d@ CHARACTER SET latin1"),
    ("b", "ALTER DATABASE CHAR SET latin@"),
    ("a", "CREATE DATABASE a_d@; DROP DATABASE a_d@"),
    ("", "CREATE SCHEMA IF NOT EXISTS c@"),
    ("b", "CREATE TABLE v@ (i INT); DROP TABLE IF EXISTS v@, a.z, c.z"),
    ("a", "ANALYZE TABLE t, b.t; OPTIMIZE TABLE t; FLUSH TABLES t"),
    ("a", "CREATE USER u_a@; GRANT SELECT ON a.t TO u_a@; GRANT SELECT (i), UPDATE ON b.t TO u_a@"),
    ("b", "CREATE USER u_b@; GRANT ALL ON *.* TO u_b@; REVOKE DROP ON *.* FROM u_b@"),
    ("", "CREATE USER u_n@; GRANT INSERT ON b.* TO u_n@; ALTER USER u_n@ ACCOUNT LOCK"),
]  # fmt: skip
RULES: dict[str, Rules] = {
    "none": {},
    "do_db": {"do_db": ["a"]},
    "ignore_db": {"ignore_db": ["b", "x"]},
    "do_table": {"do_table": ["a.t", "b.T1", "c.n1"]},
    "ignore_table": {"ignore_table": ["a.t", "c.t1"]},
    "wild_do_table": {"wild_do_table": ["a.%", "b.t%"]},
    "wild_ignore_table": {"wild_ignore_table": ["b.%", "c.T_"]},
    "escapes": {"wild_do_table": ["a\\_b.%", "a.u", "mysql.%"]},
    "without escapes": {"wild_ignore_table": ["a_b.%", "mysql.%"]},
    "order": {
        "do_table": ["b.t"], "ignore_table": ["a.t"], "wild_do_table": ["%.T1", "a.%"],
        "wild_ignore_table": ["b.%"],
    },
    "both levels": {"do_db": ["a", "b"], "ignore_table": ["a.u", "b.t"]},
    "case": {"do_table": ["a.T"], "wild_do_table": ["A.U"]},
    "both levels of databases": {"do_db": ["a", "d1"], "wild_ignore_table": ["d%.%", "a.u"]},
    "renamed definitions": {
        "rewrite_db": [["d1", "x"], ["d2", "c"]], "wild_do_table": ["x.%", "a.%", "b.t"],
    },
    "rewrite": {"rewrite_db": [["a", "x"]]},
    "rewrite and others": {
        "rewrite_db": [["a", "x"], ["b", "a"]], "do_db": ["x", "a"], "ignore_table": ["x.u"],
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def three() -> Iterator[Three]:
    with Three.running() as three:
        three.make([*DATA, *SEVERAL, *DEFINITIONS])
        yield three


IN_THE_SUITE = ("order", "both levels of databases", "rewrite and others")
"""The other rules belong to `scripts/test --long`."""


@pytest.mark.parametrize(
    "rules",
    [pytest.param(name, marks=[] if name in IN_THE_SUITE else pytest.mark.long) for name in RULES],
)
def test_equal_to_the_servers_own_replica(three: Three, rules: str, tmp_path: Path) -> None:
    three.replicate(RULES[rules], tmp_path)
    assert contents(three.target) == contents(three.native)


@pytest.mark.parametrize(
    "rules",
    [
        pytest.param(name, marks=[] if name == "rewrite and others" else pytest.mark.long)
        for name in RULES
    ],
)
def test_equal_with_rows_as_sql(three: Three, rules: str, tmp_path: Path) -> None:
    three.replicate(RULES[rules], tmp_path, "sql")
    assert contents(three.target) == contents(three.native)

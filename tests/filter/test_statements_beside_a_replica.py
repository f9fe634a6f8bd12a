"""Files, temporary tables and generated values under the rules, as in the server's own replica."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.filter.beside_a_replica import Change, Rules, Three, contents

pytestmark = pytest.mark.servers

OF_A_SESSION = (
    "CREATE TEMPORARY TABLE w (i INT, KEY (i))",
    "INSERT INTO w VALUES (1@)",
    "ALTER TABLE w RENAME y",
    "UPDATE y SET i = i + 1",
    "BEGIN",
    "INSERT INTO y VALUES (5@)",
    "INSERT INTO t SELECT i + 300, 1 FROM y",
    "COMMIT",
    # It hides a base table.
    "CREATE TEMPORARY TABLE T1 LIKE y",
    "INSERT INTO T1 SELECT i + 1 FROM y",
    "INSERT INTO u SELECT i + 300, 2 FROM T1",
)
LOAD = "LOAD DATA INFILE 'PATH' REPLACE INTO TABLE"
STATEMENTS: list[Change] = [
    *((name, f"{LOAD} {table}") for name in ("a", "b", "c") for table in ("t", "b.u", "a.T1")),
    ("a", f"BEGIN; INSERT INTO t VALUES (70@, 1); {LOAD} b.t; UPDATE u SET v = RAND(); COMMIT"),
    ("b", f"BEGIN; {LOAD} a.t; INSERT INTO a.u VALUES (71@, 1); COMMIT"),
    ("a", "; ".join(OF_A_SESSION)),
    ("b", "; ".join(OF_A_SESSION)),
    ("a", "CREATE TABLE g@ (i INT AUTO_INCREMENT PRIMARY KEY, v DOUBLE)"),
    ("a", "INSERT INTO g@ (v) VALUES (RAND()), (5); INSERT INTO g@ (v) VALUES (LAST_INSERT_ID())"),
]
RULES: dict[str, Rules] = {
    "do_db": {"do_db": ["a"]},
    "both levels": {"do_db": ["a", "b"], "ignore_table": ["a.u", "b.t"]},
    "rewrite": {"rewrite_db": [["a", "x"]], "ignore_db": ["b"]},
    "none": {},
}
IN_THE_SUITE = ("both levels", "rewrite")


@pytest.fixture(scope="module")
def three() -> Iterator[Three]:
    with Three.running() as three:
        three.target.sql("SET GLOBAL local_infile = ON")
        path = three.source.folder / "rows"
        path.write_text("1\t50\n2\t51\n500\t\\N\n")
        three.make([(name, text.replace("PATH", str(path))) for name, text in STATEMENTS])
        yield three


@pytest.mark.parametrize(
    "rules",
    [pytest.param(name, marks=[] if name in IN_THE_SUITE else pytest.mark.long) for name in RULES],
)
def test_equal_to_the_servers_own_replica(three: Three, rules: str, tmp_path: Path) -> None:
    three.replicate(RULES[rules], tmp_path)
    assert contents(three.target) == contents(three.native)


@pytest.mark.long
@pytest.mark.parametrize("rules", RULES)
def test_equal_with_rows_as_sql(three: Three, rules: str, tmp_path: Path) -> None:
    three.replicate(RULES[rules], tmp_path, "sql")
    assert contents(three.target) == contents(three.native)

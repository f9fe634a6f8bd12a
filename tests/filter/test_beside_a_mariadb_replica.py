"""The rules do what they do in a MariaDB's own replica, too."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.filter.beside_a_replica import Change, Rules, Three, contents
from tests.filter.changes_and_rules import DATA, DEFINITIONS, RULES, SEVERAL
from tests.servers.mariadb import provide_mariadb

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]

OF_MARIADB: list[Change] = [
    ("a", "CREATE SEQUENCE sq@"),
    ("b", "CREATE OR REPLACE SEQUENCE a.sp@; DROP SEQUENCE a.sp@"),
    ("c", "CREATE OR REPLACE TABLE cr@ (i INT); CREATE OR REPLACE TABLE cr@ SELECT 5"),
    ("a", "ALTER ONLINE IGNORE TABLE b.u COMMENT 'x@'; ALTER TABLE IF EXISTS b.u ADD KEY q@ (v)"),
    ("c", "CREATE TABLE rn@ (i INT); RENAME TABLE IF EXISTS a.zz TO a.zy, rn@ WAIT 5 TO rm@"),
    ("a", "CREATE OR REPLACE DATABASE d@"),
    ("a", "CREATE OR REPLACE UNIQUE INDEX k@ ON b.u (i)"),
    ("a", "ANALYZE INSERT INTO b.t VALUES (80@, 1)"),
    ("b", "ANALYZE FORMAT = JSON UPDATE a.t SET v = 77 WHERE i = 1"),
    ("b", "CREATE ROLE u_r@; GRANT SELECT ON a.t TO u_r@; DROP ROLE u_r@"),
    ("a", "CREATE TABLE library (i INT); GRANT SELECT ON library TO u_a@; DROP TABLE library"),
    ("a", "INSERT INTO b.t VALUES (81@, 1) RETURNING i"),
    ("a", "INSERT INTO /*M! b. */ t VALUES (82@, 1)"),
    ("b", "LOCK TABLES a.t WRITE; INSERT INTO a.t VALUES (90@, 1); UNLOCK TABLES"),
    ("a", "ALTER TABLE b.u RENAME TO b.uu@; RENAME TABLE b.uu@ TO b.u"),
]
VERSIONED: list[Change] = [
    (
        "c",
        "CREATE TABLE vs@ (i INT PRIMARY KEY) WITH SYSTEM VERSIONING; INSERT INTO vs@ VALUES (1)",
    ),
    ("c", "DELETE FROM vs@; DELETE HISTORY FROM vs@"),
]
"""Rows of such tables are not applied as SQL."""
WITH_CASE: dict[str, Rules] = {
    "case of databases": {"ignore_db": ["A", "b"], "wild_ignore_table": ["C.%"]},
}
IN_THE_SUITE = ("case", "both levels")


@pytest.fixture(scope="module")
def three() -> Iterator[Three]:
    with Three.running(provide_mariadb("11.8")) as three:
        three.make([*DATA, *SEVERAL, *DEFINITIONS, *OF_MARIADB, *VERSIONED])
        yield three


@pytest.fixture(scope="module")
def unversioned() -> Iterator[Three]:
    with Three.running(provide_mariadb("11.8")) as three:
        three.make([*DATA, *SEVERAL, *DEFINITIONS, *OF_MARIADB])
        yield three


@pytest.mark.parametrize(
    "rules",
    [
        pytest.param(name, marks=[] if name in IN_THE_SUITE else pytest.mark.long)
        for name in {**RULES, **WITH_CASE}
    ],
)
def test_equal_to_the_servers_own_replica(three: Three, rules: str, tmp_path: Path) -> None:
    three.replicate({**RULES, **WITH_CASE}[rules], tmp_path)
    assert contents(three.target) == contents(three.native)


@pytest.mark.long
@pytest.mark.parametrize("rules", [*RULES, *WITH_CASE])
def test_equal_with_rows_as_sql(unversioned: Three, rules: str, tmp_path: Path) -> None:
    unversioned.replicate({**RULES, **WITH_CASE}[rules], tmp_path, "sql")
    assert contents(unversioned.target) == contents(unversioned.native)

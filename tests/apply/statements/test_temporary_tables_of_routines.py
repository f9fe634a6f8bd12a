"""Temporary tables that stored functions and triggers create, in statement format."""

from contextlib import closing
from pathlib import Path

import pymysql
import pytest

from tests.fix_daemon import replicated, stopped
from tests.fix_families import families
from tests.load.equality import unequal

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]

STATEMENTS = {"binlog_format": "STATEMENT", "log_bin_trust_function_creators": "ON"}
BEGINNING = (
    "CREATE DATABASE d; USE d; CREATE TABLE hidden (a INT PRIMARY KEY); CREATE TABLE t (a INT);"
)
FUNCTION = (
    "CREATE FUNCTION f() RETURNS INT DETERMINISTIC BEGIN"
    " DROP TEMPORARY TABLE IF EXISTS hidden; CREATE TEMPORARY TABLE hidden (a INT);"
    " INSERT INTO hidden VALUES (1); INSERT INTO t SELECT a FROM hidden; {} RETURN 1; END;"
)
READER = FUNCTION.format("").replace("INSERT INTO t SELECT a FROM hidden;", "")
"""A CREATE TABLE … SELECT refuses a function that changes another table (error 1746)."""
TRIGGER = (
    "CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW BEGIN"
    " CREATE TEMPORARY TABLE IF NOT EXISTS d.hidden (a INT); INSERT INTO hidden VALUES (NEW.a);"
    " {} END;"
)


@pytest.mark.parametrize("family", ["9.7", "11.8"])
@pytest.mark.parametrize(
    "statements",
    [
        f"{FUNCTION.format('')} SELECT f(); INSERT INTO hidden VALUES (9)",
        f"{FUNCTION.format('')} CREATE TABLE u (a INT); INSERT INTO u VALUES (f())",
        f"{TRIGGER.format('')} INSERT INTO t VALUES (5); INSERT INTO hidden VALUES (9)",
        f"{READER} CREATE TABLE u SELECT f() AS a; INSERT INTO hidden VALUES (9)",
    ],
    ids=["SELECT", "INSERT", "trigger", "CREATE"],
)
def test_what_they_leave_behind_stops(family: str, statements: str, tmp_path: Path) -> None:
    """Otherwise the next statement would find it, or the base table of that name, by chance."""
    with families(family, family, STATEMENTS) as pair:
        pair.source.sql(BEGINNING + statements)
        said = stopped(pair, tmp_path)
        if "CREATE TABLE u SELECT" in statements:
            # It has committed, so the next start does not begin it again.
            assert "mtsd resolve" in stopped(pair, tmp_path).rpartition('"starting"')[2]
        assert "leaves a temporary table behind (d.hidden)" in said
        assert pair.target.sql("SELECT * FROM d.hidden") == []


@pytest.mark.parametrize("family", ["9.7", "11.8"])
def test_of_a_statement_that_failed_on_the_source(family: str, tmp_path: Path) -> None:
    table = "CREATE TABLE m (a INT PRIMARY KEY) ENGINE = MyISAM;"
    with families(family, family, STATEMENTS) as pair:
        pair.source.sql(BEGINNING + READER.replace("INSERT INTO hidden VALUES (1);", "") + table)
        with closing(pair.source.client("d")) as client, client.cursor() as cursor:
            with pytest.raises(pymysql.err.IntegrityError):
                cursor.execute("INSERT INTO m VALUES (7), (f()), (7)")
            cursor.execute("INSERT INTO hidden VALUES (9)")
        said = stopped(pair, tmp_path)
        assert "leaves a temporary table behind (d.hidden)" in said
        assert pair.target.sql("SELECT * FROM d.hidden") == []


@pytest.mark.parametrize("family", ["9.7", "11.8"])
def test_what_they_drop_again_does_not(family: str, tmp_path: Path) -> None:
    dropped = "DROP TEMPORARY TABLE hidden;"
    with families(family, family, STATEMENTS) as pair:
        pair.source.sql(
            BEGINNING
            + FUNCTION.format(dropped)
            + "SELECT f(); SELECT f();"
            + TRIGGER.format(dropped)
            + "INSERT INTO t VALUES (5), (6); INSERT INTO hidden VALUES (9);"
            "CREATE TEMPORARY TABLE d.other (a INT); INSERT INTO other VALUES (3);"
            "INSERT INTO t SELECT a FROM other"
        )
        replicated(pair, tmp_path)
        assert unequal(pair.source, pair.target) == []

"""The account in the DEFINER clause of a definition is replaced, and nothing else."""

import pytest

from mtsd.binlog.sql.definer import with_current_definer
from mtsd.model.statement_text import StatementText

CLAUSES = (
    "DEFINER=`root`@`localhost`",
    "definer = 'ro''ot' @ '%'",
    'DEFINER="a"@"10.0.0.%"',
    "DEFINER=u@localhost",
    "DEFINER=u@10.0.0.1",
    "DEFINER=u@db.example.org",
    "DEFINER=`role`",
    "DEFINER=u",
    "DEFINER=CURRENT_USER",
    "DEFINER = CURRENT_USER()",
    "DEFINER=CURRENT_ROLE",
    "/* who */ DEFINER /* = */ = -- it\n u@localhost",
    "DEFINER=`DEFINER=x`@`VIEW v`",
)
STATEMENTS = (
    "CREATE {} VIEW v AS SELECT definer=1 FROM t",
    "CREATE OR REPLACE ALGORITHM=MERGE {} SQL SECURITY DEFINER VIEW v AS SELECT 1",
    "CREATE ALGORITHM = UNDEFINED {} SQL SECURITY INVOKER VIEW `a`.`v` AS SELECT 'DEFINER=x@y'",
    "ALTER ALGORITHM=TEMPTABLE {} VIEW v AS SELECT 1",
    "ALTER {} SQL SECURITY DEFINER VIEW v AS SELECT 1",
    "CREATE {} PROCEDURE p() SQL SECURITY DEFINER SELECT 1",
    "CREATE OR REPLACE {} AGGREGATE FUNCTION f(x INT) RETURNS INT RETURN 1",
    "CREATE {} FUNCTION IF NOT EXISTS f() RETURNS INT RETURN 1",
    "CREATE {} TRIGGER g BEFORE INSERT ON t FOR EACH ROW SET @definer = NEW.a",
    "CREATE OR REPLACE {} EVENT IF NOT EXISTS e ON SCHEDULE EVERY 1 DAY DO SELECT 1",
    "ALTER {} EVENT e RENAME TO definer",
    "CREATE {} PACKAGE p AS PROCEDURE q(); END",
    "CREATE OR REPLACE {} PACKAGE BODY p AS x INT; END",
)


@pytest.mark.parametrize("statement", STATEMENTS)
def test_only_the_account_is_replaced(statement: str) -> None:
    without = statement.replace("{} ", "").encode()
    assert with_current_definer(StatementText(without)) == without
    for clause in CLAUSES:
        changed = with_current_definer(StatementText(statement.format(clause).encode())).decode()
        before = "/* who */ " if clause.startswith("/*") else ""
        assert changed == statement.format(f"{before}DEFINER=CURRENT_USER"), clause


def test_inside_of_a_comment_that_is_executed() -> None:
    for begins in (b"/*!50017", b"/*!"):
        statement = b"ALTER %b DEFINER=`root`@`localhost`*/ EVENT e ENABLE" % begins
        changed = statement.replace(b"`root`@`localhost`", b"CURRENT_USER")
        assert with_current_definer(StatementText(statement)) == changed


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE definer (definer INT)",
        "CREATE TABLE t (a INT) COMMENT 'DEFINER=a@b'",
        "ALTER TABLE t ADD definer INT",
        "INSERT INTO t VALUES ('CREATE DEFINER=a@b VIEW v AS SELECT 1')",
        "CREATE VIEW definer AS SELECT 1",
        "DROP VIEW v /* DEFINER=a@b */",
        "CREATE",
        "",
    ],
)
def test_other_statements_stay_as_they_are(statement: str) -> None:
    assert with_current_definer(StatementText(statement.encode())) == statement.encode()

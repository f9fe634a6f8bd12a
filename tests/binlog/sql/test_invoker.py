"""Definitions that depend on who ran them."""

import pytest

from mtsd.binlog.sql.invoker import with_invoker
from mtsd.model.errors import NotSupportedError
from mtsd.model.session import SessionContext
from mtsd.model.statement_text import StatementText

CONTEXT = SessionContext()
INVOKER = b"o`neil", b"%.local"


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("ALTER EVENT e DISABLE", "ALTER DEFINER = WHO EVENT e DISABLE"),
        (
            "/* x */ alter\n event e RENAME TO f",
            "/* x */ alter DEFINER = WHO\n event e RENAME TO f",
        ),
        ("ALTER DEFINER = a EVENT e ENABLE", None),
        (
            "ALTER DEFINER = CURRENT_USER EVENT e DO SELECT CURRENT_USER()",
            "ALTER DEFINER = WHO EVENT e DO SELECT CURRENT_USER()",
        ),
        ("alter definer=current_user ( ) event e ENABLE", "alter definer=WHO event e ENABLE"),
        ("ALTER DEFINER = a EVENT e DO SELECT CURRENT_USER()", None),
        ("GRANT SELECT ON *.* TO CURRENT_USER()", "GRANT SELECT ON *.* TO WHO"),
        (
            "REVOKE ALL ON d.* FROM a, current_user ( ), CURRENT_USER",
            "REVOKE ALL ON d.* FROM a, WHO, WHO",
        ),
        ("DROP USER IF EXISTS CURRENT_USER", "DROP USER IF EXISTS WHO"),
        (
            "CREATE OR REPLACE ROLE r WITH ADMIN CURRENT_USER",
            "CREATE OR REPLACE ROLE r WITH ADMIN WHO",
        ),
        ("SET PASSWORD FOR CURRENT_USER() = 'x'", "SET PASSWORD FOR WHO = 'x'"),
        ("ALTER USER 'CURRENT_USER' ACCOUNT LOCK", None),
        ("GRANT SELECT ON d.current_user TO CURRENT_USER", "GRANT SELECT ON d.current_user TO WHO"),
        ("CREATE PROCEDURE p() SELECT CURRENT_USER()", None),
        ("CREATE TABLE t (a TEXT DEFAULT (CURRENT_USER()))", None),
    ],
)
def test_who_ran_it_is_named(statement: str, named: str | None) -> None:
    wanted = (named or statement).replace("WHO", "`o``neil`@`%.local`")
    assert with_invoker(StatementText(statement.encode(), CONTEXT), INVOKER) == wanted.encode()
    if named is None or "CURRENT_USER" not in statement.upper():
        assert with_invoker(StatementText(statement.encode(), CONTEXT), None) == statement.encode()
        return
    with pytest.raises(NotSupportedError, match="does not say who"):
        with_invoker(StatementText(statement.encode(), CONTEXT), None)


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("GRANT SELECT ON d.* TO CURRENT_ROLE", "GRANT SELECT ON d.* TO `r``1`"),
        ("REVOKE a FROM b, current_role ( )", "REVOKE a FROM b, `r``1`"),
        ("CREATE ROLE r2 WITH ADMIN CURRENT_ROLE", "CREATE ROLE r2 WITH ADMIN `r``1`"),
        (
            "ALTER DEFINER=CURRENT_ROLE EVENT e COMMENT 'x'",
            "ALTER DEFINER=`r``1` EVENT e COMMENT 'x'",
        ),
        ("GRANT SELECT ON d.current_role TO a", "GRANT SELECT ON d.current_role TO a"),
    ],
)
def test_the_role_of_a_session_is_named(statement: str, named: str) -> None:
    assert with_invoker(StatementText(statement.encode(), CONTEXT), (b"r`1", b"")) == named.encode()
    # To MySQL it is a name.
    assert with_invoker(StatementText(statement.encode(), CONTEXT), INVOKER) == statement.encode()
    assert with_invoker(StatementText(statement.encode(), CONTEXT), None) == statement.encode()

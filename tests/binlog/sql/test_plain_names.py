"""Names found by one search, beside those that the tokens tell."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtsd.binlog.sql import qualifiers as found_by
from mtsd.binlog.sql.plain_names import plain_names
from mtsd.binlog.sql.tokenizer import SQL_MODE_NO_BACKSLASH_ESCAPES
from mtsd.model.session import SessionContext
from mtsd.model.statement_text import StatementText

_PIECES = st.sampled_from(
    ["'", "`", "``", "''", "\\", ".", " ", "\0", "a", "B1", "7", "1.5", "é", "_x$", ",", "(", "-",
     "/", "*", '"', "#", "--", "/*", "*/", "[", "]", "\nAS $x$", "\n"]
)  # fmt: skip
_MODES = st.sampled_from([None, 0, SQL_MODE_NO_BACKSLASH_ESCAPES, 0x400])


@given(st.lists(_PIECES, max_size=16).map("".join), _MODES, st.sampled_from([None, 45, 28, 1, 10]))
def test_they_are_those_of_the_tokens(text: str, mode: int | None, client: int | None) -> None:
    context = SessionContext(sql_mode=mode, character_set_client=client)
    statement = StatementText(text.encode(), context)
    names, before_dot = found_by.names(statement), found_by.qualifiers(statement)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(found_by, "plain_names", lambda *_, **__: None)
        assert names == found_by.names(statement)
        assert before_dot == found_by.qualifiers(statement)


def test_what_is_of_the_usual_kind() -> None:
    usual = StatementText(b"INSERT INTO `a`.t (`b`.c) VALUES (1.5, 'it''s d.e', 'f\\'g.h', x)")
    assert plain_names(usual, before_dot=True) == {b"`a`", b"`b`"}
    assert plain_names(usual, before_dot=False) == {
        b"INSERT", b"INTO", b"`a`", b"t", b"`b`", b"c", b"VALUES", b"1", b"5", b"x",
    }  # fmt: skip
    for unusual in (b"SELECT 'a", b'SELECT "a"', b"SELECT 1 -- a", b"SELECT /*! a */ 1"):
        assert plain_names(StatementText(unusual), before_dot=False) is None


@pytest.mark.parametrize("text", [b"UPDATE t SET a = 12.5", b'UPDATE t SET a = 12.5, b = "c"'])
def test_a_number_is_no_database(text: bytes) -> None:
    assert found_by.qualifiers(StatementText(text)) == set()
    # But the name of a table, where it is one: d.12
    assert "12" in found_by.names(StatementText(text))

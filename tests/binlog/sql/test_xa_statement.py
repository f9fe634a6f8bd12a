"""The xid in a statement: what servers write, and every other form that the manual allows."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtsd.binlog.sql.tokenizer import SQL_MODE_ANSI_QUOTES, SQL_MODE_NO_BACKSLASH_ESCAPES
from mtsd.binlog.sql.xa_statement import xid_of
from mtsd.model.errors import BinlogError
from mtsd.model.session import SessionContext
from mtsd.model.statement_text import StatementText
from mtsd.model.xa_xid import XaXid

NO_ESCAPES = SessionContext(sql_mode=SQL_MODE_NO_BACKSLASH_ESCAPES)
ANSI = SessionContext(sql_mode=SQL_MODE_ANSI_QUOTES)
SJIS = SessionContext(character_set_client=13)
PLAIN = SessionContext()


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    st.binary(max_size=64),
    st.binary(max_size=64),
    st.integers(0, (1 << 64) - 1),
    st.sampled_from(["START", "END", "PREPARE", "COMMIT", "ROLLBACK"]),
    st.sampled_from([PLAIN, NO_ESCAPES, ANSI, SJIS]),
)
def test_what_servers_write(
    gtrid: bytes, bqual: bytes, format_id: int, verb: str, context: SessionContext
) -> None:
    xid = XaXid(format_id, gtrid, bqual)
    assert xid_of(StatementText(f"XA {verb} {xid}".encode(), context)) == xid


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.binary(max_size=64))
def test_text(part: bytes) -> None:
    doubled = part.replace(b"'", b"''")
    assert xid_of(StatementText(b"XA END '%b'" % doubled, NO_ESCAPES)).gtrid == part
    escaped = part.replace(b"\\", b"\\\\").replace(b"'", b"\\'")
    assert xid_of(StatementText(b"XA END '%b'" % escaped, PLAIN)).gtrid == part


@pytest.mark.parametrize(
    ("text", "xid"),
    [
        ("'abc'", (1, b"abc", b"")),
        ('"a""b\'c", \'d\'', (1, b"a\"b'c", b"d")),
        ("'',''", (1, b"", b"")),
        (r"'a\0b\n\Z\'\"\\\q\%\_'", (1, b"a\0b\n\x1a'\"\\q\\%\\_", b"")),
        (r"'\''''", (1, b"''", b"")),
        ("x'00ff' , X'', 0", (0, b"\0\xff", b"")),
        ("0x4142,0x123", (1, b"AB", b"\x01\x23")),
        ("b'01000001',B'',7", (7, b"A", b"")),
        ("0b1000001,0b100000000,0x10", (16, b"A", b"\1\0")),
        ("_utf8mb4'a',_binary 'b',3", (3, b"a", b"b")),
        ("N'a'", (1, b"a", b"")),
        ("/* x */ 'a' -- ,'b'\n,'c' ONE PHASE", (1, b"a", b"c")),
        ("'a' JOIN", (1, b"a", b"")),
    ],
)
def test_other_forms(text: str, xid: tuple[int, bytes, bytes]) -> None:
    assert xid_of(StatementText(f"XA START {text}".encode(), PLAIN)) == XaXid(*xid)


def test_the_session_says_what_a_text_is() -> None:
    assert xid_of(StatementText(rb"XA END 'a\'", NO_ESCAPES)).gtrid == b"a\\"
    assert xid_of(StatementText(b"XA END '\x83\\'", SessionContext(
        character_set_client=13, sql_mode=SQL_MODE_NO_BACKSLASH_ESCAPES
    ))).gtrid == b"\x83\\"  # fmt: skip


@pytest.mark.parametrize(
    ("statement", "context"),
    [
        (b"XA COMMIT", PLAIN),
        (b"XA COMMIT abc", PLAIN),
        (b"XA COMMIT 12", PLAIN),
        (b"XA COMMIT `a`", PLAIN),
        (b"XA COMMIT 'a", PLAIN),
        (b'XA COMMIT "a"', ANSI),
        (b"XA COMMIT 'a',", PLAIN),
        (b"XA COMMIT 'a','b',", PLAIN),
        (b"XA COMMIT 'a','b','c'", PLAIN),
        (b"XA COMMIT 'a','b',-1", PLAIN),
        (b"XA COMMIT 'a','b',18446744073709551616", PLAIN),
        (b"XA COMMIT X'616'", PLAIN),
        (b"XA COMMIT X '61'", PLAIN),
        (b"XA COMMIT X'\xff'", PLAIN),
        (b"XA COMMIT b'2'", PLAIN),
        (b'XA COMMIT X"61"', PLAIN),
        (b"XA COMMIT '" + b"a" * 65 + b"'", PLAIN),
        (b"XA COMMIT 'a', X'" + b"61" * 65 + b"'", PLAIN),
        (rb"XA COMMIT '\\'", SJIS),
    ],
)
def test_what_is_refused(statement: bytes, context: SessionContext) -> None:
    with pytest.raises(BinlogError, match="without a valid xid"):
        xid_of(StatementText(statement, context))

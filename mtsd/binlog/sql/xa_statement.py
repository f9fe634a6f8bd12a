"""The xid that an XA statement names: `gtrid [, bqual [, formatID]]` (manual, "XA Statements").

Each part is a string: 'text', X'6162' or 0x6162, B'0110' or 0b0110. Servers log the form with X,
whatever the client wrote.
"""

import re
from typing import Final

from mtsd.binlog.sql.tokenizer import (
    SQL_MODE_ANSI_QUOTES,
    SQL_MODE_NO_BACKSLASH_ESCAPES,
    has_wide_characters,
)
from mtsd.binlog.sql.words import Words
from mtsd.model.errors import BinlogError
from mtsd.model.session import SessionContext
from mtsd.model.statement_text import StatementText, Token, TokenKind
from mtsd.model.xa_xid import LONGEST_PART, XaXid

_SHOWN: Final = 80
_PREFIXED: Final = re.compile(rb"0x([0-9a-f]+)|0b([01]+)", re.IGNORECASE)
_NUMBER: Final = re.compile(rb"[0-9]+|0x[0-9a-f]+", re.IGNORECASE)
_ESCAPED: Final = {b"0": b"\0", b"b": b"\b", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"Z": b"\x1a"}
_KEEP_BACKSLASH: Final = frozenset({b"%", b"_"})
_LARGEST_FORMAT: Final = (1 << 64) - 1


def xid_of(text: StatementText) -> XaXid:
    """Return the xid in an XA START, END, PREPARE, COMMIT or ROLLBACK.

    Raises BinlogError if it contains none.
    """
    statement, context = text.raw, text.context
    words = Words(text)
    words.word()
    words.word()
    try:
        gtrid = _part(words, statement, context)
        bqual = b""
        format_id = 1
        if words.at_symbol(b","):
            words.take()
            bqual = _part(words, statement, context)
            if words.at_symbol(b","):
                words.take()
                format_id = _format_id(words, statement)
    except ValueError as error:
        raise BinlogError(f"an XA statement without a valid xid: {statement[:_SHOWN]!r}") from error
    return XaXid(format_id, gtrid, bqual)


def _part(words: Words, statement: bytes, context: SessionContext) -> bytes:
    token = words.take()
    if token is None:
        raise ValueError
    if token.kind is TokenKind.QUOTED:
        part = _text(statement[token.start : token.end], context)
    elif token.kind is TokenKind.WORD:
        part = _of_word(token, words, statement, context)
    else:
        raise ValueError
    if len(part) > LONGEST_PART:
        raise ValueError
    return part


def _of_word(token: Token, words: Words, statement: bytes, context: SessionContext) -> bytes:
    word = statement[token.start : token.end]
    quoted = words.next
    if quoted is not None and quoted.kind is TokenKind.QUOTED:
        # A character set's introducer may be apart from its text; X and B may not.
        introducer = word.startswith(b"_")
        if introducer or quoted.start == token.end:
            words.take()
            inside = statement[quoted.start : quoted.end]
            if introducer or token.text == b"N":
                return _text(inside, context)
            if token.text == b"X" and inside.startswith(b"'"):
                return bytes.fromhex(inside[1:-1].decode("ascii"))
            if token.text == b"B" and inside.startswith(b"'"):
                return _bits(inside[1:-1])
        raise ValueError
    match = _PREFIXED.fullmatch(word)
    if match is None:
        raise ValueError
    if match[2] is not None:
        return _bits(match[2])
    digits = match[1].decode("ascii")
    return bytes.fromhex("0" * (len(digits) % 2) + digits)


def _bits(digits: bytes) -> bytes:
    if not digits:
        return b""
    return int(digits, 2).to_bytes((len(digits) + 7) // 8, "big")


def _text(quoted: bytes, context: SessionContext) -> bytes:
    quote = quoted[:1]
    if quote == b"`" or (quote == b'"' and (context.sql_mode or 0) & SQL_MODE_ANSI_QUOTES):
        raise ValueError
    text = quoted[1:-1]
    if b"\\" in text and not (context.sql_mode or 0) & SQL_MODE_NO_BACKSLASH_ESCAPES:
        if has_wide_characters(context):
            # A backslash may be the second byte of a character.
            raise ValueError
        # Both at once: an escaped quote does not double the one after it.
        pattern = re.compile(rb"\\(.)|" + quote * 2, re.DOTALL)
        return pattern.sub(lambda match: _unescaped(match, quote), text)
    return text.replace(quote * 2, quote)


def _unescaped(match: re.Match[bytes], quote: bytes) -> bytes:
    escaped = match[1]
    if escaped is None:
        return quote
    if escaped in _KEEP_BACKSLASH:
        return b"\\" + escaped
    return _ESCAPED.get(escaped, escaped)


def _format_id(words: Words, statement: bytes) -> int:
    token = words.take()
    if token is None or token.kind is not TokenKind.WORD:
        raise ValueError
    match = _NUMBER.fullmatch(statement[token.start : token.end])
    if match is None:
        raise ValueError
    text = match[0].decode("ascii")
    format_id = int(text, 16 if text[:2] in ("0x", "0X") else 10)
    if format_id > _LARGEST_FORMAT:
        raise ValueError
    return format_id

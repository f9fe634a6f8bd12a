"""Names that mtsd puts into a statement: quoted in the character set of the statement's session.

In gbk, gb18030, big5, sjis and cp932 the quote behind a name can be the second half of its last
character if that is in another character set. What follows would no longer be a name. So a name is
encoded as the session reads it, and what came out is read again.
"""

import codecs
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from mtsd.binlog.bytes.character_sets import BINARY, character_set, single_byte_table, text_decoder
from mtsd.binlog.sql.tokenizer import tokens_of
from mtsd.binlog.sql.words import unquoted
from mtsd.model.errors import MtsdError, NotSupportedError
from mtsd.model.session import SessionContext
from mtsd.model.statement_text import StatementText, Token, TokenKind

_PLAIN: Final = re.compile(r"[0-9A-Za-z_$]+")
"""What is the same in every character set of a client."""
_UTF8MB4: Final = 45
_SHOWN: Final = 80
_GREATEST_OF_3_BYTES: Final = "\uffff"
_CODECS: Final = {
    "big5": "big5",
    "cp932": "cp932",
    "eucjpms": "euc_jp",
    "euckr": "cp949",
    "gb18030": "gb18030",
    "gb2312": "gb2312",
    "gbk": "gbk",
    "sjis": "shift_jis",
    "ujis": "euc_jp",
    "utf8mb3": "utf-8",
    "utf8mb4": "utf-8",
}
"""Python's, for the multi-byte character sets that a client may have."""


@lru_cache(maxsize=1024)
def quoted(name: str, client: int | None) -> bytes:
    """Return a name in the quotes that mean the same in every SQL mode.

    `client` is a collation of the session's character_set_client; None is the state that mtsd pins,
    utf8mb4. Raises NotSupportedError if the name is not exactly one name there.
    """
    if _PLAIN.fullmatch(name):
        return b"`%b`" % name.encode()
    # A server takes names that are sent as binary for UTF-8.
    collation = _UTF8MB4 if client is None or client == BINARY else client
    try:
        raw = _encoded(name.replace("`", "``"), collation)
    except (UnicodeError, MtsdError):
        raise _refused(name, collation) from None
    text = b"`%b`" % raw
    context = SessionContext(character_set_client=client)
    (token, *rest) = tokens_of(StatementText(text, context))
    whole = not rest and token.kind is TokenKind.QUOTED and token.end == len(text)
    if not whole or b"\0" in raw or text_decoder(collation)(unquoted(text, context)) != name:
        raise _refused(name, collation)
    return text


def of_bytes(name: bytes) -> str:
    """Return a name that an event has in UTF-8. Raises NotSupportedError if it is none."""
    try:
        return name.decode()
    except UnicodeDecodeError:
        raise NotSupportedError(f"a name that is not UTF-8: {name[:_SHOWN]!r}") from None


def account(user: bytes, host: bytes, client: int | None) -> bytes:
    """Return an account, or a role, whose `host` is empty; both are in UTF-8. Raises as `quoted`.

    It is read again as exactly its names in quotes, with the @ between them.
    """
    names = [quoted(of_bytes(name), client) for name in ((user, host) if host else (user,))]
    text = b"@".join(names)
    context = SessionContext(character_set_client=client)
    parts = [
        (token.kind, token.start, token.end) for token in tokens_of(StatementText(text, context))
    ]
    wanted = [(TokenKind.QUOTED, 0, len(names[0]))]
    if host:
        at = len(names[0])
        wanted += [(TokenKind.SYMBOL, at, at + 1), (TokenKind.QUOTED, at + 1, len(text))]
    if parts != wanted:
        raise _refused(user.decode() + "@" + host.decode(), client or _UTF8MB4)
    return text


def tokens_between(text: StatementText, start: int, end: int) -> Sequence[Token] | None:
    """Return the tokens in a part of a statement; None if one of them reaches out of it."""
    between: list[Token] = []
    for token in tokens_of(text):
        if token.start >= end:
            break
        if token.end > start:
            if token.start < start or token.end > end or token.kind is TokenKind.UNCLOSED:
                return None
            between.append(token)
    return between


def _encoded(text: str, collation: int) -> bytes:
    name = character_set(collation)
    table = single_byte_table(name)
    if table:
        # Bytes that stand for no character have a question mark there, which is the first of them.
        places = {ord(character): byte for byte, character in reversed([*enumerate(table)])}
        return codecs.charmap_encode(text, "strict", places)[0]
    if name not in _CODECS:
        raise NotSupportedError(f"{name} is no character set of a client")
    if name == "utf8mb3" and max(text) > _GREATEST_OF_3_BYTES:
        raise NotSupportedError("it has characters of 4 bytes")
    return text.encode(_CODECS[name])


def _refused(name: str, collation: int) -> NotSupportedError:
    try:
        of = character_set(collation)
    except NotSupportedError:
        of = f"collation {collation}"
    shown = name[:_SHOWN].encode("utf-8", "surrogateescape")
    return NotSupportedError(
        f"a statement in the character set {of}, in which the name {shown!r} that has to be put"
        " into it cannot be written"
    )

"""Whether a text of the source is one statement: a server's replica executes no second one.

A session of mtsd's takes several statements in one packet, which mtsd needs for its own. So a text
of the source runs with that switched off, where the server itself refuses a second statement
(`mtsd.wire.connection.Connection.ask`). Two questions remain. What looks like several is refused
before anything is sent, in words (`why_not_one`). And texts that shall share a packet must be
one statement each in every way of reading them (`surely_one`): the packet has no such guard.
"""

import re
from functools import cache
from typing import Final

from mtsd.binlog.bytes.character_sets import character_set, single_byte_table
from mtsd.binlog.sql.long_text import LONGEST_READ
from mtsd.binlog.sql.statement_secrets import without_secrets
from mtsd.binlog.sql.tokenizer import SQL_MODE_NO_BACKSLASH_ESCAPES, tokens_of
from mtsd.binlog.sql.words import Words
from mtsd.model.errors import NotSupportedError
from mtsd.model.session import SessionContext
from mtsd.model.statement_text import StatementText, TokenKind

_END: Final = b";"
_SHOWN: Final = 80
_WITH_BODIES: Final = frozenset({b"EVENT", b"FUNCTION", b"PACKAGE", b"PROCEDURE", b"TRIGGER"})
_BEFORE_THE_KIND: Final = frozenset({b"AGGREGATE", b"OR", b"REPLACE"})

# What is in no string: no quote, and nothing that may begin a comment, a text in another language
# or a name in brackets, or that an escape may be.
_ORDINARY: Final = rb"[^'\"`/\#\-\\;\0$\[]"
# A comment that every server skips: no version, no hint, and nothing that could end it earlier.
_COMMENT: Final = rb"/\*(?![!+]|M!)[^*]*\*/"
_SIGNS: Final = rb"-(?!-) | /(?!\*)"
_NAME: Final = rb"`[^`\\\0]*`"
# By ANSI_QUOTES what is in these quotes is a name, which has no escapes.
_IN_DOUBLE_QUOTES: Final = rb"\"[^\"\\]*\""
_IN_QUOTES: Final = {
    None: rb"'[^'\\]*'",
    True: rb"'[^'\\]* (?: \\. [^'\\]* )*'",
    False: rb"'[^']*'",
}
_ONE: Final = {
    escapes: re.compile(
        b"%b* (?: (?: %b ) %b* ){0,1000}"
        % (
            _ORDINARY,
            b" | ".join((strings, _IN_DOUBLE_QUOTES, _NAME, _SIGNS, _COMMENT)),
            _ORDINARY,
        ),
        re.VERBOSE | re.DOTALL,
    )
    for escapes, strings in _IN_QUOTES.items()
}
"""By whether a backslash is an escape; None if that is not known."""
_UP_TO_3_BYTES: Final = re.compile(rb"[\0-\xef]*")


def surely_one(text: bytes, context: SessionContext) -> bool:
    """Return whether a text is one statement without a `;`, however a server may read it.

    It is closed, too: nothing in it can take in what comes behind it. `context` is that of the
    session that it runs in. What is rare is not sure, nor what is longer than `LONGEST_READ`.
    """
    if len(text) > LONGEST_READ or not _is_of_whole_characters(text, context.character_set_client):
        return False
    mode = context.sql_mode
    escapes = None if mode is None else not mode & SQL_MODE_NO_BACKSLASH_ESCAPES
    pattern = _ONE[escapes]
    at = 0
    while (match := pattern.match(text, at)) and match.end() > at:
        at = match.end()
    return at == len(text)


def why_not_one(text: StatementText) -> str:
    """Return why a text is no statement, as what its group contains; "" if it is one.

    It has something behind a `;`, or ends inside a quote or a comment behind one. The body of a
    routine, a trigger, an event or a package may. A text longer than `LONGEST_READ` is left to
    the server, which runs nothing of several statements either.
    """
    if len(text.raw) > LONGEST_READ or _END not in text.raw:
        return ""
    # Most have it in a string: then no tokens are needed.
    if surely_one(text.raw, text.context) or _has_body(text):
        return ""
    end = -1
    for token in tokens_of(text):
        if token.kind is TokenKind.UNCLOSED:
            return (
                f"a statement in which {token.text.decode('ascii')} at byte {token.start} is not"
                f" closed: {_shown(text)}"
            )
        if end >= 0:
            return (
                f"a statement with another one behind the ';' at byte {end}, while a replica runs"
                f" one at a time: {_shown(text)}"
            )
        if token.kind is TokenKind.SYMBOL and token.text == _END:
            end = token.start
    return ""


def _has_body(text: StatementText) -> bool:
    words = Words(text)
    first = words.word()
    if first == b"BEGIN":
        return words.at_word(b"NOT")
    if first not in {b"ALTER", b"CREATE"}:
        return False
    while True:
        words.take_definer()
        word = words.word()
        if word not in _BEFORE_THE_KIND:
            return word in _WITH_BODIES


def _shown(text: StatementText) -> str:
    return repr(without_secrets(text.raw, text.context)[:_SHOWN].decode("utf-8", "replace"))


def _is_of_whole_characters(text: bytes, client: int | None) -> bool:
    """Return whether no byte of a character can be taken for another, and no quote for its half.

    A server skips a name in quotes by the lengths that first bytes announce, whatever follows.
    """
    if text.isascii():
        return True
    longest = _longest_character(client)
    if longest <= 1:
        return longest == 1
    if longest == 3 and not _UP_TO_3_BYTES.fullmatch(text):
        return False
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


@cache
def _longest_character(client: int | None) -> int:
    """Return the bytes of the longest character of UTF-8 or of single bytes; 0 of other sets."""
    try:
        name = "utf8mb4" if client is None else character_set(client)
    except NotSupportedError:
        return 0
    if single_byte_table(name):
        return 1
    return {"utf8mb3": 3, "utf8mb4": 4}.get(name, 0)

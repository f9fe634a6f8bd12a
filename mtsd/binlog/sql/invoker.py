"""Definitions that depend on the user who ran them on the source, rewritten to name that user.

A server's own replica knows the user from the event. A client's session is always its own user:
there an ALTER EVENT without DEFINER would become the replica's, and CURRENT_USER() be another. Of
definers only ALTER EVENT has CURRENT_USER in the binary log: servers write it out elsewhere.

MariaDB also knows CURRENT_ROLE, for which it logs a role, without a host, as the user. To MySQL
that is a name like any other.
"""

from collections.abc import Sequence

from mtsd.binlog.sql.quoting import account, tokens_between
from mtsd.binlog.sql.statement_secrets import without_secrets
from mtsd.binlog.sql.words import Words
from mtsd.model.errors import NotSupportedError
from mtsd.model.session import SessionContext
from mtsd.model.statement_text import StatementText, TokenKind

_OF_ACCOUNTS = frozenset({b"USER", b"ROLE"})
_USER = b"CURRENT_USER"
_ROLE = b"CURRENT_ROLE"
_DEFINER_IS = (b"DEFINER", b"=")
_ACCOUNTS = (
    [TokenKind.QUOTED],
    [TokenKind.QUOTED, TokenKind.SYMBOL, TokenKind.QUOTED],
)
_ACCOUNTS_AT_ONCE = frozenset({b"GRANT", b"REVOKE", b"SET"})


def with_invoker(text: StatementText, invoker: tuple[bytes, bytes] | None) -> bytes:
    """Return the statement with its `invoker`, (user, host), in the places where it counts.

    Unchanged if the statement names it. Raises NotSupportedError if
    it counts and the source does not say who that was: a MariaDB does not for every statement; and
    if the statement's character set has no such name.
    """
    statement, context = text.raw, text.context
    words = Words(text)
    first = words.word()
    if invoker is None or not invoker[0]:
        invoker = None
    elif first == b"ALTER" and words.at_word(b"EVENT") and words.last is not None:
        at = words.last.end
        clause = b" DEFINER = " + _account(invoker, context)
        return _with_accounts([statement[:at], clause, statement[at:]], context)
    if first == b"ALTER" and words.at_word(b"DEFINER"):
        words.take()
        words.take()
        own = _at_invoker(words, invoker)
        return _named(statement, words, invoker, context, only_next=True) if own else statement
    if first == b"CREATE":
        words.take_words(b"OR", b"REPLACE")
    accounts = first in _ACCOUNTS_AT_ONCE or (
        first in {b"ALTER", b"CREATE", b"DROP", b"RENAME"} and words.word() in _OF_ACCOUNTS
    )
    return _named(statement, words, invoker, context) if accounts else statement


def _named(
    statement: bytes,
    words: Words,
    invoker: tuple[bytes, bytes] | None,
    context: SessionContext,
    *,
    only_next: bool = False,
) -> bytes:
    """Return it with each place of the invoker replaced, or with the one that comes next."""
    pieces: list[bytes] = []
    copied = 0
    while words.next is not None:
        start = words.next.start
        qualified = words.last is not None and words.last.text == b"."
        if qualified or not _at_invoker(words, invoker):
            words.take()
            continue
        if invoker is None:
            raise NotSupportedError(
                "a statement with CURRENT_USER, of which the source does not say who"
                f" that was: {without_secrets(statement)[:200].decode('utf-8', 'replace')}"
            )
        words.take()
        if words.at_symbol(b"("):
            words.take()
            words.take()
        end = words.last.end if words.last else start
        pieces += (statement[copied:start], _account(invoker, context))
        copied = end
        if only_next:
            break
    return _with_accounts([*pieces, statement[copied:]], context) if pieces else statement


def _at_invoker(words: Words, invoker: tuple[bytes, bytes] | None) -> bool:
    """Return whether a word comes next that stands for who ran the statement."""
    is_role = invoker is not None and not invoker[1]
    return words.at_word(_USER) or (is_role and words.at_word(_ROLE))


def _account(invoker: tuple[bytes, bytes], context: SessionContext) -> bytes:
    return account(*invoker, context.character_set_client)


def _with_accounts(pieces: Sequence[bytes], context: SessionContext) -> bytes:
    """Join a statement's own pieces, with one of mtsd's between each two, which must be read so.

    Raises NotSupportedError if they are not: no byte of the statement may take in a quote of those.
    """
    statement = b"".join(pieces)
    at = 0
    for place, piece in enumerate(pieces):
        end = at + len(piece)
        if place % 2:
            tokens = tokens_between(StatementText(statement, context), at, end)
            kinds = [token.kind for token in tokens or () if token.text not in _DEFINER_IS]
            if kinds not in _ACCOUNTS:
                raise NotSupportedError(
                    "a statement into which the account that has run it cannot be put:"
                    f" {without_secrets(statement)[:200].decode('utf-8', 'replace')}"
                )
        at = end
    return statement

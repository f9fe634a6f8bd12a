"""Definitions that depend on the user who ran them on the source, rewritten to name that user.

A server's own replica knows the user from the event. A client's session is always its own user:
there an ALTER EVENT without DEFINER would become the replica's, and CURRENT_USER() be another. Of
definers only ALTER EVENT has CURRENT_USER in the binary log: servers write it out elsewhere.

MariaDB also knows CURRENT_ROLE, for which it logs a role, without a host, as the user. To MySQL
that is a name like any other.
"""

from mtsd.binlog.statement_secrets import without_secrets
from mtsd.binlog.words import Words
from mtsd.model.errors import NotSupportedError
from mtsd.model.session import SessionContext

_OF_ACCOUNTS = frozenset({b"USER", b"ROLE"})
_USER = b"CURRENT_USER"
_ROLE = b"CURRENT_ROLE"
_ACCOUNTS_AT_ONCE = frozenset({b"GRANT", b"REVOKE", b"SET"})


def with_invoker(
    statement: bytes, invoker: tuple[bytes, bytes] | None, context: SessionContext
) -> bytes:
    """Return the statement with its `invoker`, (user, host), in the places where it counts.

    `context` is as for `tokenize`. Unchanged if the statement names it. Raises NotSupportedError if
    it counts and the source does not say who that was: a MariaDB does not for every statement.
    """
    words = Words(statement, context)
    first = words.word()
    if invoker is None or not invoker[0]:
        invoker = None
    elif first == b"ALTER" and words.at_word(b"EVENT") and words.last is not None:
        at = words.last.end
        return b"%b DEFINER = %b%b" % (statement[:at], _account(invoker), statement[at:])
    if first == b"ALTER" and words.at_word(b"DEFINER"):
        words.take()
        words.take()
        own = _at_invoker(words, invoker)
        return _named(statement, words, invoker, only_next=True) if own else statement
    if first == b"CREATE":
        words.take_words(b"OR", b"REPLACE")
    accounts = first in _ACCOUNTS_AT_ONCE or (
        first in {b"ALTER", b"CREATE", b"DROP", b"RENAME"} and words.word() in _OF_ACCOUNTS
    )
    return _named(statement, words, invoker) if accounts else statement


def _named(
    statement: bytes,
    words: Words,
    invoker: tuple[bytes, bytes] | None,
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
        pieces += (statement[copied:start], _account(invoker))
        copied = end
        if only_next:
            break
    return b"".join((*pieces, statement[copied:]))


def _at_invoker(words: Words, invoker: tuple[bytes, bytes] | None) -> bool:
    """Return whether a word comes next that stands for who ran the statement."""
    is_role = invoker is not None and not invoker[1]
    return words.at_word(_USER) or (is_role and words.at_word(_ROLE))


def _account(invoker: tuple[bytes, bytes]) -> bytes:
    """Return an account, or a role, in quotes that mean the same in every SQL mode."""
    names = invoker if invoker[1] else invoker[:1]
    return b"@".join(b"`%b`" % name.replace(b"`", b"``") for name in names)

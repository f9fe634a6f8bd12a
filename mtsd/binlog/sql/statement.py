"""The kind of a logged statement, by its first words."""

import re
from typing import Final

from mtsd.binlog.sql.statement_secrets import without_secrets
from mtsd.binlog.sql.words import Words
from mtsd.model.errors import BinlogError
from mtsd.model.statement_text import StatementText, TokenKind
from mtsd.model.step import StatementKind

_FIRST_WORD: Final = re.compile(rb"[A-Za-z]+(?=[ \n(])")
"""How most statements begin, in every character set."""
_EXACT = {b"BEGIN": StatementKind.BEGIN, b"COMMIT": StatementKind.COMMIT}
_LONGEST_EXACT: Final = max(map(len, _EXACT))

_BY_FIRST_WORD = {
    b"SAVEPOINT": StatementKind.SAVEPOINT,
    b"RELEASE": StatementKind.RELEASE_SAVEPOINT,
    b"COMMIT": StatementKind.COMMIT,
    **dict.fromkeys(
        (
            b"ANALYZE",
            b"FLUSH",
            b"GRANT",
            b"IMPORT",
            b"INSTALL",
            b"OPTIMIZE",
            b"RENAME",
            b"REPAIR",
            b"REVOKE",
            b"TRUNCATE",
            b"UNINSTALL",
        ),
        StatementKind.DDL,
    ),
    **dict.fromkeys(
        (
            b"CALL",
            b"DELETE",
            b"DO",
            b"INSERT",
            b"LOAD",
            b"REPLACE",
            b"SELECT",
            b"TABLE",
            b"UPDATE",
            b"VALUES",
            b"WITH",
        ),
        StatementKind.DML,
    ),
}

_XA = {
    b"START": StatementKind.XA_START,
    b"BEGIN": StatementKind.XA_START,
    b"END": StatementKind.XA_END,
    b"PREPARE": StatementKind.XA_PREPARE,
    b"ROLLBACK": StatementKind.XA_ROLLBACK,
}


def classify(text: StatementText) -> StatementKind:
    """Return what kind of statement this is, reading no further than needed."""
    statement = text.raw
    # To look a text up takes its hash, so all of its bytes are read.
    exact = _EXACT.get(statement) if len(statement) <= _LONGEST_EXACT else None
    if exact is not None:
        return exact
    begins = _FIRST_WORD.match(statement)
    kind = None if begins is None else _BY_FIRST_WORD.get(begins[0].upper())
    if kind is not None:
        return kind
    tokens = Words(text)
    while tokens.at_symbol(b"("):
        tokens.take()
    first = tokens.word()
    kind = _BY_FIRST_WORD.get(first)
    if kind is not None:
        return kind
    match first:
        case b"CREATE" | b"ALTER":
            return _definition(statement, tokens)
        case b"DROP":
            if tokens.at_word(b"TEMPORARY"):
                return StatementKind.DROP_TEMPORARY
            return StatementKind.OTHER if tokens.at_word(b"PREPARE") else StatementKind.DDL
        case b"BEGIN":
            tokens.take_words(b"WORK")
            return StatementKind.OTHER if tokens.word() else StatementKind.BEGIN
        case b"START":
            transaction = tokens.at_word(b"TRANSACTION")
            return StatementKind.BEGIN if transaction else StatementKind.OTHER
        case b"ROLLBACK":
            tokens.take_words(b"WORK")
            to = tokens.at_word(b"TO")
            return StatementKind.ROLLBACK_TO if to else StatementKind.ROLLBACK
        case b"XA":
            second = tokens.word()
            if second == b"COMMIT":
                one_phase = tokens.find(b"ONE", b"PHASE") is not None
                return StatementKind.XA_COMMIT_ONE_PHASE if one_phase else StatementKind.XA_COMMIT
            return _XA.get(second, StatementKind.OTHER)
        case b"SET":
            commits = tokens.at_word(b"PASSWORD") or tokens.at_word(b"DEFAULT")
            return StatementKind.DDL if commits else StatementKind.OTHER
        case _:
            return StatementKind.OTHER


def _definition(statement: bytes, tokens: Words) -> StatementKind:
    tokens.take_words(b"OR", b"REPLACE")
    tokens.take_definer()
    match tokens.word():
        case b"EVENT":
            return StatementKind.EVENT_DDL
        case b"TEMPORARY":
            return StatementKind.TEMPORARY
        case b"TABLE" if b"TRANSACTION" in statement.upper():
            if _start_transaction(tokens) is not None:
                return StatementKind.CREATE_SELECT
    return StatementKind.DDL


def _start_transaction(tokens: Words) -> tuple[int, int] | None:
    """Return where START TRANSACTION is among the options of a table, starting at its name."""
    tokens.take_words(b"IF", b"NOT", b"EXISTS")
    tokens.take_name()
    return tokens.find(b"START", b"TRANSACTION", before=_QUERY_BEGINS)


_QUERY_BEGINS = frozenset({b"AS", b"SELECT", b"TABLE", b"VALUES", b"WITH"})
"""They come after the options of a table; after them any word may be a name."""


def without_start_transaction(text: StatementText) -> bytes:
    """Return a CREATE TABLE … START TRANSACTION without these two words.

    Raises BinlogError on any other statement.
    """
    statement = text.raw
    tokens = Words(text)
    tokens.take_words(b"CREATE", b"OR", b"REPLACE", b"TABLE")
    clause = _start_transaction(tokens)
    if clause is None:
        shown = without_secrets(statement, text.context)[:80]
        raise BinlogError(f"not CREATE TABLE … START TRANSACTION: {shown!r}")
    start, end = clause
    return statement[:start] + statement[end:]


def disable_on_replica(text: StatementText, clause: bytes = b"DISABLE ON REPLICA") -> bytes:
    """Rewrite CREATE EVENT or ALTER EVENT so that the event does not fire on the replica.

    A server's own replica does the same without changing the text. An ENABLE or DISABLE clause is
    replaced, otherwise `clause` is inserted where the grammar allows it: before COMMENT and DO.
    Servers before 8.2 know only the clause `DISABLE ON SLAVE`.
    Raises BinlogError on any other statement, and if a quote is not closed.
    """
    statement = text.raw
    tokens = Words(text)
    tokens.take_words(b"CREATE", b"ALTER", b"OR", b"REPLACE")
    tokens.take_definer()
    if tokens.word() != b"EVENT":
        raise BinlogError(
            "not a statement that creates or alters an event:"
            f" {without_secrets(statement, text.context)[:80]!r}"
        )
    tokens.take_words(b"IF", b"NOT", b"EXISTS")
    tokens.take_name()
    depth = 0
    end = tokens.last.end if tokens.last else 0
    while token := tokens.take():
        if token.kind is TokenKind.UNCLOSED:
            raise BinlogError(f"{token.text!r} at byte {token.start} is not closed")
        if token.kind is TokenKind.SYMBOL:
            depth += (token.text == b"(") - (token.text == b")")
            if token.text == b";" and tokens.next is None:
                break
            if token.text in b".@":
                # What follows is not a keyword but a name.
                tokens.take()
        elif token.kind is TokenKind.WORD and depth == 0 and not tokens.at_symbol(b".("):
            match token.text:
                case b"RENAME":
                    tokens.take_words(b"TO")
                    tokens.take_name()
                case b"ENABLE" | b"DISABLE":
                    stop = token.end
                    if token.text == b"DISABLE" and tokens.at_word(b"ON"):
                        tokens.take()
                        role = tokens.take()
                        if role is None or role.text not in {b"REPLICA", b"SLAVE"}:
                            break
                        stop = role.end
                    return statement[: token.start] + clause + statement[stop:]
                case b"COMMENT" | b"DO":
                    at = token.start
                    return statement[:at] + clause + b" " + statement[at:]
        end = tokens.last.end if tokens.last else end
    return statement[:end] + b" " + clause + statement[end:]

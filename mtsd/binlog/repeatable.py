"""Definitions that tell by an error of their own that they have run before.

Run a second time, CREATE TABLE says that the table exists. ADD INDEX says nothing and adds
another one, so nothing may be concluded of what is not listed here.
"""

from mtsd.binlog.tokenizer import TokenKind, tokenize
from mtsd.model.session import SessionContext

_CREATED: dict[bytes, frozenset[int]] = {
    b"DATABASE": frozenset({1007}),
    b"SCHEMA": frozenset({1007}),
    b"TABLE": frozenset({1050}),
    b"VIEW": frozenset({1050}),
    b"INDEX": frozenset({1061}),
    b"TRIGGER": frozenset({1359}),
    b"PROCEDURE": frozenset({1304}),
    b"FUNCTION": frozenset({1304, 1125}),
    b"EVENT": frozenset({1537}),
    b"USER": frozenset({1396}),
    b"ROLE": frozenset({1396}),
}
_DROPPED: dict[bytes, frozenset[int]] = {
    b"DATABASE": frozenset({1008}),
    b"SCHEMA": frozenset({1008}),
    b"TABLE": frozenset({1051}),
    b"TABLES": frozenset({1051}),
    b"VIEW": frozenset({1051}),
    b"INDEX": frozenset({1091}),
    b"TRIGGER": frozenset({1360}),
    b"PROCEDURE": frozenset({1305}),
    b"FUNCTION": frozenset({1305}),
    b"EVENT": frozenset({1539}),
    b"USER": frozenset({1396}),
    b"ROLE": frozenset({1396}),
}
_BETWEEN = frozenset({
    b"OR", b"REPLACE", b"UNIQUE", b"FULLTEXT", b"SPATIAL", b"DEFINER", b"SQL", b"SECURITY",
    b"INVOKER", b"ALGORITHM", b"UNDEFINED", b"MERGE", b"TEMPTABLE", b"AGGREGATE", b"CURRENT_USER",
})  # fmt: skip
"""Words that may stand between CREATE and the kind of what it makes."""


def errors_of_a_second_time(
    statement: bytes, context: SessionContext | None = None
) -> frozenset[int] | None:
    """Return the errors by which a statement shows that it has run before.

    Without an error, it has left the same as the first time. None where running it a second time
    could change something again. `context` is as for `tokenize`.
    """
    tokens = tokenize(statement, context or SessionContext())
    first = next(tokens, None)
    if first is None or first.kind is not TokenKind.WORD:
        return None
    if first.text == b"TRUNCATE":
        return frozenset()
    kinds = {b"CREATE": _CREATED, b"DROP": _DROPPED}.get(first.text)
    if kinds is None:
        return None
    for token in tokens:
        if token.kind is TokenKind.WORD:
            if token.text in kinds:
                return kinds[token.text]
            if first.text == b"DROP" or token.text not in _BETWEEN:
                return None
    return None

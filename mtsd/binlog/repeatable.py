"""Definitions that tell by an error of their own that they have run before.

Run a second time, CREATE TABLE says that the table exists. ADD INDEX says nothing and adds
another one, so nothing may be concluded of what is not listed here.
"""

from mtsd.binlog.words import Words
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
    b"OR", b"REPLACE", b"UNIQUE", b"FULLTEXT", b"SPATIAL", b"SQL", b"SECURITY",
    b"INVOKER", b"ALGORITHM", b"UNDEFINED", b"MERGE", b"TEMPTABLE", b"AGGREGATE",
})  # fmt: skip
"""Words that may stand between CREATE and the kind of what it makes."""


def errors_of_a_second_time(
    statement: bytes, context: SessionContext | None = None
) -> frozenset[int] | None:
    """Return the errors by which a statement shows that it has run before.

    Without an error, it has left the same as the first time. None where running it a second time
    could change something again. `context` is as for `tokenize`.
    """
    words = Words(statement, context or SessionContext())
    first = words.word()
    if first == b"TRUNCATE":
        return frozenset()
    kinds = {b"CREATE": _CREATED, b"DROP": _DROPPED}.get(first)
    while kinds is not None:
        words.take_definer()
        if words.at_symbol(b"="):
            # ALGORITHM = MERGE
            words.take()
        word = words.word()
        if word in kinds:
            return kinds[word]
        if first == b"DROP" or word not in _BETWEEN:
            break
    return None

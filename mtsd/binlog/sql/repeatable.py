"""Definitions that fail with a distinctive error if they have run before.

Run a second time, CREATE TABLE says that the table exists. ADD INDEX says nothing and adds
another one, so nothing can be concluded about what is not listed here.
"""

from mtsd.binlog.sql.words import Words
from mtsd.model.error_numbers import ER
from mtsd.model.statement_text import StatementText

_VIEW_DOES_NOT_EXIST = ER.UNKNOWN_VIEW
"""Both of MariaDB; in a MySQL, a view that does not exist is a table that does not."""
_CREATED: dict[bytes, frozenset[int]] = {
    b"DATABASE": frozenset({ER.DB_CREATE_EXISTS}),
    b"SCHEMA": frozenset({ER.DB_CREATE_EXISTS}),
    b"TABLE": frozenset({ER.TABLE_EXISTS_ERROR}),
    b"VIEW": frozenset({ER.TABLE_EXISTS_ERROR}),
    b"SEQUENCE": frozenset({ER.TABLE_EXISTS_ERROR}),
    b"INDEX": frozenset({ER.DUP_KEYNAME}),
    b"TRIGGER": frozenset({ER.TRG_ALREADY_EXISTS}),
    b"PROCEDURE": frozenset({ER.SP_ALREADY_EXISTS}),
    b"FUNCTION": frozenset({ER.SP_ALREADY_EXISTS, ER.UDF_EXISTS}),
    b"EVENT": frozenset({ER.EVENT_ALREADY_EXISTS}),
    b"USER": frozenset({ER.CANNOT_USER}),
    b"ROLE": frozenset({ER.CANNOT_USER}),
}
_DROPPED: dict[bytes, frozenset[int]] = {
    b"DATABASE": frozenset({ER.DB_DROP_EXISTS}),
    b"SCHEMA": frozenset({ER.DB_DROP_EXISTS}),
    b"TABLE": frozenset({ER.BAD_TABLE_ERROR}),
    b"TABLES": frozenset({ER.BAD_TABLE_ERROR}),
    b"VIEW": frozenset({ER.BAD_TABLE_ERROR, _VIEW_DOES_NOT_EXIST}),
    b"SEQUENCE": frozenset({ER.UNKNOWN_SEQUENCES}),
    b"INDEX": frozenset({ER.CANT_DROP_FIELD_OR_KEY}),
    b"TRIGGER": frozenset({ER.TRG_DOES_NOT_EXIST}),
    b"PROCEDURE": frozenset({ER.SP_DOES_NOT_EXIST}),
    b"FUNCTION": frozenset({ER.SP_DOES_NOT_EXIST}),
    b"EVENT": frozenset({ER.EVENT_DOES_NOT_EXIST}),
    b"USER": frozenset({ER.CANNOT_USER}),
    b"ROLE": frozenset({ER.CANNOT_USER}),
}
_BETWEEN = frozenset({
    b"OR", b"REPLACE", b"UNIQUE", b"FULLTEXT", b"SPATIAL", b"SQL", b"SECURITY",
    b"INVOKER", b"ALGORITHM", b"UNDEFINED", b"MERGE", b"TEMPTABLE", b"AGGREGATE",
})  # fmt: skip
"""Words that may stand between CREATE and the kind of object it creates."""


def errors_of_a_second_time(text: StatementText) -> frozenset[int] | None:
    """Return the errors by which a statement shows that it has run before.

    If it succeeds instead, it leaves the same result as the first time. None if a second run
    could change something again.
    """
    words = Words(text)
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

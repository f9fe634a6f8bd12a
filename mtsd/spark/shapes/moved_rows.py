"""Definitions that end, bring or move rows without a row event: TRUNCATE, DROP, RENAME and others.

Of these a binary log has only the statement. MySQL manual, "Data Definition Statements"; MariaDB
documentation, "ALTER TABLE", "CREATE TABLE".
"""

from dataclasses import dataclass
from typing import Final

from mtsd.binlog.sql.changed_tables import Changed, Extent, changed
from mtsd.binlog.sql.table_names import Table
from mtsd.binlog.sql.words import Words
from mtsd.model.step import AlterPhase, QueryEvent

_TABLES: Final = frozenset({b"TABLE", b"TABLES"})
_DROPPED: Final = _TABLES | {b"DATABASE", b"SCHEMA"}
_CLAUSES: Final = frozenset({
    (b"DROP", b"PARTITION"), (b"TRUNCATE", b"PARTITION"), (b"EXCHANGE", b"PARTITION"),
    (b"CONVERT", b"PARTITION"), (b"CONVERT", b"TABLE"),
    (b"DISCARD", b"PARTITION"), (b"IMPORT", b"PARTITION"),
    (b"DISCARD", b"TABLESPACE"), (b"IMPORT", b"TABLESPACE"),
})  # fmt: skip
_OF_A_TABLE: Final = frozenset({b"COLUMN", b"INDEX", b"KEY", b"CONSTRAINT"})
"""What a RENAME in an ALTER TABLE renames, unless it is the table."""
_UNKNOWN: Final = Changed(Extent.UNKNOWN)


@dataclass(frozen=True, slots=True)
class MovedRows:
    """What a definition does to rows of these tables: whether it `ends_all`, and brings none.

    The extent is UNKNOWN if it may end, bring or move some, and is not understood.
    """

    of: Changed
    ends_all: bool = False


def moved_rows(query: QueryEvent) -> MovedRows | None:
    """Return whose rows a definition ends, brings or moves without row events; None if of none."""
    if query.alter_phase not in {None, AlterPhase.COMMIT}:
        return None
    words = Words(query.text)
    match words.word():
        case b"TRUNCATE":
            return MovedRows(changed(query.text), ends_all=True)
        case b"DROP" if words.word() in _DROPPED:
            return MovedRows(changed(query.text), ends_all=True)
        case b"RENAME" if words.word() in _TABLES:
            return MovedRows(changed(query.text))
        case b"CREATE" if words.at_word(b"OR"):
            words.take_words(b"OR", b"REPLACE")
            if words.word() == b"TABLE":
                return MovedRows(changed(query.text), ends_all=True)
        case b"ALTER":
            return _altered(words, query)
    return None


def _altered(words: Words, query: QueryEvent) -> MovedRows | None:
    words.take_words(b"ONLINE")
    # It deletes rows that are alike under a new unique key.
    moves = words.at_word(b"IGNORE")
    words.take_words(b"IGNORE")
    if words.word() != b"TABLE":
        return None
    words.take_words(b"IF", b"EXISTS")
    words.take_name()
    more: list[Table] = []
    for token in words.outer_words():
        if token.text == b"RENAME" and not any(map(words.at_word, _OF_A_TABLE)):
            words.take_words(b"TO", b"AS")
            if words.at_symbol(b"="):
                words.take()
            more.append(words.take_name())
            moves = True
        elif token.text == b"ENGINE":
            if words.at_symbol(b"="):
                words.take()
            moves = moves or words.at_word(b"BLACKHOLE")
        elif any(token.text == first and words.at_word(second) for first, second in _CLAUSES):
            moves = True
            if token.text == b"CONVERT":
                more += _converted(words)
    if not moves:
        return None
    changes = changed(query.text)
    if changes.extent is not Extent.TABLES:
        return MovedRows(_UNKNOWN)
    return MovedRows(Changed(Extent.TABLES, (*changes.tables, *more)))


def _converted(words: Words) -> list[Table]:
    """Return the other table of MariaDB's CONVERT PARTITION p TO TABLE t, CONVERT TABLE t TO …."""
    if words.word() == b"PARTITION":
        words.take()
        words.take_words(b"TO", b"TABLE")
    return [words.take_name()]

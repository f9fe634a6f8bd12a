"""What statements do to the temporary tables of their session, and which of them use one.

A statement that uses one has the flag THREAD_SPECIFIC, but so have many that do not:
CONNECTION_ID(), a multi-table DELETE, every DROP TABLE. Run where that temporary table does not
exist, it would find the base table that was hidden. Only binlog_format = STATEMENT logs statements
that use one, and it logs the CREATE TEMPORARY TABLE before that; a session's end is logged as a
DROP TEMPORARY TABLE, and a server's start leaves none.
"""

from collections.abc import Iterable, Iterator

from mtsd.binlog.sql.qualifiers import names
from mtsd.binlog.sql.words import Words
from mtsd.model.names import folded
from mtsd.model.statement_text import TokenKind
from mtsd.model.step import QueryEvent, StatementKind
from mtsd.model.temporary_tables import SourceThread, TableName, TemporaryTables, described

_READS = frozenset({b"SELECT", b"TABLE"})
"""In a CREATE TABLE, another table's name comes after these."""
_TABLES = frozenset({b"TABLE", b"TABLES"})
_OF_A_PART = frozenset({b"COLUMN", b"INDEX", b"KEY"})
"""After RENAME in an ALTER TABLE: it is not the table that is renamed."""


def after(
    temporary: TemporaryTables,
    thread: SourceThread,
    query: QueryEvent,
    kind: StatementKind,
    *,
    fold_case: bool,
    left_out: bool = False,
    renames: bool = False,
) -> TemporaryTables:
    """Return what is known about temporary tables after a statement, which may be `left_out`.

    `fold_case`: whether table names on the source are not case-sensitive; `renames`: whether
    RENAME TABLE renames temporary tables.
    """
    if kind is StatementKind.TEMPORARY:
        words = Words(query.text)
        words.take_words(b"CREATE", b"OR", b"REPLACE", b"TEMPORARY")
        words.word()
        words.take_words(b"IF", b"NOT", b"EXISTS")
        name = _name(words, query, fold_case=fold_case)
        return temporary.opened(thread, name, left_out=left_out)
    if thread not in temporary.by_thread and thread not in temporary.left_out:
        return temporary
    words = Words(query.text)
    if kind is StatementKind.DROP_TEMPORARY:
        words.take_words(b"DROP", b"TEMPORARY")
        words.word()
        words.take_words(b"IF", b"EXISTS")
        dropped = [_name(words, query, fold_case=fold_case)]
        while words.at_symbol(b","):
            words.take()
            dropped.append(_name(words, query, fold_case=fold_case))
        return temporary.dropped(thread, dropped)
    if kind is not StatementKind.DDL:
        return temporary
    first = words.word()
    if first == b"RENAME" and renames:
        for table, to in _renames(words, query, fold_case=fold_case):
            temporary = temporary.renamed(thread, table, to)
    if first == b"ALTER":
        # MariaDB also has ALTER ONLINE IGNORE TABLE IF EXISTS.
        words.take_words(b"ONLINE", b"IGNORE", b"TABLE", b"IF", b"EXISTS")
        table = _name(words, query, fold_case=fold_case)
        # MariaDB: how long to wait for locks.
        if words.at_word(b"WAIT"):
            words.take()
            words.take()
        words.take_words(b"NOWAIT")
        if _at_new_name(words):
            to = _name(words, query, fold_case=fold_case)
            return temporary.renamed(thread, table, to)
    return temporary


def may_drop_nothing(query: QueryEvent) -> bool:
    """Return whether a DROP TEMPORARY TABLE succeeds if the table does not exist."""
    words = Words(query.text)
    words.take_words(b"DROP", b"TEMPORARY")
    words.word()
    return words.at_word(b"IF")


def replaces(query: QueryEvent) -> bool:
    """Return whether a CREATE TEMPORARY TABLE replaces one that is there, as MariaDB can."""
    words = Words(query.text)
    return words.word() == b"CREATE" and words.at_word(b"OR")


def is_rename(query: QueryEvent) -> bool:
    """Return whether a statement is a RENAME TABLE."""
    words = Words(query.text)
    return words.word() == b"RENAME" and words.word() in _TABLES


def _renames(
    words: Words, query: QueryEvent, *, fold_case: bool
) -> Iterator[tuple[TableName, TableName]]:
    """Yield the names in a RENAME TABLE, starting after its first word."""
    if words.word() not in _TABLES:
        return
    words.take_words(b"IF", b"EXISTS")
    while words.next is not None:
        table = _name(words, query, fold_case=fold_case)
        while not words.at_word(b"TO") and words.take():
            pass
        words.take()
        yield table, _name(words, query, fold_case=fold_case)
        if not words.at_symbol(b","):
            return
        words.take()


def _name(words: Words, query: QueryEvent, *, fold_case: bool) -> TableName:
    database, table = words.take_name()
    database = database or query.database
    return (folded(database), folded(table)) if fold_case else (database, table)


def _at_new_name(words: Words) -> bool:
    """Advance to the table's new name in an ALTER TABLE, starting after its name, if it has one."""
    depth = 0
    begins = True
    while True:
        if begins and words.at_word(b"RENAME"):
            words.take()
            if not any(words.at_word(part) for part in _OF_A_PART):
                words.take_words(b"TO", b"AS")
                if words.at_symbol(b"="):
                    words.take()
                return words.next is not None
        token = words.take()
        if token is None:
            return False
        if token.kind is TokenKind.SYMBOL:
            depth += (token.text == b"(") - (token.text == b")")
        begins = token.text == b"," and not depth


def may_use_temporary_tables(query: QueryEvent, kind: StatementKind) -> bool:
    """Return whether a statement with the flag THREAD_SPECIFIC may use one, judging by its text.

    A DROP TABLE names base tables only: for temporary ones the source logs a separate statement. A
    view cannot use one. ALTER TABLE, CREATE INDEX and DROP INDEX have the transaction number of an
    atomic DDL statement on a base table, and none on a temporary one; TRUNCATE always has one.
    """
    if kind is StatementKind.CREATE_SELECT:
        return False
    if kind is not StatementKind.DDL:
        return True
    words = Words(query.text)
    first = words.word()
    if first == b"TRUNCATE":
        return True
    words.take_words(b"OR", b"REPLACE")
    if first == b"CREATE" and words.at_word(b"TABLE"):
        words.take()
        words.take_words(b"IF", b"NOT", b"EXISTS")
        words.take_name()
        if words.at_symbol(b"("):
            words.take()
        return words.at_word(b"LIKE") or words.passes(_READS)
    by_index = first in {b"CREATE", b"DROP"} and words.passes(frozenset({b"INDEX"}), within=2)
    return (first == b"ALTER" or by_index) and query.ddl_xid is None


def changes_only_temporary_tables(
    temporary: TemporaryTables,
    thread: SourceThread,
    query: QueryEvent,
    kind: StatementKind,
    *,
    fold_case: bool,
) -> bool:
    """Return whether a statement that may use temporary tables changes nothing else for sure.

    Of statements that change rows, this cannot be told by their text.
    """
    if kind in {StatementKind.TEMPORARY, StatementKind.DROP_TEMPORARY}:
        return True
    if kind is not StatementKind.DDL:
        return False
    words = Words(query.text)
    first = words.word()
    if is_rename(query):
        tables = temporary.by_thread.get(thread, frozenset())
        return all(table in tables for table, _ in _renames(words, query, fold_case=fold_case))
    if first in {b"TRUNCATE", b"ALTER"}:
        words.take_words(b"ONLINE", b"IGNORE", b"TABLE", b"IF", b"EXISTS")
    elif not (
        first in {b"CREATE", b"DROP"}
        and words.passes(frozenset({b"INDEX"}), within=2)
        and words.passes(frozenset({b"ON"}))
    ):
        return False
    return _name(words, query, fold_case=fold_case) in temporary.by_thread.get(thread, ())


def names_one(tables: Iterable[TableName], query: QueryEvent) -> bool:
    """Return whether a statement contains the name of one of the tables."""
    known = {table.upper() for _, table in tables}
    return bool(known) and not known.isdisjoint(names(query.text))


def what_may_use(temporary: TemporaryTables, thread: SourceThread) -> str:
    """Describe a statement of `may_use_temporary_tables`, by what is known about its thread."""
    tables = temporary.by_thread.get(thread, ())
    if tables:
        has = f"it has {described(tables)}"
    else:
        has = "which ones it has is known only if mtsd has read everything since the source's start"
    return (
        "a statement that may use a temporary table of its session on the source (flag"
        f" THREAD_SPECIFIC; {has})"
    )


def what_is_left_out(tables: Iterable[TableName]) -> str:
    """Describe a statement that names such tables of its session, which are not replicated."""
    return (
        "a statement that may use a temporary table of its session on the source, while the filter"
        f" leaves out the creation of {described(tables)}"
    )

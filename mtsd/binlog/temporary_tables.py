"""Which statements may use a temporary table of the session that they ran in.

Such a statement has the flag THREAD_SPECIFIC, and so have many that do not: CONNECTION_ID(), a
multi-table DELETE, every DROP TABLE. Run where that temporary table is not, it would find the base
table that was hidden. Only binlog_format = STATEMENT logs what uses one, and it logs the CREATE
TEMPORARY TABLE before that: a thread whose whole life was read, and none of those, has none.
"""

from mtsd.binlog.words import Words
from mtsd.model.step import QueryEvent, StatementKind

_MOST = 65_536
_READS = frozenset({b"SELECT", b"TABLE"})
"""Behind these stands another table's name, in a CREATE TABLE."""

Thread = tuple[int, int]
"""The id of a server, and that of a thread of it."""


class TemporaryTables:
    """The threads of the source that may have temporary tables, of those whose life is known.

    One for all connections to a source, as long as they read on where the one before has ended.
    """

    def __init__(self) -> None:
        self._server: int | None = None
        """The server whose binlog was read from its start on, without a gap."""
        self._threads: set[Thread] = set()

    def describe(self, server: int, created: int) -> None:
        """Take in a format description; `created` is 0 unless the server has just started.

        It is 0 too where a dump begins inside of a file, or leaves groups out.
        """
        if created:
            self._server = server
            self._threads = {thread for thread in self._threads if thread[0] != server}
        elif server != self._server:
            self._server = None

    def miss(self) -> None:
        """Say that groups were left out, which may have made temporary tables."""
        self._server = None

    def add(self, thread: Thread) -> None:
        """Take in a CREATE TEMPORARY TABLE."""
        if len(self._threads) >= _MOST:
            self.miss()
            self._threads.clear()
        self._threads.add(thread)

    def may_have(self, thread: Thread) -> bool:
        """Tell whether a thread may have temporary tables."""
        return thread[0] != self._server or thread in self._threads


def may_use_temporary_tables(query: QueryEvent, kind: StatementKind) -> bool:
    """Tell whether a statement with the flag THREAD_SPECIFIC may use one, by its text alone.

    A DROP TABLE names base tables only: for temporary ones the source logs a statement apart. A
    view cannot use one. ALTER TABLE, CREATE INDEX and DROP INDEX of a base table have the
    transaction number of an atomic DDL, and of a temporary one have none; TRUNCATE has one anyway.
    """
    if kind is StatementKind.CREATE_SELECT:
        return False
    if kind is not StatementKind.DDL:
        return True
    words = Words(query.statement, query.context)
    first = words.word()
    if first == b"TRUNCATE":
        return True
    if first == b"CREATE" and words.at_word(b"TABLE"):
        words.take()
        words.take_words(b"IF", b"NOT", b"EXISTS")
        words.take_name()
        if words.at_symbol(b"("):
            words.take()
        return words.at_word(b"LIKE") or words.passes(_READS)
    by_index = first in {b"CREATE", b"DROP"} and words.passes(frozenset({b"INDEX"}), within=2)
    return (first == b"ALTER" or by_index) and query.ddl_xid is None

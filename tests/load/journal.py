"""Which transactions a server holds: each enters its number into a table without a key.

A journal is any table named `journal` with the columns (worker, number): a number that a worker
has used once must be there once, in every database that its transaction wrote to.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from threading import Lock

from tests.servers.mysqld import Server

DEFINITION = "CREATE TABLE journal (worker INT NOT NULL, number BIGINT NOT NULL)"


@dataclass(frozen=True, slots=True, order=True)
class Entry:
    """One row of a journal."""

    database: str
    worker: int
    number: int

    def __str__(self) -> str:
        return f"transaction {self.worker}/{self.number} in {self.database}"


@dataclass(slots=True)
class Ledger:
    """What a load knows of its own transactions; safe to be written to by several threads.

    `committed`: the server said so. `uncertain`: the connection was lost before it could.
    """

    committed: set[Entry] = field(default_factory=set)
    uncertain: set[Entry] = field(default_factory=set)
    _lock: Lock = field(default_factory=Lock)

    def commit(self, entries: Iterable[Entry]) -> None:
        """Note that a transaction with these entries has committed."""
        with self._lock:
            self.committed.update(entries)

    def doubt(self, entries: Iterable[Entry]) -> None:
        """Note that a transaction with these entries may have committed."""
        with self._lock:
            self.uncertain.update(entries)


def doubles(server: Server) -> list[str]:
    """Return a line for each journal entry that is there more than once."""
    return [
        f"{Entry(database, worker, number)}: {count} times"
        for database in journals(server)
        for worker, number, count in server.sql(
            "SELECT worker, number, COUNT(*) FROM journal GROUP BY 1, 2 HAVING COUNT(*) > 1"
            " ORDER BY 1, 2",
            database,
        )
    ]


def journals(server: Server) -> list[str]:
    """Return the databases that have a journal, in order."""
    return [
        database
        for (database,) in server.sql(
            "SELECT TABLE_SCHEMA FROM information_schema.TABLES WHERE TABLE_NAME = 'journal'"
            " ORDER BY 1"
        )
    ]


def audit(server: Server, ledger: Ledger) -> list[str]:
    """Return a line for each transaction that is lost, was never committed, or is there twice."""
    held = {
        Entry(database, worker, number)
        for database in journals(server)
        for worker, number in server.sql("SELECT worker, number FROM journal", database)
    }
    lost = sorted(ledger.committed - held)
    alien = sorted(held - ledger.committed - ledger.uncertain)
    return [
        *(f"{entry}: committed, but not there" for entry in lost),
        *(f"{entry}: there, but rolled back or never run" for entry in alien),
        *doubles(server),
    ]

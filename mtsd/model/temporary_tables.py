"""The temporary tables that sessions have open on the source, at one place of its binary log."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

SourceThread = tuple[int, int]
"""A server id, and the id of a thread (a session) of that server.

A source that is itself a replica writes the threads of its own source, under that server's id.
"""
TableName = tuple[str, str]
"""Database and table."""

MOST = 4096
"""The most tables to remember; if more are open, it is unknown which."""
_LONGEST = 256
"""Characters of a name; the servers allow 64."""


@dataclass(frozen=True, slots=True)
class TemporaryTables:
    """What is known about them. Immutable: each change returns a new value.

    `complete`: the binary log has been read without a gap since the server's start, when none
    are open, so a thread that is not in `by_thread` has none. Otherwise it may have some.
    """

    complete: bool = False
    by_thread: Mapping[SourceThread, frozenset[TableName]] = field(default_factory=dict)

    def may_have(self, thread: SourceThread) -> bool:
        """Return whether a thread may have temporary tables."""
        return not self.complete or thread in self.by_thread

    def with_gap(self) -> "TemporaryTables":
        """Return what is known after a part of the binary log was left out."""
        return TemporaryTables(False, self.by_thread) if self.complete else self

    def opened(self, thread: SourceThread, table: TableName) -> "TemporaryTables":
        """Return what is known after CREATE TEMPORARY TABLE."""
        former = self.by_thread.get(thread, frozenset())
        if table in former:
            return self
        too_many = sum(map(len, self.by_thread.values())) >= MOST
        if too_many or max(map(len, table)) > _LONGEST:
            return NOT_KNOWN
        return self._with(thread, former | {table})

    def dropped(self, thread: SourceThread, tables: Iterable[TableName]) -> "TemporaryTables":
        """Return what is known after DROP TEMPORARY TABLE, which may name tables not open."""
        former = self.by_thread.get(thread)
        if former is None:
            return self
        left = former.difference(tables)
        return self if len(left) == len(former) else self._with(thread, left)

    def renamed(self, thread: SourceThread, table: TableName, to: TableName) -> "TemporaryTables":
        """Return what is known after ALTER TABLE … RENAME, which may be of a base table."""
        if table not in self.by_thread.get(thread, ()):
            return self
        return self.dropped(thread, [table]).opened(thread, to)

    def _with(self, thread: SourceThread, tables: frozenset[TableName]) -> "TemporaryTables":
        changed = {**self.by_thread, thread: tables}
        if not tables:
            del changed[thread]
        return TemporaryTables(self.complete, changed)

    def text(self) -> str:
        """Return it as JSON, or "" if nothing is known."""
        if self == NOT_KNOWN:
            return ""
        threads = [
            {"server_id": server, "thread_id": thread, "tables": sorted(map(list, tables))}
            for (server, thread), tables in sorted(self.by_thread.items())
        ]
        return json.dumps({"complete": self.complete, "threads": threads})

    @classmethod
    def parse(cls, text: str) -> "TemporaryTables":
        """Parse the result of `text`; anything else counts as nothing known."""
        if not text:
            return NOT_KNOWN
        try:
            read = json.loads(text)
            return cls(
                read["complete"] is True,
                {
                    (int(thread["server_id"]), int(thread["thread_id"])): frozenset(
                        (str(database), str(name)) for database, name in thread["tables"]
                    )
                    for thread in read["threads"]
                },
            )
        except (ValueError, TypeError, KeyError):
            return NOT_KNOWN


NOT_KNOWN = TemporaryTables()
"""Nothing: reading begins anywhere but at a server's start."""
NONE_OPEN = TemporaryTables(complete=True)
"""At a server's start."""

"""The temporary tables that sessions have open on the source, at one place of its binary log."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

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
    are open, so a thread that is not in `by_thread` has none. Otherwise it may have some, unless it
    began after reading: then it is of the same server as `newest`, with a higher id.
    """

    complete: bool = False
    by_thread: Mapping[SourceThread, frozenset[TableName]] = field(default_factory=dict)
    newest: SourceThread | None = None

    @property
    def tables(self) -> frozenset[TableName]:
        """The tables of all threads."""
        return frozenset().union(*self.by_thread.values())

    def may_have(self, thread: SourceThread) -> bool:
        """Return whether a thread may have temporary tables."""
        return thread in self.by_thread or not self.knows(thread)

    def knows(self, thread: SourceThread) -> bool:
        """Return whether a thread has no other temporary tables than those in `by_thread`."""
        newest = self.newest
        return self.complete or (
            newest is not None and thread[0] == newest[0] and thread[1] > newest[1]
        )

    def read_since(self, newest: SourceThread) -> "TemporaryTables":
        """Return what is known if everything will be read that later threads than this write."""
        if self.complete or self.newest is not None:
            return self
        return TemporaryTables(False, self.by_thread, newest)

    def with_gap(self) -> "TemporaryTables":
        """Return what is known after a part of the binary log was left out."""
        known = self.complete or self.newest is not None
        return TemporaryTables(False, self.by_thread) if known else self

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
        return TemporaryTables(self.complete, changed, self.newest)

    def text(self) -> str:
        """Return it as JSON, or "" if nothing is known."""
        if self == NOT_KNOWN:
            return ""
        threads = [
            {"server_id": server, "thread_id": thread, "tables": sorted(map(list, tables))}
            for (server, thread), tables in sorted(self.by_thread.items())
        ]
        about: dict[str, object] = {"complete": self.complete, "threads": threads}
        if self.newest is not None:
            server, thread = self.newest
            about["newest"] = {"server_id": server, "thread_id": thread}
        return json.dumps(about)

    @classmethod
    def parse(cls, text: str) -> "TemporaryTables":
        """Parse the result of `text`; anything else counts as nothing known."""
        if not text:
            return NOT_KNOWN
        try:
            read = json.loads(text)
            newest = read.get("newest")
            return cls(
                read["complete"] is True,
                {
                    (int(thread["server_id"]), int(thread["thread_id"])): frozenset(
                        (str(database), str(name)) for database, name in thread["tables"]
                    )
                    for thread in read["threads"]
                },
                newest and (int(newest["server_id"]), int(newest["thread_id"])),
            )
        except (AttributeError, ValueError, TypeError, KeyError):
            return NOT_KNOWN


class TemporaryUse(NamedTuple):
    """What a group has to do with the temporary tables of its source thread."""

    thread: SourceThread
    before: frozenset[TableName]
    """Those that the thread has before the group, as far as known."""
    left: frozenset[TableName]
    """Those that it has afterwards."""
    uses: bool
    """It may read or change one, not only create and drop them."""
    only: bool
    """It changes nothing else."""
    created: frozenset[TableName] = frozenset()
    """All that it creates, whether it drops them again or not."""


def described(tables: Iterable[TableName]) -> str:
    """Return the names of tables for a message."""
    names = sorted(".".join(table) for table in tables)
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    shown = ", ".join(names[:_SHOWN])
    return "".join(each if each.isprintable() else "?" for each in shown) + more


_SHOWN = 5
NOT_KNOWN = TemporaryTables()
"""Nothing: reading begins anywhere but at a server's start."""
NONE_OPEN = TemporaryTables(complete=True)
"""At a server's start."""

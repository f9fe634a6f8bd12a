"""The temporary tables that sessions have open on the source, at one place of its binary log."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

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
    began after reading: then it is of the same server as `newest`, with a higher id. `left_out` are
    those that are not replicated, which are not in `by_thread`.
    """

    complete: bool = False
    by_thread: Mapping[SourceThread, frozenset[TableName]] = field(default_factory=dict)
    newest: SourceThread | None = None
    left_out: Mapping[SourceThread, frozenset[TableName]] = field(default_factory=dict)

    @property
    def tables(self) -> frozenset[TableName]:
        """The tables of all threads."""
        return frozenset().union(*self.by_thread.values())

    @property
    def ends_with_source(self) -> bool:
        """Whether something is known that a start of the source changes."""
        return self not in (NOT_KNOWN, NONE_OPEN)

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
        return replace(self, newest=newest)

    def with_gap(self) -> "TemporaryTables":
        """Return what is known after a part of the binary log was left out."""
        known = self.complete or self.newest is not None
        return replace(self, complete=False, newest=None) if known else self

    def opened(
        self, thread: SourceThread, table: TableName, *, left_out: bool = False
    ) -> "TemporaryTables":
        """Return what is known after CREATE TEMPORARY TABLE, which may be `left_out`."""
        former = (self.left_out if left_out else self.by_thread).get(thread, frozenset())
        if table in former:
            return self
        count = sum(map(len, (*self.by_thread.values(), *self.left_out.values())))
        if count >= MOST or max(map(len, table)) > _LONGEST:
            return NOT_KNOWN
        if left_out:
            return replace(self, left_out={**self.left_out, thread: former | {table}})
        return replace(self, by_thread={**self.by_thread, thread: former | {table}})

    def dropped(self, thread: SourceThread, tables: Iterable[TableName]) -> "TemporaryTables":
        """Return what is known after DROP TEMPORARY TABLE, which may name tables not open."""
        gone = frozenset(tables)
        by_thread = _without(self.by_thread, thread, gone)
        left_out = _without(self.left_out, thread, gone)
        if by_thread is self.by_thread and left_out is self.left_out:
            return self
        return replace(self, by_thread=by_thread, left_out=left_out)

    def renamed(self, thread: SourceThread, table: TableName, to: TableName) -> "TemporaryTables":
        """Return what is known after ALTER TABLE … RENAME, which may be of a base table."""
        left_out = table in self.left_out.get(thread, ())
        if not left_out and table not in self.by_thread.get(thread, ()):
            return self
        return self.dropped(thread, [table]).opened(thread, to, left_out=left_out)

    def text(self) -> str:
        """Return it as JSON, or "" if nothing is known."""
        if self == NOT_KNOWN:
            return ""
        about: dict[str, object] = {"complete": self.complete, "threads": _listed(self.by_thread)}
        if self.newest is not None:
            server, thread = self.newest
            about["newest"] = {"server_id": server, "thread_id": thread}
        if self.left_out:
            about["left_out"] = _listed(self.left_out)
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
                _of_listed(read["threads"]),
                newest and (int(newest["server_id"]), int(newest["thread_id"])),
                _of_listed(read.get("left_out", ())),
            )
        except (AttributeError, ValueError, TypeError, KeyError):
            return NOT_KNOWN


_ByThread = Mapping[SourceThread, frozenset[TableName]]


def _without(tables: _ByThread, thread: SourceThread, gone: frozenset[TableName]) -> _ByThread:
    """Return `tables` without some of a thread: the same object if it has none of them."""
    former = tables.get(thread, frozenset())
    if former.isdisjoint(gone):
        return tables
    changed = {**tables, thread: former - gone}
    if not changed[thread]:
        del changed[thread]
    return changed


def _listed(tables: _ByThread) -> list[dict[str, object]]:
    return [
        {"server_id": server, "thread_id": thread, "tables": sorted(map(list, names))}
        for (server, thread), names in sorted(tables.items())
    ]


def _of_listed(threads: Iterable[Mapping[str, Any]]) -> dict[SourceThread, frozenset[TableName]]:
    return {
        (int(thread["server_id"]), int(thread["thread_id"])): frozenset(
            (str(database), str(name)) for database, name in thread["tables"]
        )
        for thread in threads
    }


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

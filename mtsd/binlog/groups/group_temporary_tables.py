"""What a group has to do with the temporary tables of its session, while it is being read."""

from typing import Final

from mtsd.binlog.bytes.event_type import THREAD_SPECIFIC
from mtsd.binlog.sql.temporary_tables import (
    after,
    changes_only_temporary_tables,
    is_rename,
    may_drop_nothing,
    may_use_temporary_tables,
    names_one,
    what_is_left_out,
    what_may_use,
)
from mtsd.model.step import QueryEvent, StatementKind
from mtsd.model.temporary_tables import (
    SourceThread,
    TableName,
    TemporaryTables,
    TemporaryUse,
    described,
)

DEFINITIONS: Final = frozenset({StatementKind.TEMPORARY, StatementKind.DDL})
"""They may concern temporary tables without the flag THREAD_SPECIFIC, and contain a query."""
_NONE: Final[frozenset[TableName]] = frozenset()
_DROPS_UNKNOWN: Final = (
    "a DROP TEMPORARY TABLE of a table that its session does not have, judging by the statements"
    " before it, while it has {}: mtsd has misunderstood one of them, or the session has renamed"
    " its table with sql_log_bin = 0"
)


class GroupTemporaryTables:
    """Follows the statements of a group; `before` is what is known about the tables before it.

    With `fold_case` their names are not case-sensitive; with `renames`, RENAME TABLE renames them.
    """

    __slots__ = (
        "_before", "_created", "_fold_case", "_owner", "_renames", "_uses", "known", "only",
        "unsupported",
    )  # fmt: skip

    def __init__(self, before: TemporaryTables, *, fold_case: bool, renames: bool) -> None:
        self.known = before
        """What is known after the last statement."""
        self.only = True
        """The group changes nothing but temporary tables."""
        self.unsupported = ""
        """Why its use of temporary tables cannot be applied; empty if it can."""
        self._before = before
        self._fold_case = fold_case
        self._renames = renames
        self._owner: SourceThread | None = None
        """That whose tables it has to do with."""
        self._uses = False
        self._created = _NONE

    @property
    def news(self) -> TemporaryTables | None:
        """What is known after the group; None if it has not changed."""
        return None if self.known is self._before else self.known

    def concerned(
        self, event: bytes, query: QueryEvent, kind: StatementKind
    ) -> SourceThread | None:
        """Return the thread whose temporary tables a statement concerns; None if none is known.

        `query` is the one in the `event`, in the target's database.
        """
        if event[17] & THREAD_SPECIFIC or kind is StatementKind.TEMPORARY:
            return thread_of(event, query)
        if kind is not StatementKind.DDL:
            return None
        thread = thread_of(event, query)
        return thread if self._renames_one(thread, query, kind) else None

    def _renames_one(self, thread: SourceThread, query: QueryEvent, kind: StatementKind) -> bool:
        """Return whether a statement renames temporary tables of the thread by RENAME TABLE."""
        if not self._renames or kind is not StatementKind.DDL:
            return False
        former = self.known
        return is_rename(query) and former is not self._after(thread, query, kind)

    def left_out(self, thread: SourceThread, query: QueryEvent, kind: StatementKind) -> None:
        """Note a thread-specific statement of which nothing is applied."""
        self.known = self._after(thread, query, kind, left_out=True)

    def statement(self, thread: SourceThread, query: QueryEvent, kind: StatementKind) -> bool:
        """Note what a thread-specific statement does to the tables of its session, and uses.

        Return whether it has to be applied: dropping a table that was never created has not.
        """
        before = self.known
        listed = thread in before.by_thread
        self.known = self._after(thread, query, kind)
        has = self.known.by_thread.get(thread, _NONE)
        self._created |= has - before.by_thread.get(thread, _NONE)
        if kind is StatementKind.DROP_TEMPORARY:
            if has == before.by_thread.get(thread, _NONE):
                if (
                    listed
                    and self.known is before
                    and before.knows(thread)
                    and not may_drop_nothing(query)
                ):
                    # It is one of those, by a name that mtsd has not seen it get.
                    self._refuse(_DROPS_UNKNOWN.format(described(before.by_thread[thread])))
                    return True
                return False
        elif kind is not StatementKind.TEMPORARY:
            left_out = before.left_out.get(thread, _NONE)
            if names_one(left_out, query) and self._may_use(query, kind):
                self._refuse(what_is_left_out(left_out))
                return True
            if not (before.may_have(thread) and self._may_use(query, kind)):
                self.beside(thread)
                return True
            if not listed or not (
                before.knows(thread) or names_one(before.by_thread[thread], query)
            ):
                self._refuse(what_may_use(before, thread))
                return True
            self._uses = True
        self.only = self.only and changes_only_temporary_tables(
            before, thread, query, kind, fold_case=self._fold_case
        )
        if self._owner is not None and self._owner != thread:
            self._refuse("temporary tables of several sessions in one transaction")
        self._owner = thread
        return True

    def beside(self, thread: SourceThread) -> None:
        """Note a statement of a thread that uses no temporary table.

        Those of another server's thread with the same id hide base tables from it, so the group
        must not get to the session that has them.
        """
        self.only = False
        if self._owner is None and self.known.by_thread:
            for other in self.known.by_thread:
                if other[1] == thread[1] and other != thread:
                    self._owner = thread

    def use(self, *, streaming: bool) -> TemporaryUse | None:
        """Return what the whole group has to do with them; None if nothing."""
        thread = self._owner
        if thread is None:
            return None
        return TemporaryUse(
            thread,
            self._before.by_thread.get(thread, _NONE),
            self.known.by_thread.get(thread, _NONE),
            self._uses,
            self.only and not streaming,
            self._created,
        )

    def _may_use(self, query: QueryEvent, kind: StatementKind) -> bool:
        return may_use_temporary_tables(query, kind) or (
            self._renames and kind is StatementKind.DDL and is_rename(query)
        )

    def _after(
        self,
        thread: SourceThread,
        query: QueryEvent,
        kind: StatementKind,
        *,
        left_out: bool = False,
    ) -> TemporaryTables:
        return after(
            self.known,
            thread,
            query,
            kind,
            fold_case=self._fold_case,
            left_out=left_out,
            renames=self._renames,
        )

    def _refuse(self, what: str) -> None:
        self.unsupported = self.unsupported or what


def thread_of(event: bytes, query: QueryEvent) -> SourceThread:
    """Return which thread of which server has run a statement."""
    return int.from_bytes(event[5:9], "little"), query.thread_id

"""A session's state on the target, and that of each of the source's statements.

Nothing is sent here: what to send is returned.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from mtsd.apply.session.family import TARGETS
from mtsd.apply.session.other_family import statement_of
from mtsd.apply.session.satellites import Collation, after_statement
from mtsd.apply.session.session_state import (
    THREAD_ID,
    TIMESTAMP,
    TIMESTAMP_DEFAULTS,
    changes,
    collation,
    context_state,
    of_query,
    pinned,
    settable_anywhere,
    settable_outside,
    thread_of_nobody,
    time_of,
)
from mtsd.binlog.bytes.event_type import THREAD_SPECIFIC
from mtsd.binlog.sql.statement_secrets import shown
from mtsd.binlog.sql.words import Words
from mtsd.model.errors import NotSupportedError
from mtsd.model.server import Flavour
from mtsd.model.session import SessionContext
from mtsd.model.step import QueryEvent, Satellite, Statement, StatementKind
from mtsd.wire.traits import ServerTraits

FOREVER: Final = b"1073741824"
"""Of innodb_lock_wait_timeout."""
_MAX_CONTEXTS: Final = 64
_EXCERPT: Final = 200
_DEFINITIONS: Final = frozenset({
    StatementKind.CREATE_SELECT, StatementKind.DDL, StatementKind.EVENT_DDL,
})  # fmt: skip


class StatementStates:
    """A session's own state, between statements of the source, and theirs.

    `source` is the family of the source, None if it is the target's. `sql_mode` is of the own
    state, an expression; `rows_as_sql` says whether rows are applied as SQL, which may cascade.
    """

    __slots__ = (
        "_collations", "_contexts", "_family", "_lock", "_reset", "_source", "_thread_id",
        "_traits", "own",
    )  # fmt: skip

    def __init__(
        self,
        traits: ServerTraits,
        thread_id: int,
        source: Flavour | None,
        sql_mode: bytes,
        *,
        rows_as_sql: bool,
    ) -> None:
        self._traits: Final = traits
        self._family: Final = TARGETS[traits.server.flavour]
        self._source: Final = source
        self._thread_id: Final = thread_id
        own = pinned(traits.server)
        own[b"sql_mode"] = sql_mode
        # The target's binlog tells by it what this session has done (`RecordedRows`).
        own[THREAD_ID] = b"%d" % thread_of_nobody()
        if rows_as_sql and traits.loses_cascade_errors:
            # A deadlock is found out (see `guard`), but nothing tells of a wait that was too long.
            own[b"innodb_lock_wait_timeout"] = FOREVER
        # Only definitions have it in their events: others run with the target's, as in a replica.
        if TIMESTAMP_DEFAULTS in own:
            own[TIMESTAMP_DEFAULTS] = b"%d" % traits.explicit_defaults_for_timestamp
        self.own: dict[bytes, bytes] = own
        """The state between statements of the source."""
        self._reset = changes({}, settable_anywhere(own))
        self._lock = b""
        self._collations: Mapping[int, Collation] = {}
        self._contexts: dict[int, tuple[SessionContext, dict[bytes, bytes]]] = {}
        """By the identity of a context: what is the same for all of its statements."""

    def leave_out(self, names: Collection[bytes]) -> None:
        """Do without variables that the session's user may not set: see `pinning`."""
        if names:
            self.own = {name: value for name, value in self.own.items() if name not in names}
            self._reset = changes({}, settable_anywhere(self.own))
            self._contexts.clear()

    def name_collations(self, collations: Mapping[int, Collation]) -> None:
        """Set collations by their names, see `mtsd.apply.session.session_state.collation`."""
        self._collations = collations
        self._contexts.clear()

    def keep_lock(self, lock: str) -> None:
        """Let `returning` take that lock of the session again if a statement has released it.

        RELEASE_ALL_LOCKS() may be in a function that a statement calls. CONNECTION_ID() would not
        do here: it returns the pseudo_thread_id.
        """
        self._lock = b"DO IF(IS_USED_LOCK('%b')<=>%d,0,GET_LOCK('%b',0))" % (
            lock.encode(),
            self._thread_id,
            lock.encode(),
        )

    def timestamp_defaults(self, explicit: bool | None) -> bytes:
        """Return how to set the explicit_defaults_for_timestamp of a transaction's statements.

        Nothing is returned if it is not known, or set. From now on it is part of the own state.
        """
        if explicit is None or not self._family.sets_timestamp_defaults_first:
            return b""
        own = {**self.own, TIMESTAMP_DEFAULTS: b"%d" % explicit}
        difference = changes(self.own, own)
        if difference:
            self.own = own
            self._contexts.clear()
        return difference

    def translated(self, statement: Statement) -> Statement:
        """Return a statement of the source as one of the target. Raises NotSupportedError."""
        self._refuse_thread(statement)
        if self._source is not None:
            statement = statement_of(statement, self._source, self._traits.server)
        self._refuse_timestamps(statement.query.context)
        return statement

    def wanted(
        self, statement: Statement, *, lacking: bool = False, calls_nothing: bool = False
    ) -> dict[bytes, bytes]:
        """Return the state that a translated statement runs in, in its database.

        `lacking`: the target does not have that database. `calls_nothing`: the statement runs no
        routine; if it `is_by_anyone` too, it runs under the own thread id.
        """
        query = statement.query
        wanted = of_query(query, self._of_context(query), self._traits.server)
        if calls_nothing and THREAD_ID in wanted and is_by_anyone(statement):
            wanted[THREAD_ID] = self.own[THREAD_ID]
        # Each default database sets it; without one it is the server's.
        if query.context.collation_database is not None:
            number = query.context.collation_database
            wanted[b"collation_database"] = collation(number, self._collations)
        elif lacking or not query.database:
            wanted[b"collation_database"] = wanted[b"collation_server"]
        if statement.kind is StatementKind.EVENT_DDL and query.context.time_zone is None:
            # An event keeps the time zone of the session that creates it.
            wanted[b"time_zone"] = b"DEFAULT"
        if self._traits.loses_cascade_errors:
            # As with rows that are applied as SQL.
            wanted[b"innodb_lock_wait_timeout"] = FOREVER
        return wanted

    def later(
        self, state: dict[bytes, bytes], last: Statement, statement: Statement
    ) -> dict[bytes, bytes] | None:
        """Return `wanted` of a statement that calls nothing, where only the time differs.

        `state` is that of the `last` one, which calls nothing either; None: more may differ.
        """
        query = statement.query
        if (
            query.context is not last.query.context
            or query.database != last.query.database
            or statement.kind is not last.kind
        ):
            return None
        if THREAD_ID in state:
            thread = b"%d" % query.thread_id
            if state[THREAD_ID] != (self.own[THREAD_ID] if is_by_anyone(statement) else thread):
                return None
        if (query.timestamp, query.microseconds) == (last.query.timestamp, last.query.microseconds):
            return state
        return {**state, TIMESTAMP: time_of(query, self._traits.server)}

    def returning(self, state: dict[bytes, bytes], satellites: Sequence[Satellite]) -> list[bytes]:
        """Return the statements that lead from a statement's state to the own one.

        Everything is set: a function or trigger may have changed any of the variables.
        """
        sets = [self._reset]
        if back := changes(settable_outside(state), settable_outside(self.own)):
            sets.append(back)
        if self._lock:
            sets.append(self._lock)
        if forgotten := after_statement(satellites):
            sets.append(forgotten)
        return sets

    def returning_from_no_call(
        self, state: dict[bytes, bytes], satellites: Sequence[Satellite]
    ) -> list[bytes]:
        """Return the same for a statement that calls nothing: its state is as it was set."""
        back = changes(state, self.own), after_statement(satellites)
        return [each for each in back if each]

    def _of_context(self, query: QueryEvent) -> dict[bytes, bytes]:
        known = self._contexts.get(id(query.context))
        if known is None:
            if len(self._contexts) >= _MAX_CONTEXTS:
                self._contexts.clear()
            server = self._traits.server
            state = context_state(query.context, server, self.own, self._collations)
            known = self._contexts[id(query.context)] = query.context, state
        return known[1]

    def _refuse_thread(self, statement: Statement) -> None:
        if THREAD_ID in self.own or not needs_its_thread(statement):
            return
        privilege = self._family.privilege_to_pin
        raise NotSupportedError(
            "a statement runs in a session that looks like the source's, which the target's user"
            f" may not make (it may not set {THREAD_ID.decode()}):"
            f" {shown(statement.query, _EXCERPT)!r}. GRANT {privilege} ON *.* TO the user, or let"
            " the source log rows (binlog_format = ROW)"
        )

    def _refuse_timestamps(self, context: SessionContext) -> None:
        logged = context.explicit_defaults_for_timestamp
        own = self._traits.explicit_defaults_for_timestamp
        if TIMESTAMP_DEFAULTS not in self.own and logged not in {None, own}:
            value = "ON" if logged else "OFF"
            raise NotSupportedError(
                f"a statement that ran on the source with explicit_defaults_for_timestamp = {value}"
                ", which no session can set on the target, an early release of its version. Start"
                " the target with that value, or upgrade it"
            )


def needs_its_thread(statement: Statement) -> bool:
    """Return whether a statement may do something else under another thread id than its own.

    DML may call routines, in which nothing tells what they use.
    """
    return statement.kind not in _DEFINITIONS or is_of_its_thread(statement)


def is_by_anyone(statement: Statement) -> bool:
    """Return whether a statement that runs no routine does the same under any other thread id.

    It uses no temporary table, nor CONNECTION_ID(): for these it would have the flag. Under an id
    of nobody it finds no temporary table either.
    """
    if statement.kind is not StatementKind.DML or statement.flags & THREAD_SPECIFIC:
        return False
    # Reading @@pseudo_thread_id sets no flag.
    return THREAD_ID not in statement.query.statement.lower()


def is_of_its_thread(statement: Statement) -> bool:
    """Return whether a definition uses temporary tables, or CONNECTION_ID().

    A DROP TABLE has the flag in any case.
    """
    if not statement.flags & THREAD_SPECIFIC:
        return False
    return Words(statement.query.text).word() != b"DROP"

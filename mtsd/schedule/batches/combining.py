"""Which groups may share one target transaction (method C4 of WL#4648), or one record."""

from typing import Final

from mtsd.model.group import Group, GroupKind
from mtsd.model.step import Rows, Statement, StatementKind, Step


def may_share_commit(first: Group, later: Group) -> bool:
    """Return whether `later` may join the transaction that `first` begins.

    Only groups of row events that end with Xid: DDL commits implicitly, a non-transactional table
    cannot be rolled back, for statements see `may_share_statements`, and a server
    locks its system tables separately from all others. Groups with different row event flags may
    share a transaction, but never a BINLOG statement.
    """
    return (
        first.kind is GroupKind.ROWS
        and later.kind is GroupKind.ROWS
        and not (first.alone or later.alone)
        and not (first.unsupported or later.unsupported)
        and first.format_description == later.format_description
        and not (writes_system_tables(first) or writes_system_tables(later))
    )


def may_share_statements(first: Group, later: Group) -> bool:
    """Return whether `later` may join the transaction of statements that `first` begins.

    That is tried, and may turn out to be impossible: then each is applied by itself. Groups that
    run alone may share one, as nothing else runs meanwhile.
    """
    return is_of_statements(first) and is_of_statements(later)


def is_of_rows_for_good(group: Group) -> bool:
    """Return whether a group consists of rows, perhaps of tables without transactions.

    It shares no transaction, but may share a packet with others, and the record that it is in
    doubt: each brings its own place in the worker's row. Not what the source has rolled back: of
    that, only a part may remain.
    """
    return (
        group.kind is GroupKind.NON_TRANSACTIONAL
        and bool(group.steps)
        and not (group.alone or group.unsupported or group.rolled_back)
        and group.uses_temporary is None
        and group.row_flags is not None
        and not writes_system_tables(group)
        and all(isinstance(step, Rows) for step in group.steps)
    )


def is_of_statements(group: Group) -> bool:
    """Return whether a group consists of statements that may succeed together with others.

    Not one with rows, which need their format; nor with a file, or with a statement that failed on
    the source. One that has changed no row there ends like one on tables without transactions:
    which it is, the target's tables tell. What creates or drops temporary tables is no definition:
    it commits nothing (see `temporary_runs`).
    """
    return (
        group.kind in _OF_STATEMENTS
        and (group.kind is not GroupKind.DDL or group.uses_temporary is not None)
        and not group.unsupported
        and not group.rolled_back
        and all(map(_may_succeed_with_others, group.steps))
    )


def _may_succeed_with_others(step: Step) -> bool:
    return (
        isinstance(step, Statement)
        and step.kind in _IN_RUNS
        and step.file is None
        and not step.query.error_code
    )


def may_share_record(first: Group, later: Group) -> bool:
    """Return whether two groups of XA transactions may be recorded together.

    Each is prepared or completed by itself; what they share is the transaction that puts them in
    doubt, and the one that settles them. Nothing that waits for one of them begins before that.
    """
    return (
        first.kind in _XA
        and later.kind in _XA
        and not (first.alone or later.alone)
        and not (first.unsupported or later.unsupported)
        and first.uses_temporary is None
        and later.uses_temporary is None
    )


def writes_system_tables(group: Group) -> bool:
    """Return whether a group changes tables of the server's own schema."""
    return _SYSTEM_SCHEMA in group.databases


MAX_RECORDED: Final = 16
"""How many groups of XA transactions are recorded together: more save little, and those that wait
for the first of them would wait for all."""
_OF_STATEMENTS: Final = frozenset({
    GroupKind.STATEMENTS, GroupKind.NON_TRANSACTIONAL, GroupKind.DDL,
})  # fmt: skip
_IN_RUNS: Final = frozenset({
    StatementKind.DML, StatementKind.TEMPORARY, StatementKind.DROP_TEMPORARY,
})  # fmt: skip
_XA: Final = frozenset({GroupKind.XA_PREPARE, GroupKind.XA_COMPLETE})
_SYSTEM_SCHEMA: Final = "mysql"

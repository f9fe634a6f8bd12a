"""Which groups may share one target transaction (method C4 of WL#4648)."""

from typing import Final

from mtsd.model.group import Group, GroupKind


def may_share_commit(first: Group, later: Group) -> bool:
    """Tell whether `later` may join the transaction that `first` begins.

    Only groups of row events that end with Xid: DDL commits by itself, a table without
    transactions cannot be rolled back, statements need a session state of their own, and a server
    locks its system tables apart from all others. Groups of different row event flags may meet in
    a transaction; they never meet in a BINLOG statement.
    """
    return (
        first.kind is GroupKind.ROWS
        and later.kind is GroupKind.ROWS
        and not (first.alone or later.alone)
        and not (first.unsupported or later.unsupported)
        and first.format_description == later.format_description
        and not (writes_system_tables(first) or writes_system_tables(later))
    )


def writes_system_tables(group: Group) -> bool:
    """Tell whether a group changes tables of the server's own schema."""
    return _SYSTEM_SCHEMA in group.databases


_SYSTEM_SCHEMA: Final = "mysql"

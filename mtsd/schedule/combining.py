"""Which groups may share one target transaction (method C4 of WL#4648)."""

from typing import Final

from mtsd.model.group import Group, GroupKind


def may_share_commit(first: Group, later: Group) -> bool:
    """Return whether `later` may join the transaction that `first` begins.

    Only groups of row events that end with Xid: DDL commits implicitly, a non-transactional table
    cannot be rolled back, statements need session state of their own, and a server
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


def writes_system_tables(group: Group) -> bool:
    """Return whether a group changes tables of the server's own schema."""
    return _SYSTEM_SCHEMA in group.databases


_SYSTEM_SCHEMA: Final = "mysql"

"""Which groups may share one target transaction (method C4 of WL#4648)."""

from mtsd.model.group import Group, GroupKind


def may_share_commit(first: Group, later: Group) -> bool:
    """Tell whether `later` may join the transaction that `first` begins.

    Only groups of row events that end with Xid: DDL commits by itself, a table without
    transactions cannot be rolled back, statements need a session state of their own. Groups of
    different row event flags may meet in a transaction; they never meet in a BINLOG statement.
    """
    return (
        first.kind is GroupKind.ROWS
        and later.kind is GroupKind.ROWS
        and not (first.alone or later.alone)
        and not (first.unsupported or later.unsupported)
        and first.format_description == later.format_description
    )

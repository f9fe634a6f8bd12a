"""The parts that statements play in a group, other than those that change data."""

from mtsd.model.step import StatementKind

SAVEPOINTS = frozenset({
    StatementKind.SAVEPOINT, StatementKind.RELEASE_SAVEPOINT, StatementKind.ROLLBACK_TO,
})  # fmt: skip
"""They occur inside a transaction and name no database."""
XA_BY_ITSELF = frozenset({
    StatementKind.XA_COMMIT, StatementKind.XA_COMMIT_ONE_PHASE, StatementKind.XA_ROLLBACK,
    StatementKind.XA_PREPARE,
})  # fmt: skip
"""Each is a group of its own."""

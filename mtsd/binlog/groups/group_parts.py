"""The parts that statements play in a group, other than those that change data."""

from mtsd.model.step import StatementKind

SAVEPOINTS = frozenset({
    StatementKind.SAVEPOINT, StatementKind.RELEASE_SAVEPOINT, StatementKind.ROLLBACK_TO,
})  # fmt: skip
"""They occur inside a transaction and name no database."""
XA_COMPLETIONS = frozenset({StatementKind.XA_COMMIT, StatementKind.XA_ROLLBACK})
"""What becomes of a transaction that an earlier group has prepared."""
XA_BY_ITSELF = XA_COMPLETIONS | {StatementKind.XA_COMMIT_ONE_PHASE, StatementKind.XA_PREPARE}
"""Each is a group of its own."""

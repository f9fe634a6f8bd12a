"""The target's foreign keys: which tables a change of one may concern besides it."""

from mtsd.model.names import folded
from mtsd.schedule.policies.foreign_key_families import ForeignKeys
from mtsd.wire.connection import Connection


async def read_foreign_keys(connection: Connection, *, fold_case: bool) -> ForeignKeys:
    """Return what foreign keys join.

    Only those of tables that the user may see, which are all that it may change. With `fold_case`
    names are in lower case.
    """
    rows = await connection.query(
        "SELECT CONSTRAINT_SCHEMA, TABLE_NAME, UNIQUE_CONSTRAINT_SCHEMA, REFERENCED_TABLE_NAME"
        " FROM information_schema.REFERENTIAL_CONSTRAINTS"
    )
    named = [tuple(folded(str(name)) if fold_case else str(name) for name in row) for row in rows]
    across = {frozenset({a, c}): None for a, _, c, _ in named if a != c}
    return ForeignKeys(
        tuple((f"{a}.{b}", f"{c}.{d}") for a, b, c, d in named),
        tuple(across),
    )

"""The target's foreign keys: which tables a change of one may concern besides it."""

from mtsd.model.names import folded
from mtsd.wire.connection import Connection


async def read_foreign_keys(connection: Connection, *, fold_case: bool) -> list[tuple[str, str]]:
    """Return pairs of tables, "database.table" each: one that refers to another, and that one.

    Only those of tables that the user may see, which are all that it may change. With `fold_case`
    they are in lower case.
    """
    rows = await connection.query(
        "SELECT CONSTRAINT_SCHEMA, TABLE_NAME, UNIQUE_CONSTRAINT_SCHEMA, REFERENCED_TABLE_NAME"
        " FROM information_schema.REFERENTIAL_CONSTRAINTS"
    )
    pairs = [(f"{a!s}.{b!s}", f"{c!s}.{d!s}") for a, b, c, d in rows]
    if fold_case:
        pairs = [(folded(child), folded(parent)) for child, parent in pairs]
    return pairs

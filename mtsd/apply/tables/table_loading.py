"""Reads the target's table definitions for the applier of SQL, one query for each kind of fact.

Once for each definition, and for all workers. SHOW CREATE TABLE, which `facts_reading` reads, is no
help here: it leaves out what is a default, such as a column's collation, and how long a value is.
"""

from typing import Final

from mtsd.apply.sql import literals
from mtsd.apply.tables.misread_tables import is_versioned
from mtsd.apply.tables.table_columns import read_columns
from mtsd.apply.tables.table_layout import TargetTable
from mtsd.wire.connection import Connection
from mtsd.wire.understood import understood

_CASCADES: Final = (
    b"SELECT 1 FROM information_schema.referential_constraints"
    b" WHERE unique_constraint_catalog='def' AND unique_constraint_schema=%b"
    b" AND referenced_table_name=%b AND (update_rule NOT IN ('NO ACTION','RESTRICT')"
    b" OR delete_rule NOT IN ('NO ACTION','RESTRICT')) LIMIT 1"
)
_PARENTS: Final = (
    b"SELECT DISTINCT unique_constraint_schema,referenced_table_name"
    b" FROM information_schema.referential_constraints"
    b" WHERE constraint_catalog='def' AND constraint_schema=%b AND table_name=%b"
)


@understood("target")
async def load_table(connection: Connection, database: str, table: str) -> TargetTable:
    """Return what the target knows about a table. Raises ServerError, ConnectionLostError."""
    columns = await read_columns(connection, database, table)
    if not columns:
        return TargetTable((), (), ())
    named = b"CONVERT(%b USING utf8mb4)"
    schema, name = named % literals.text(database), named % literals.text(table)
    parts = await connection.query(
        b"SELECT index_name, column_name, sub_part, nullable, index_type = 'HASH' AND"
        b" (SELECT engine FROM information_schema.tables t WHERE t.table_schema = s.table_schema"
        b" AND t.table_name = s.table_name) <> 'MEMORY', non_unique"
        b" FROM information_schema.statistics s"
        b" WHERE table_schema = %b AND table_name = %b"
        b" ORDER BY index_name <> 'PRIMARY', index_name, seq_in_index" % (schema, name)
    )
    keys: dict[str, list[str]] = {}
    unfit: set[str] = set()
    hashed: set[str] = set()
    for index, column, prefix, nullable, is_hashed, is_not_unique in parts:
        if is_not_unique:
            continue
        keys.setdefault(str(index), []).append("" if column is None else str(column))
        # Without a column it is an expression.
        if column is None or prefix is not None or nullable == "YES":
            unfit.add(str(index))
        if is_hashed == 1:
            hashed.add(str(index))
    triggers = await connection.query(
        b"SELECT trigger_name FROM information_schema.triggers"
        b" WHERE event_object_schema = %b AND event_object_table = %b ORDER BY 1" % (schema, name)
    )
    return TargetTable(
        tuple(columns),
        tuple(tuple(names) for index, names in keys.items() if index not in unfit),
        tuple(str(trigger) for (trigger,) in triggers),
        await is_versioned(connection, database, table),
        len(hashed),
        tuple(map(tuple, keys.values())),
        bool(await connection.query(_CASCADES % (schema, name))),
        bool(parts),
        tuple((str(a), str(b)) for a, b in await connection.query(_PARENTS % (schema, name))),
    )

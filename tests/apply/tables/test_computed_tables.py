"""What is remembered of tables whose rows the target computes something from."""

from typing import cast

from mtsd.apply.sql import literals
from mtsd.apply.tables.computed_tables import ComputedTables
from mtsd.apply.tables.known_tables import KnownTables
from mtsd.model.server import Flavour, ServerVersion
from mtsd.wire.connection import Connection
from tests.binlog.transactions import table_map

_PARENT = literals.tables([("d", "t")])


class _Target:
    """A foreign key cascades from d.t, and from nothing else."""

    async def query(self, sql: bytes) -> list[tuple[object, ...]]:
        if b"referential_constraints" in sql and _PARENT in sql:
            return [("d", "t", "other", "child")]
        return []


async def test_memory_where_a_source_renews_the_ids_of_its_tables() -> None:
    """A MySQL does so whenever it opens a table anew."""
    tables = ComputedTables(
        cast("Connection", _Target()), ServerVersion(Flavour.MYSQL, (9, 7, 0)), KnownTables(most=3)
    )
    for number in range(1, 20):
        await tables.learn([table_map(number)])
        assert table_map(number) in tables.parents
    assert len(tables.parents) <= 4

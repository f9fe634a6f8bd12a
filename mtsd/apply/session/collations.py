"""The collations that a target has, by the numbers that a binary log names them by."""

from collections.abc import Mapping

from mtsd.apply.session.family import TargetFamily
from mtsd.apply.session.satellites import Collation
from mtsd.apply.sql import literals
from mtsd.wire.connection import Connection


async def read_collations(connection: Connection, family: TargetFamily) -> Mapping[int, Collation]:
    """Return the target's collations by number. Raises ServerError, ConnectionLostError."""
    rows = await connection.query(family.collations)
    return {
        literals.number(id_): Collation(str(name).encode(), str(character_set).encode())
        for id_, name, character_set in rows
    }

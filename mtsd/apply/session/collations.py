"""The collations that a target has, by the numbers that a binary log names them by."""

from collections.abc import Mapping
from typing import Final

from mtsd.apply.session.satellites import Collation
from mtsd.apply.sql import literals
from mtsd.model.server import Flavour, ServerVersion
from mtsd.wire.connection import Connection

_OF_MYSQL: Final = b"SELECT ID,COLLATION_NAME,CHARACTER_SET_NAME FROM information_schema.COLLATIONS"
_OF_MARIADB: Final = (
    b"SELECT ID,FULL_COLLATION_NAME,CHARACTER_SET_NAME"
    b" FROM information_schema.COLLATION_CHARACTER_SET_APPLICABILITY"
)


async def read_collations(connection: Connection, server: ServerVersion) -> Mapping[int, Collation]:
    """Return the target's collations by number. Raises ServerError, ConnectionLostError."""
    mariadb = server.flavour is Flavour.MARIADB
    rows = await connection.query(_OF_MARIADB if mariadb else _OF_MYSQL)
    return {
        literals.number(id_): Collation(str(name).encode(), str(character_set).encode())
        for id_, name, character_set in rows
    }

"""A session without what the server, or its init_connect, has given it: once per connection."""

from typing import Final

from mtsd.model.server import Flavour, flavour_of, version_of
from mtsd.wire.connection import Connection

_SETTINGS: Final = {
    "autocommit": "1",
    # Answers are read as that, and told apart by names in it.
    "character_set_results": "utf8mb4",
    # A limit would truncate answers, or refuse them.
    "sql_select_limit": "18446744073709551615",
    "sql_big_selects": "1",
}
_UNLIMITED_SINCE: Final = (5, 7, 8)


async def make_neutral(connection: Connection) -> None:
    """Give a new session what every query of mtsd needs. Raises ServerError, ConnectionLostError.

    It is to be called before anything else. A transaction, or locks of tables, may be open.
    """
    flavour = flavour_of(connection.server_version)
    settings = dict(_SETTINGS)
    if flavour is Flavour.MARIADB:
        settings["max_statement_time"] = "0"
        # Else a replica of the server may pass over what the session has logged.
        settings["skip_replication"] = "0"
    elif (version_of(connection.server_version) or (0, 0, 0)) >= _UNLIMITED_SINCE:
        # It also ends the wait for a lock.
        settings["max_execution_time"] = "0"
    sets = ",".join(f"@@session.{name}={value}" for name, value in settings.items())
    # Whatever completion_type says.
    await connection.run(f"ROLLBACK AND NO CHAIN NO RELEASE;UNLOCK TABLES;SET {sets}".encode(), 3)

"""A session without what the server, or its init_connect, has given it: once per connection."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

from mtsd.model.errors import NeedsPersonError
from mtsd.model.outcome.reason import Reason, Refused, refuse
from mtsd.model.server import flavour_of, version_of
from mtsd.wire.connection import Connection
from mtsd.wire.endpoint import Endpoint
from mtsd.wire.family import SERVERS

OTHER_VERSION = Reason(
    "the {server} has greeted as version {greeting}, and says after the login that it is {version}",
    "connect to the server itself: a proxy, or somebody in between, has answered in its place",
)
_SETTINGS: Final = {
    "autocommit": "1",
    # A COMMIT would end the session too, or begin another transaction.
    "completion_type": "0",
    # Answers are read as that, and told apart by names in it.
    "character_set_results": "utf8mb4",
    # A limit would truncate answers, or refuse them.
    "sql_select_limit": "18446744073709551615",
    "sql_big_selects": "1",
}


class OtherServerError(NeedsPersonError):
    """A server is not what it has greeted as."""

    def __init__(self, refused: Refused) -> None:
        super().__init__(str(refused))
        self.refused = refused


@asynccontextmanager
async def neutral_connection(
    endpoint: Endpoint, about: Sequence[tuple[str, str]] = ()
) -> AsyncIterator[Connection]:
    """Open a neutral session for the block, for questions; `about` is as for `Connection.open`.

    Raises what that and `make_neutral` raise.
    """
    connection = await Connection.open(endpoint, about=about)
    try:
        async with connection.answering():
            await make_neutral(connection)
        yield connection
    finally:
        connection.close()


async def make_neutral(connection: Connection) -> None:
    """Give a new session what every query of mtsd needs.

    It is to be called before anything else. A transaction, or locks of tables, may be open. Raises
    OtherServerError, ServerError, ConnectionLostError.
    """
    sets = ",".join(f"@@session.{name}={value}" for name, value in _SETTINGS.items())
    # Whatever completion_type says.
    neutral = f"ROLLBACK AND NO CHAIN NO RELEASE;UNLOCK TABLES;SET {sets}"
    # The greeting came before TLS, from whoever is in between.
    ((version,),) = await connection.query(f"{neutral};SELECT @@version")
    greeting = connection.server_version
    refused = other_version(connection.endpoint.role, greeting, str(version))
    if refused is not None:
        raise OtherServerError(refused)
    family = SERVERS[flavour_of(greeting)]
    if (version_of(greeting) or (0, 0, 0)) >= family.unlimited_since:
        await connection.run(family.unlimited, 1)


def other_version(server: str, greeting: str, version: str) -> Refused | None:
    """Decide whether a `server` ("source" or "target") is not what its greeting says."""
    same_family = flavour_of(greeting) is flavour_of(version)
    if same_family and version_of(greeting) == version_of(version):
        return None
    return refuse(OTHER_VERSION, server=server, greeting=greeting, version=version)

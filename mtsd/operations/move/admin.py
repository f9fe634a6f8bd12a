"""Sessions with the privileges that a move needs and mtsd's own users do not have."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from mtsd.config import EndpointSettings
from mtsd.model.errors import MtsdError, ServerError
from mtsd.operations.move.steps import MoveStatement
from mtsd.replica.core.endpoints import endpoint
from mtsd.wire.connection import Connection
from mtsd.wire.endpoint import Endpoint
from mtsd.wire.exchange import Row, Value
from mtsd.wire.neutral_session import make_neutral


@dataclass(frozen=True, slots=True)
class Admin:
    """An account for what mtsd's own users may not do."""

    user: str
    password: str = field(default="", repr=False)


def admin_endpoint(role: str, settings: EndpointSettings, admin: Admin | None) -> Endpoint:
    """Return the endpoint of a section for an account; None: for the section's own.

    Raises NeedsPersonError if a TLS file is unusable.
    """
    own = endpoint(role, settings)
    return own if admin is None else replace(own, user=admin.user, password=admin.password)


class AdminSession:
    """A session that is opened when it is needed, and again after it was lost.

    A statement that was interrupted may still run on the server, and would have its effect later
    on: its session is killed before the next one is used.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._connection: Connection | None = None
        self._interrupted = 0

    async def connection(self) -> Connection:
        """Return the open session. Raises ServerError, ConnectionLostError."""
        found = self._connection
        if found is not None and not found.closed:
            return found
        found = await Connection.open(self._endpoint)
        self._connection = found
        await make_neutral(found)
        if self._interrupted:
            interrupted, self._interrupted = self._interrupted, 0
            with contextlib.suppress(ServerError):
                # It may have ended by itself.
                await found.query(f"KILL {interrupted}")
        return found

    async def query(self, sql: str) -> list[Row]:
        """Run a statement and return its rows. Raises ServerError, ConnectionLostError."""
        connection = await self.connection()
        with self._given_up_if_interrupted(connection):
            return await connection.query(sql)

    async def named(self, sql: str) -> list[dict[str, Value]]:
        """Run a statement and return its rows by column name. Raises as `query` does."""
        connection = await self.connection()
        with self._given_up_if_interrupted(connection):
            return await connection.query_named(sql)

    async def run(self, statement: MoveStatement) -> None:
        """Run a statement of a move. An error conceals what may be a password."""
        try:
            await self.query(statement.sql)
        except ServerError as error:
            if statement.sql != statement.shown:
                error.conceal()
            raise

    def close(self) -> None:
        """Close it, if it is open."""
        if self._connection is not None:
            self._connection.close()

    @contextlib.contextmanager
    def _given_up_if_interrupted(self, connection: Connection) -> Iterator[None]:
        try:
            yield
        except MtsdError:
            raise
        except BaseException:
            self._interrupted = connection.thread_id
            connection.close()
            raise

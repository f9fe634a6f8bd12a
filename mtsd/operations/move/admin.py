"""Sessions with the privileges that a move needs and mtsd's own users do not have."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Final

from mtsd.config import EndpointSettings
from mtsd.model.errors import MtsdError, NeedsPersonError, ServerError
from mtsd.model.outcome.reason import Reason, refuse
from mtsd.model.server import Flavour, ServerVersion
from mtsd.operations.check.privileges import HeldPrivileges, NeededPrivilege, grant, missing
from mtsd.operations.move.steps import MoveStatement
from mtsd.replica.core.endpoints import endpoint
from mtsd.wire.connection import Connection
from mtsd.wire.endpoint import Endpoint
from mtsd.wire.exchange import Row, Value
from mtsd.wire.neutral_session import make_neutral
from mtsd.wire.replica_words import sql_text

LACKS = Reason("{who} {account} of the {role} may not do what this needs", "{grant}")
UNDER_WAY = Reason(
    "another move is under way on {server} (it holds the lock 'mtsd.move' there)",
    "wait for its end; if it was killed, its session ends with its last statement",
)
_CLAIM: Final = "SELECT GET_LOCK('mtsd.move', 5)"
_LOOK: Final = "SELECT IS_FREE_LOCK('mtsd.move')"
_MYSQL, _MARIADB = Flavour.MYSQL, Flavour.MARIADB
SETS_READ_ONLY: Final = (
    NeededPrivilege(("SYSTEM_VARIABLES_ADMIN", "SUPER"), flavour=_MYSQL),
    NeededPrivilege(("READ_ONLY ADMIN", "SUPER"), flavour=_MARIADB),
)
"""To set read_only, and on a MySQL any other variable, such as gtid_purged."""
CONFIGURES_REPLICA: Final = (
    NeededPrivilege(("REPLICATION_SLAVE_ADMIN", "SUPER"), flavour=_MYSQL),
    NeededPrivilege(("REPLICATION SLAVE ADMIN", "SUPER"), flavour=_MARIADB),
    NeededPrivilege(("REPLICATION CLIENT", "SUPER"), flavour=_MYSQL),
    NeededPrivilege(("RELOAD",)),
)
"""To see, stop, configure, start and remove a server's own replica; on a MariaDB also to set
gtid_slave_pos."""
ENDS_SESSIONS: Final = (
    NeededPrivilege(("CONNECTION_ADMIN", "SUPER"), flavour=_MYSQL),
    NeededPrivilege(("CONNECTION ADMIN", "SUPER"), flavour=_MARIADB),
)
"""To end sessions of others."""
STOPS_EVENTS: Final = (NeededPrivilege(("SUPER",), flavour=_MARIADB),)
"""To set event_scheduler; on a MySQL, who sets read_only may."""
ENABLES_EVENTS: Final = (NeededPrivilege(("EVENT",)),)
"""To enable events."""


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
    on: its session is killed before the next one is used. None waits longer than `longest` seconds
    for a lock, so that nothing is left either where no other session comes.
    """

    def __init__(self, endpoint: Endpoint, longest: float = 60.0) -> None:
        self._endpoint = endpoint
        self._longest = max(1, ceil(longest))
        self._connection: Connection | None = None
        self._interrupted = 0
        self._claims = False

    async def connection(self) -> Connection:
        """Return the open session. Raises ServerError, ConnectionLostError."""
        found = self._connection
        if found is not None and not found.closed:
            return found
        found = await Connection.open(self._endpoint)
        self._connection = found
        await make_neutral(found)
        limits = ("lock_wait_timeout", "innodb_lock_wait_timeout")
        sets = ", ".join(f"@@session.{name} = {self._longest}" for name in limits)
        await found.run(f"SET {sets}".encode(), 1)
        if self._claims:
            await found.query(_CLAIM)
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

    async def claim(self, *, keep: bool) -> None:
        """Keep other moves from this server until this one ends, or is killed.

        The one that fails would put back what the other one has done. Not to `keep` them: only
        look. Raises NeedsPersonError if there is one already, ServerError, ConnectionLostError.
        """
        ((got,),) = await self.query(_CLAIM if keep else _LOOK)
        if got != 1:
            raise NeedsPersonError(str(refuse(UNDER_WAY, server=self._endpoint)))
        self._claims = keep

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


OWN_USER: Final = "mtsd's user"


@dataclass(frozen=True, slots=True)
class AdminPart:
    """What an admin is there for, on a server of that role and version."""

    role: str
    session: AdminSession
    server: ServerVersion
    needs: tuple[NeededPrivilege, ...]
    who: str = "the admin"


async def require_rights(*parts: AdminPart) -> None:
    """Look at the rights of admins before anything is done.

    One who may stop a replica and not remove it would be found out in the middle, with nothing
    applied; one who may not set read_only, in the pause. Raises NeedsPersonError, ServerError.
    """
    refused = []
    for part in parts:
        rows = await part.session.query("SHOW GRANTS")
        held = HeldPrivileges.of(str(line) for (line,) in rows)
        lacks = missing(held, part.needs, part.server)
        if lacks:
            ((account,),) = await part.session.query("SELECT CURRENT_USER()")
            name = "@".join(map(sql_text, str(account).rsplit("@", 1)))
            words = grant(lacks, name)
            refused.append(refuse(LACKS, who=part.who, account=name, role=part.role, grant=words))
    if refused:
        raise NeedsPersonError("; ".join(map(str, refused)))

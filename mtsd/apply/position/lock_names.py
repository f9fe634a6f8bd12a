"""The names of mtsd's locks on a target, and the table slave_lock_token with the secret in them.

GET_LOCK needs no privilege: whoever knows a name can hold that lock, and keep a daemon from
starting. So the names are made of a token that is written once, when the position schema is made,
and read before any lock is taken. All channels of a schema share it, and daemons that start at the
same time agree on it: it is the only row of its table, and who comes second reads the first one's.

A name is a digest: who sees one does not know the others.
"""

import enum
import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from typing import Final

from mtsd.apply.position.position_schema import LOCK_TOKEN
from mtsd.apply.position.table_declaration import Table, text, whole
from mtsd.apply.session.retry import announced_wait, write_each
from mtsd.apply.sql import literals
from mtsd.model.error_numbers import NO_SUCH_TABLE
from mtsd.model.errors import NeedsPersonError, ServerError
from mtsd.wire.connection import Connection

CHANNEL: Final = 0
"""The id of the session that holds the channel's lock and stores the low-water mark."""
PRESERVING: Final = -1
"""The id of the lock that this session holds, too, while the source's GTIDs are preserved."""
_DIGITS: Final = 40
"""Of a digest in hexadecimal; a lock's name has 64 characters at most."""
"""Errors of a schema, or a table, that does not exist."""


class SessionOf(enum.Enum):
    """Which of a worker's sessions a lock is for."""

    WORKER = ""
    BRANCH = ":xa"
    """The one in which it applies an XA transaction."""
    OVERLAP = ":overlap"
    """The one in which it applies rows while its own commits."""
    SECOND_OVERLAP = ":overlap2"
    """That in which it does while one commits and another one is to follow."""


OVERLAPPING_SESSIONS: Final = (SessionOf.OVERLAP, SessionOf.SECOND_OVERLAP)
"""Those of a worker beside its own, in the order in which it opens them."""


@dataclass(frozen=True, slots=True)
class LockNames:
    """The names of one channel's locks."""

    token: str = field(repr=False)
    channel: str

    def session(self, session_id: int, of: SessionOf = SessionOf.WORKER) -> str:
        """Return the lock of a session: CHANNEL, or a worker's id, starting at 1."""
        return f"mtsd:{self._digest('channel', self.channel)}:{session_id}{of.value}"

    def start(self, source_uuid: str) -> str:
        """Return the lock under which a channel of the schema takes a source."""
        return f"mtsd:{self._digest('source', source_uuid.lower())}:start"

    def _digest(self, kind: str, name: str) -> str:
        key = self.token.encode("utf-8", "replace")
        return hmac.new(key, f"{kind}:{name}".encode(), hashlib.sha256).hexdigest()[:_DIGITS]


_ID = whole("Id", "TINYINT UNSIGNED", "NOT NULL PRIMARY KEY COMMENT 'always 1'")
_TOKEN = text("Token", "CHAR(64) NOT NULL COMMENT 'in the names of locks'")
_TABLE = Table(LOCK_TOKEN, (_ID, _TOKEN))


class TokenTable:
    """Statements on the table in one schema."""

    def __init__(self, schema: str) -> None:
        self._schema = schema
        self._name = literals.name(schema) + b"." + literals.name(LOCK_TOKEN)

    def definition(self) -> bytes:
        """Return the statement that creates the table if it does not exist."""
        return _TABLE.definition(self._schema)

    def creation(self) -> list[bytes]:
        """Return the statements after which there is a token, new or somebody else's."""
        return [
            b"CREATE DATABASE IF NOT EXISTS " + literals.name(self._schema),
            self.definition(),
            # Of two at the same time, one waits for the other's row, and leaves that as it is.
            b"INSERT INTO %b VALUES (1,%b) ON DUPLICATE KEY UPDATE `Id`=`Id`"
            % (self._name, literals.text(secrets.token_hex(32))),
        ]

    def select(self) -> bytes:
        """Return the query for the token: one row, or none."""
        return b"SELECT %b FROM %b WHERE %b" % (_TOKEN.selected, self._name, _ID.equals(1))


async def read_locks(connection: Connection, schema: str, channel: str) -> LockNames | None:
    """Return the names of a channel's locks; None if the schema has no token yet.

    Raises ServerError, ConnectionLostError.
    """
    try:
        async with announced_wait(connection, b"reading of the position tables"):
            rows = await connection.query(TokenTable(schema).select())
    except ServerError as error:
        if error.number not in NO_SUCH_TABLE:
            raise
        return None
    return LockNames(str(rows[0][0]), channel) if rows else None


async def make_locks(connection: Connection, schema: str, channel: str) -> LockNames:
    """Return the names of a channel's locks, after making the schema's token if there is none.

    To be called before any of them is taken. Raises NeedsPersonError, ServerError,
    ConnectionLostError.
    """
    locks = await read_locks(connection, schema, channel)
    if locks is None:
        await write_each(connection, TokenTable(schema).creation())
        locks = await read_locks(connection, schema, channel)
    if locks is None:
        raise NeedsPersonError(
            f"the row of {schema}.{LOCK_TOKEN} has been removed while it was written: start again"
        )
    return locks

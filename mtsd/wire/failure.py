"""What the errors of aiomysql and of the system mean for a session; without I/O.

Error numbers are those of servers and of the client library (MySQL manual, "Server Error Message
Reference" and "Client Error Message Reference").
"""

import asyncio
import ssl
from typing import Final

from pymysql.err import InternalError, MySQLError, OperationalError

from mtsd.model.error_numbers import ER
from mtsd.model.errors import CannotConnectError, ConnectionLostError, MtsdError, ServerError
from mtsd.wire.endpoint import Endpoint
from mtsd.wire.inbox import AnswerError
from mtsd.wire.refusal import SessionRefusedError, no_mysql, refused, tls_failed, unreachable

BUSY: Final[frozenset[int]] = frozenset({
    ER.CON_COUNT_ERROR, ER.SERVER_SHUTDOWN, ER.TOO_MANY_USER_CONNECTIONS, ER.USER_LIMIT_REACHED,
    ER.SERVER_OFFLINE_MODE,
})  # fmt: skip
"""Transient errors: too many connections, shutdown, resource limit exceeded, offline mode."""
_CONNECTION_ERRORS: Final[frozenset[int]] = frozenset({
    ER.ABORTING_CONNECTION, ER.NET_READ_ERROR, ER.NET_READ_INTERRUPTED, ER.NET_ERROR_ON_WRITE,
    ER.NET_WRITE_INTERRUPTED, ER.CR_CONNECTION_ERROR, ER.CR_CONN_HOST_ERROR,
    ER.CR_SERVER_GONE_ERROR, ER.CR_SERVER_LOST, ER.CR_SERVER_LOST_EXTENDED,
    ER.CLIENT_INTERACTION_TIMEOUT,
})  # fmt: skip
"""Aborted connections, read and write errors, lost and refused connections, idle timeout."""
_SERVER_GOING: Final = frozenset({ER.SERVER_SHUTDOWN, ER.NORMAL_SHUTDOWN, ER.SHUTDOWN_COMPLETE})
"""The server is shutting down."""
_NO_GTIDS_ANY_MORE: Final = ER.CANT_SET_GTID_NEXT_TO_GTID_WHEN_GTID_MODE_IS_OFF
"""A GTID was to be set, but gtid_mode is OFF by now: another session will know that."""
CLOSED: Final = "it was closed by the server"
_ENDED: Final = (ConnectionError, asyncio.IncompleteReadError)
"""What is raised where the other side has ended the connection."""
NO_SESSION: Final = (
    MySQLError, OSError, asyncio.IncompleteReadError,
    # Raised for the name of a host that cannot be one.
    ValueError,
)  # fmt: skip
"""What may be raised while a session is opened."""


def not_opened(endpoint: Endpoint, error: BaseException) -> MtsdError:
    """Return the error that describes, for a replica, why there is no session."""
    cause = error.__cause__ if isinstance(error, MySQLError) else error
    if isinstance(cause, ssl.SSLError) and not isinstance(cause, ssl.SSLEOFError):
        return tls_failed(endpoint, cause)
    if isinstance(cause, PermissionError):
        return SessionRefusedError(
            f"mtsd may not connect to the {endpoint.role} {endpoint}: {cause}"
        )
    if isinstance(cause, OSError | asyncio.IncompleteReadError):
        return CannotConnectError(endpoint.role, unreachable(endpoint, cause))
    if not isinstance(error, MySQLError):
        return no_mysql(endpoint)
    failure = translated(error, endpoint)
    if isinstance(failure, ServerError) and failure.number not in BUSY:
        return refused(endpoint, failure)
    if isinstance(failure, ConnectionLostError):
        return CannotConnectError(endpoint.role, failure.reason)
    return failure


def why_ended(error: BaseException) -> str:
    """Return in words why a connection has ended; what Python says of an end is of no use."""
    if isinstance(error, _ENDED) and not isinstance(error, AnswerError):
        return CLOSED
    return str(error)


def translated(error: MySQLError, endpoint: Endpoint) -> ServerError | ConnectionLostError:
    """Return the error of an open session as mtsd knows it."""
    number = error.args[0] if error.args and isinstance(error.args[0], int) else 0
    text = str(error.args[1]) if len(error.args) > 1 else str(error)
    if isinstance(error, InternalError | OperationalError) and not number:
        # aiomysql's own words about an answer.
        return ConnectionLostError(endpoint.role, text)
    if isinstance(error.__cause__, _ENDED):
        return ConnectionLostError(endpoint.role, why_ended(error.__cause__))
    if number in _CONNECTION_ERRORS or number in _SERVER_GOING:
        return ConnectionLostError(endpoint.role, text)
    if number == _NO_GTIDS_ANY_MORE:
        return ConnectionLostError(endpoint.role, f"its gtid_mode has been changed: {text}")
    refusal = ServerError(number, getattr(error, "sqlstate", None) or "", text)
    refusal.server = f"{endpoint.role} {endpoint}"
    return refusal

"""Why a server cannot be checked, and what to do, based on the error."""

import socket
import ssl
from collections.abc import Iterator

from mtsd.config import EndpointSettings
from mtsd.model.error_numbers import ER, NOT_ALLOWED
from mtsd.model.errors import ConnectionLostError, ServerError
from mtsd.operations.check.lines.catalogue import Kind
from mtsd.operations.check.lines.line import Line
from mtsd.wire.refusal import NoTlsError, SessionRefusedError, remedy_at_login, remedy_of

_AS_IT_SAYS = "do what the message says"
_HOST_REFUSED = frozenset({ER.HOST_IS_BLOCKED, ER.HOST_NOT_PRIVILEGED})


def unreachable(
    server: str,
    settings: EndpointSettings,
    error: SessionRefusedError | ServerError | ConnectionLostError,
) -> Line:
    """Return the line for a failed connection to `server` ("source" or "target")."""
    causes = list(_causes(error))
    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return Kind.TLS_WRONG_CERTIFICATE.line(server=server, reason=cause.verify_message)
        if isinstance(cause, ssl.SSLError):
            return Kind.TLS_FAILED.line(server=server, reason=cause)
        if isinstance(cause, ConnectionRefusedError | FileNotFoundError):
            return Kind.REFUSED.line(server=server, address=settings.address)
        if isinstance(cause, socket.gaierror):
            return Kind.UNKNOWN_HOST.line(
                server=server, host=settings.host, reason=cause.strerror or cause
            )
    if any(isinstance(cause, TimeoutError) for cause in causes):
        return Kind.NO_ANSWER.line(
            server=server, address=settings.address, seconds=f"{settings.connect_timeout:g}"
        )
    if not isinstance(error, ConnectionLostError):
        return _refused(server, settings, error)
    reason = error.reason.removeprefix(f"{settings.address}: ")
    return Kind.UNREACHABLE.line(server=server, address=settings.address, reason=reason)


def interrupted(server: str, error: ServerError | ConnectionLostError) -> Line:
    """Return the line for a server that could be reached, but not checked completely."""
    if isinstance(error, ServerError):
        return Kind.NOT_LOOKED_AT.line(
            server=server,
            reason=_with_number(error),
            remedy=_as_part(remedy_of(error)),
        )
    return Kind.CONNECTION_LOST.line(server=server, reason=error.reason)


def _refused(
    server: str, settings: EndpointSettings, error: SessionRefusedError | ServerError
) -> Line:
    if isinstance(error, NoTlsError):
        return Kind.TLS_NOT_OFFERED.line(server=server, wanted=f'"{settings.tls}"')
    answer = error if isinstance(error, ServerError) else error.answer
    if answer is None:
        return Kind.SERVER_REFUSES.line(
            server=server, user=settings.user, reason=error, remedy=_AS_IT_SAYS
        )
    if answer.number in NOT_ALLOWED:
        return Kind.ACCESS_DENIED.line(server=server, user=settings.user, reason=answer.text)
    if answer.number in _HOST_REFUSED:
        return Kind.HOST_REFUSED.line(server=server, user=settings.user, reason=answer.text)
    if answer.number == ER.SECURE_TRANSPORT_REQUIRED:
        return Kind.TLS_REQUIRED.line(server=server)
    return Kind.SERVER_REFUSES.line(
        server=server,
        user=settings.user,
        reason=_with_number(answer),
        remedy=_as_part(remedy_at_login(answer, server)),
    )


def _with_number(error: ServerError) -> str:
    """Return the error's text, which ends as a sentence with some errors, and its number."""
    return f"{error.text.removesuffix('.')} ({error.number})"


def _as_part(remedy: str) -> str:
    """Return a remedy, which is a sentence of the daemon's, as the rest of a line."""
    if not remedy:
        return _AS_IT_SAYS
    # A statement stays as it is: SET PERSIST …
    return remedy if remedy[:2].isupper() else remedy[0].lower() + remedy[1:]


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__

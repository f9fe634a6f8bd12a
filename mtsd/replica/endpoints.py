"""Where the servers are, and the identity to register with, from the settings."""

import ssl
from pathlib import Path

from mtsd.config import EndpointSettings
from mtsd.config.settings import SourceSettings
from mtsd.model.errors import NeedsPersonError
from mtsd.source.handshake import ReplicaIdentity
from mtsd.wire.endpoint import Endpoint


def endpoint(role: str, settings: EndpointSettings) -> Endpoint:
    """Return the endpoint of a section. Raises NeedsPersonError if a TLS file is unusable."""
    return Endpoint(
        role=role,
        host=settings.host,
        port=settings.port,
        unix_socket=str(settings.unix_socket or ""),
        user=settings.user,
        password=settings.password.get_secret_value(),
        connect_timeout=settings.connect_timeout,
        tls=_context(role, settings),
        require_tls=settings.tls in {"required", "verify_ca", "verify_identity"},
    )


def identity(settings: SourceSettings, daemon_uuid: str) -> ReplicaIdentity:
    """Return the identity that a daemon registers with at the source."""
    return ReplicaIdentity(settings.server_id, daemon_uuid, settings.heartbeat_period)


def _context(role: str, settings: EndpointSettings) -> ssl.SSLContext | None:
    if settings.tls == "disabled" or settings.unix_socket:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = settings.tls == "verify_identity"
    if settings.tls in {"verify_ca", "verify_identity"}:
        _trust(context, role, settings.tls_ca)
    else:
        context.verify_mode = ssl.CERT_NONE
    if settings.tls_cert and settings.tls_key:
        _show(context, role, settings.tls_cert, settings.tls_key)
    return context


def _trust(context: ssl.SSLContext, role: str, ca: Path | None) -> None:
    if ca is None:
        context.load_default_certs()
        return
    try:
        context.load_verify_locations(str(ca))
    except OSError as error:
        raise NeedsPersonError(
            f"[{role}] tls_ca = {str(ca)!r} {_fault(error, 'certificate of a CA')}"
        ) from error


def _show(context: ssl.SSLContext, role: str, cert: Path, key: Path) -> None:
    def no_passphrase() -> str:
        raise NeedsPersonError(
            f"[{role}] tls_key = {str(key)!r} is encrypted: store it without a passphrase"
        )

    try:
        context.load_cert_chain(str(cert), str(key), no_passphrase)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise NeedsPersonError(
                f"[{role}] tls_key = {str(key)!r} is not the key of tls_cert = {str(cert)!r}"
            ) from error
        raise NeedsPersonError(
            f"[{role}] tls_cert = {str(cert)!r} or tls_key = {str(key)!r} "
            + _fault(error, "certificate, or key")
        ) from error
    except OSError as error:
        raise NeedsPersonError(
            f"[{role}] tls_cert = {str(cert)!r} or tls_key = {str(key)!r} "
            + _fault(error, "certificate, or key")
        ) from error


def _fault(error: OSError, wanted: str) -> str:
    if isinstance(error, ssl.SSLError):
        return f"contains no {wanted} in PEM format ({error.reason or error})"
    return f"cannot be read: {error.strerror}"

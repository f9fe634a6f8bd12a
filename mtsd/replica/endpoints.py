"""Where the servers are, out of the settings."""

import ssl

from mtsd.config import EndpointSettings
from mtsd.wire.endpoint import Endpoint


def endpoint(role: str, settings: EndpointSettings) -> Endpoint:
    """Return the endpoint of a section. Raises OSError where a TLS file cannot be read."""
    return Endpoint(
        role=role,
        host=settings.host,
        port=settings.port,
        unix_socket=str(settings.unix_socket or ""),
        user=settings.user,
        password=settings.password.get_secret_value(),
        connect_timeout=settings.connect_timeout,
        tls=_context(settings),
        require_tls=settings.tls in {"required", "verify_ca", "verify_identity"},
    )


def _context(settings: EndpointSettings) -> ssl.SSLContext | None:
    if settings.tls == "disabled" or settings.unix_socket:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = settings.tls == "verify_identity"
    if settings.tls in {"verify_ca", "verify_identity"}:
        if settings.tls_ca:
            context.load_verify_locations(str(settings.tls_ca))
        else:
            context.load_default_certs()
    else:
        context.verify_mode = ssl.CERT_NONE
    if settings.tls_cert and settings.tls_key:
        context.load_cert_chain(str(settings.tls_cert), str(settings.tls_key))
    return context

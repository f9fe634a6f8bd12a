"""Where the servers are, and what mtsd says there about itself, from the settings."""

from mtsd.config import EndpointSettings, Settings
from mtsd.config.settings import SourceSettings
from mtsd.source.handshake import ReplicaIdentity
from mtsd.wire.endpoint import Endpoint
from mtsd.wire.tls import REQUIRING, public_key, tls_context


def endpoint(role: str, settings: EndpointSettings) -> Endpoint:
    """Return the endpoint of a section. Raises NeedsPersonError if a file is unusable."""
    return Endpoint(
        role=role,
        host=settings.host,
        port=settings.port,
        unix_socket=str(settings.unix_socket or ""),
        user=settings.user,
        password=settings.password.get_secret_value(),
        connect_timeout=settings.connect_timeout,
        tls=None
        if settings.unix_socket
        else tls_context(
            role,
            settings.tls,
            ca=settings.tls_ca,
            cert=settings.tls_cert,
            key=settings.tls_key,
        ),
        require_tls=settings.tls in REQUIRING,
        server_public_key=public_key(role, settings.server_public_key),
        get_public_key=settings.get_public_key,
        clear_password=settings.clear_password,
    )


def identity(
    settings: SourceSettings,
    daemon_uuid: str,
    channel: str = "",
    reported: tuple[str, int] = ("", 0),
) -> ReplicaIdentity:
    """Return the identity that a daemon registers with at the source.

    `reported` are the host and port that the source lists: those of the target.
    """
    return ReplicaIdentity(
        settings.server_id, daemon_uuid, settings.heartbeat_period, *reported, channel
    )


def about_session(settings: Settings, role: str) -> tuple[tuple[str, str], ...]:
    """Return the attributes of a session on the target: the channel, and who uses it."""
    return (("channel", settings.replica.channel), ("role", role))

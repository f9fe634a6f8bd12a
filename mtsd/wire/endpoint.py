"""Where a server is, and which account to connect with."""

import ssl
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One server: over TCP (`host`, `port`), or over `unix_socket` if that is not empty.

    `role` is "source" or "target": errors name it. `require_tls`: refuse a connection that the
    server did not encrypt, where `tls` alone would continue without encryption. `found_rows`: the
    server counts the rows that an UPDATE has found, rather than those that it has changed.

    What may protect the password where the server is neither verified by TLS nor reached over a
    Unix socket: `server_public_key` (PEM; b"": none), a key that the server sends itself
    (`get_public_key`), or nothing at all (`clear_password`).
    """

    role: str
    host: str
    port: int
    unix_socket: str
    user: str
    password: str = field(repr=False)
    connect_timeout: float = 10.0
    tls: ssl.SSLContext | None = None
    require_tls: bool = False
    found_rows: bool = False
    server_public_key: bytes = field(default=b"", repr=False)
    get_public_key: bool = False
    clear_password: bool = False

    @property
    def is_verified(self) -> bool:
        """Whether only the server itself can be at the other end."""
        if self.unix_socket:
            return True
        return self.tls is not None and self.tls.verify_mode is ssl.CERT_REQUIRED

    def __str__(self) -> str:
        return self.unix_socket or f"{self.host}:{self.port}"


class CurrentEndpoint:
    """The endpoint for new connections to a server; a reload of the configuration replaces it."""

    __slots__ = ("endpoint",)

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint

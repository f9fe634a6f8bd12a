"""Where a server is, and as whom to connect."""

import ssl
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One server: over TCP (`host`, `port`), or over `unix_socket` where that is not empty.

    `role` is "source" or "target": errors name it. `require_tls`: refuse a connection that the
    server did not encrypt, where `tls` alone would go on without.
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

    def __str__(self) -> str:
        return self.unix_socket or f"{self.host}:{self.port}"

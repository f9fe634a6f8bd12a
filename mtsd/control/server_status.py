"""What a status says of the two servers: the connections to them, and the source's log."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class ErrorStatus:
    """What is wrong with a server; `number` is its error's, 0 if it said nothing; ISO 8601."""

    number: int
    text: str
    time: str


@dataclass(frozen=True, slots=True)
class ConnectionStatus:
    """The daemon's connection to one server.

    `since` is when it was connected, or was lost, in ISO 8601. `attempts` have failed since it was
    lost; the next one is in `next_in` seconds, None if it runs or there is none to wait for.
    `last_error` is what is wrong now: None once that is over.
    """

    connected: bool = False
    since: str = ""
    attempts: int = 0
    next_in: float | None = None
    last_error: ErrorStatus | None = None


@dataclass(frozen=True, slots=True)
class ConnectionsStatus:
    """Both servers'."""

    source: ConnectionStatus = ConnectionStatus()
    target: ConnectionStatus = ConnectionStatus()


@dataclass(frozen=True, slots=True)
class SourceLogStatus:
    """The source's binary log, as this replica needs it; None where it is not known.

    `heard` is when the source has last sent something, a heartbeat included, in ISO 8601; "" if it
    has not yet.
    """

    heard: str = ""
    bytes_behind: int | None = None
    """From the executed position to the log's end, as of at most half a minute ago."""
    retention_left_seconds: float | None = None
    """Until the source may purge, by its age, what is not applied yet; None also if it never does.
    A source does not purge what is being read from it: it does once the connection is lost."""
    server_id: int | None = None
    server_uuid: str = ""
    """Those of the source, "" on a MariaDB."""


NO_CONNECTIONS: Final = ConnectionsStatus()
NO_SOURCE_LOG: Final = SourceLogStatus()

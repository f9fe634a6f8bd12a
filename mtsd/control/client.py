"""The status socket's client, for commands: it waits, and needs no event loop."""

import http.client
import socket
from pathlib import Path

from mtsd.control.status import Status
from mtsd.model.errors import MtsdError


class StatusUnavailableError(MtsdError):
    """Something is there on the status socket, and it does not say its status."""


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


def fetch_status(path: Path, timeout: float = 5.0) -> Status | None:
    """Ask the daemon on the socket `path`; None where none runs.

    `timeout` is in seconds, for each wait. Raises StatusUnavailableError where the socket may not
    be opened, or the daemon does not answer or answers something else.
    """
    connection = _UnixConnection(path, timeout)
    try:
        connection.request("GET", "/status")
        response = connection.getresponse()
        body = response.read()
    except (FileNotFoundError, ConnectionRefusedError):
        return None
    except TimeoutError as error:
        raise StatusUnavailableError(
            f"the daemon on {path} did not answer within {timeout:g} s"
        ) from error
    except (OSError, http.client.HTTPException) as error:
        raise StatusUnavailableError(f"cannot ask the daemon on {path}: {error}") from error
    finally:
        connection.close()
    if response.status != http.client.OK:
        raise StatusUnavailableError(
            f"the daemon on {path} answered {response.status} {response.reason}"
        )
    try:
        return Status.from_json(body)
    except ValueError as error:
        raise StatusUnavailableError(
            f"what answers on {path} does not say an mtsd's status"
        ) from error

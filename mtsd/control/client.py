"""The control socket's client, for commands: it waits, and needs no event loop."""

import http.client
import json
import socket
from collections.abc import Mapping
from pathlib import Path

from mtsd.control.routes import JSON
from mtsd.control.status import Status
from mtsd.model.errors import MtsdError


class DaemonUnavailableError(MtsdError):
    """Something is there on the control socket, and it does not answer as a daemon does."""


class _GoneError(DaemonUnavailableError):
    """The connection ended before the answer began, as it does where the daemon ends."""


class DaemonRefusedError(MtsdError):
    """The daemon answers that it does not do what is asked for; `status` is that of HTTP."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


def get(path: Path, target: str, timeout: float = 5.0) -> bytes | None:
    """Return what the daemon on the socket `path` has at `target`; None where none runs.

    `timeout` is in seconds, for each wait. Raises DaemonUnavailableError where the socket may not
    be opened, or the daemon does not answer or answers no HTTP; DaemonRefusedError.
    """
    try:
        return _ask(path, "GET", target, None, timeout)
    except _GoneError:
        # It ended while it was asked: none runs now, or the one that has taken its place answers.
        return _ask(path, "GET", target, None, timeout)


def post(
    path: Path, target: str, content: Mapping[str, object] | None = None, timeout: float = 30.0
) -> dict[str, object] | None:
    """Have the daemon on the socket `path` do what is at `target`; None where none runs.

    `content` is sent as a JSON object, and one is returned. Raises as `get` does.
    """
    body = _ask(path, "POST", target, json.dumps(dict(content or {})).encode(), timeout)
    if body is None:
        return None
    answer = _object(body)
    if answer is None:
        raise DaemonUnavailableError(f"what answers on {path} does not speak as an mtsd does")
    return answer


def fetch_status(path: Path, timeout: float = 5.0) -> Status | None:
    """Ask the daemon on the socket `path`; None where none runs. Raises as `get` does."""
    body = get(path, "/status", timeout)
    if body is None:
        return None
    try:
        return Status.from_json(body)
    except ValueError as error:
        raise DaemonUnavailableError(
            f"what answers on {path} does not say an mtsd's status"
        ) from error


def _ask(path: Path, method: str, target: str, body: bytes | None, timeout: float) -> bytes | None:
    connection = _UnixConnection(path, timeout)
    headers = {} if body is None else {"Content-Type": JSON}
    try:
        connection.request(method, target, body, headers)
        response = connection.getresponse()
        answer = response.read()
    except (FileNotFoundError, ConnectionRefusedError):
        return None
    except TimeoutError as error:
        raise DaemonUnavailableError(
            f"the daemon on {path} did not answer within {timeout:g} s"
        ) from error
    except ConnectionError as error:
        raise _GoneError(
            f"the daemon on {path} closed the connection before it answered: it may have ended"
        ) from error
    except (OSError, http.client.HTTPException) as error:
        raise DaemonUnavailableError(f"cannot ask the daemon on {path}: {error}") from error
    finally:
        connection.close()
    if response.status == http.client.OK:
        return answer
    said = (_object(answer) or {}).get("error") or response.reason
    raise DaemonRefusedError(
        f"the daemon on {path} answered {response.status}: {said}", response.status
    )


def _object(body: bytes) -> dict[str, object] | None:
    try:
        found = json.loads(body)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None

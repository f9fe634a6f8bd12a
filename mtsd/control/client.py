"""The control socket's client, for commands: it is synchronous, and needs no event loop."""

import http.client
import json
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from mtsd.control.routes import JSON
from mtsd.control.status import Status
from mtsd.model.errors import MtsdError

NONE_ANSWERS: Final = "no daemon answers on {}; `mtsd status` says how the last one has ended"
"""What a command says that can do nothing without one; of the socket."""


class DaemonUnavailableError(MtsdError):
    """Something has the control socket open, but does not answer as a daemon does."""


class _GoneError(DaemonUnavailableError):
    """The connection ended before the answer began, as happens when the daemon exits."""


class DaemonRefusedError(MtsdError):
    """The daemon answers that it refuses a request; `status` is the HTTP status."""

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
    """Return what the daemon on the socket `path` serves at `target`; None if none is running.

    `timeout` is in seconds, for each wait. Raises DaemonUnavailableError if the socket may not be
    opened, or the daemon does not answer, or not in HTTP; DaemonRefusedError.
    """
    try:
        return _ask(path, "GET", target, None, timeout)
    except _GoneError:
        # It exited while it was asked: none is running now, or its successor answers.
        return _ask(path, "GET", target, None, timeout)


def post(
    path: Path, target: str, content: Mapping[str, object] | None = None, timeout: float = 30.0
) -> dict[str, object] | None:
    """Have the daemon on the socket `path` do what is at `target`; None if none is running.

    `content` is sent as a JSON object, and one is returned. Raises as `get` does.
    """
    body = _ask(path, "POST", target, json.dumps(dict(content or {})).encode(), timeout)
    if body is None:
        return None
    answer = _object(body)
    if answer is None:
        raise DaemonUnavailableError(f"what answers on {path} is not an mtsd daemon")
    return answer


def fetch_status(path: Path, timeout: float = 5.0) -> Status | None:
    """Query the daemon on the socket `path`; None if none is running. Raises as `get` does."""
    body = get(path, "/status", timeout)
    if body is None:
        return None
    try:
        return Status.from_json(body)
    except ValueError as error:
        raise DaemonUnavailableError(
            f"what answers on {path} does not return an mtsd status"
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
            f"the daemon on {path} did not answer within {timeout:g} s: it is stopped (SIGSTOP), or"
            " its machine is very busy; its log says what it did last"
        ) from error
    except ConnectionError as error:
        raise _GoneError(
            f"the daemon on {path} closed the connection before it answered: it may have exited"
        ) from error
    except (OSError, http.client.HTTPException) as error:
        raise DaemonUnavailableError(why_not_asked(path, error)) from error
    finally:
        connection.close()
    if response.status == http.client.OK:
        return answer
    reason = (_object(answer) or {}).get("error") or response.reason
    failed = response.status >= http.client.INTERNAL_SERVER_ERROR
    how = f"answered {response.status}" if failed else "refuses"
    raise DaemonRefusedError(f"the daemon on {path} {how}: {reason}", response.status)


def _object(body: bytes) -> dict[str, object] | None:
    try:
        document = json.loads(body)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def why_not_asked(path: Path, error: Exception) -> str:
    """Return why the daemon on the socket `path` cannot be asked."""
    if isinstance(error, PermissionError):
        return f"the socket {path} is for the daemon's account alone: ask as that one, or as root"
    return f"cannot query the daemon on {path}: {error}"

"""Routes as a table, over a real socket: methods, bodies, and what is refused."""

import asyncio
import http.client
import json
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from pathlib import Path

import pytest

from mtsd.control.client import DaemonRefusedError, DaemonUnavailableError, get, post
from mtsd.control.http import LARGEST_BODY
from mtsd.control.routes import Answer, Request, RequestRefusedError, Route, Routes
from mtsd.control.server import ControlServer


async def _echo(request: Request) -> Answer:
    return Answer.of({"got": request.object(), "query": request.query, "method": request.method})


async def _refuse(_: Request) -> Answer:
    raise RequestRefusedError(HTTPStatus.CONFLICT, "not now", more={"later": True})


async def _fail(_: Request) -> Answer:
    raise TimeoutError("the target is slow")


async def _text(_: Request) -> Answer:
    return Answer("mtsd_lag_seconds 0\n", content_type="text/plain; version=0.0.4")


ROUTES = (
    Route("POST", "/echo", _echo),
    Route("PUT", "/echo", _echo),
    Route("POST", "/refuse", _refuse),
    Route("POST", "/fail", _fail),
    Route("GET", "/metrics", _text),
)


@pytest.fixture
async def path(tmp_path: Path) -> AsyncIterator[Path]:
    server = ControlServer(tmp_path / "mtsd.sock", ROUTES)
    await server.start()
    yield tmp_path / "mtsd.sock"
    await server.stop()


async def test_a_command_is_posted_and_answered(path: Path) -> None:
    wanted = {"worker": 1, "name": "größer"}
    answer = await asyncio.to_thread(post, path, "/echo?a=b&c", wanted)
    assert answer == {"got": wanted, "query": "a=b&c", "method": "POST"}
    assert await asyncio.to_thread(post, path, "/echo") == {
        "got": {}, "query": "", "method": "POST",
    }  # fmt: skip
    assert await asyncio.to_thread(get, path, "/metrics") == b"mtsd_lag_seconds 0\n"


async def test_what_is_refused_is_an_error_with_its_status(path: Path) -> None:
    with pytest.raises(DaemonRefusedError, match="refuses: not now") as raised:
        await asyncio.to_thread(post, path, "/refuse")
    assert raised.value.status == HTTPStatus.CONFLICT
    with pytest.raises(DaemonRefusedError, match=r"500: TimeoutError\('the target is slow'\)"):
        await asyncio.to_thread(post, path, "/fail")
    with pytest.raises(
        DaemonRefusedError, match="refuses: there is nothing at /x, only: /echo, /fail"
    ):
        await asyncio.to_thread(get, path, "/x")
    with pytest.raises(DaemonRefusedError, match="refuses: /echo takes POST, PUT, not GET"):
        await asyncio.to_thread(get, path, "/echo")


def test_what_answers_something_else_is_no_daemon(tmp_path: Path) -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]"
    with (
        _listening(tmp_path / "other.sock", answer),
        pytest.raises(DaemonUnavailableError, match="is not an mtsd daemon"),
    ):
        post(tmp_path / "other.sock", "/echo")


def test_where_no_daemon_runs_there_is_no_answer(tmp_path: Path) -> None:
    assert post(tmp_path / "mtsd.sock", "/reload") is None


@contextmanager
def _listening(path: Path, answer: bytes) -> Iterator[None]:
    """Answer one connection on `path` from a thread."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def serve() -> None:
            client, _ = listener.accept()
            with client, suppress(ConnectionError):
                client.sendall(answer)
                # Closed before everything has been received, it would be reset.
                while client.recv(65536):
                    pass

        serving = threading.Thread(target=serve)
        serving.start()
        yield
        serving.join()


def _raw(path: Path, *parts: bytes, end: bool = False) -> tuple[int, dict[str, str], object]:
    """Send bytes as they are; return status, headers and JSON of the answer."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(10)
        client.connect(str(path))
        for part in parts:
            client.sendall(part)
        if end:
            client.shutdown(socket.SHUT_WR)
        response = http.client.HTTPResponse(client)
        response.begin()
        return response.status, dict(response.getheaders()), json.loads(response.read())


def _head(method: str, path: str, *headers: str) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: x", *headers, "", ""]
    return "\r\n".join(lines).encode()


@pytest.mark.parametrize(
    ("parts", "status", "said"),
    [
        ((_head("GET", "/nothing"),), 404, "there is nothing at /nothing"),
        ((_head("DELETE", "/echo"),), 405, "/echo takes POST, PUT, not DELETE"),
        ((_head("POST", "/echo", "Content-Length: 3"), b"{a}"), 400, "the body is not JSON: "),
        ((_head("POST", "/echo", "Content-Length: 2"), b"[]"), 400, "not a JSON object"),
        ((_head("POST", "/echo", "Content-Length: 2"), b"\xff\xfe"), 400, "the body is not JSON"),
        ((_head("POST", "/echo", "Content-Length: many"),), 400, "not a request: "),
        ((b"hello there\r\n\r\n",), 400, "not a request: "),
        ((_head("GET", "/metrics", f"X: {'x' * 40_000}"),), 431, "not a request: "),
        (
            (_head("POST", "/echo", f"Content-Length: {LARGEST_BODY + 1}"), b" " * 70_000),
            413,
            "the body is larger than 65536 bytes",
        ),
        (
            (
                _head("POST", "/echo", "Transfer-Encoding: chunked"),
                *[b"1000\r\n" + b" " * 4096 + b"\r\n"] * 40,
                b"0\r\n\r\n",
            ),
            413,
            "the body is larger than 65536 bytes",
        ),
    ],
)
async def test_refused_in_json(
    path: Path, parts: tuple[bytes, ...], status: int, said: str
) -> None:
    found, headers, content = await asyncio.to_thread(_raw, path, *parts)
    assert found == status
    assert headers["Content-Type"] == "application/json; charset=utf-8"
    assert headers["Connection"] == "close"
    assert isinstance(content, dict)
    assert said in content["error"]
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        assert headers["Allow"] == "POST, PUT"


async def test_a_body_of_the_largest_size_in_chunks_and_after_a_continue(path: Path) -> None:
    content = json.dumps({"a": "b" * (LARGEST_BODY - 9)}).encode()
    assert len(content) == LARGEST_BODY
    chunk = f"{len(content):x}\r\n".encode() + content + b"\r\n0\r\n\r\n"
    head = _head("POST", "/echo", "Transfer-Encoding: chunked")
    status, _, answer = await asyncio.to_thread(_raw, path, head, chunk)
    assert (status, answer) == (
        200, {"got": json.loads(content), "query": "", "method": "POST"},
    )  # fmt: skip
    head = _head("PUT", "/echo", "Content-Length: 2", "Expect: 100-continue")
    status, _, answer = await asyncio.to_thread(_waits_for_continue, path, head)
    assert (status, answer) == (200, {"got": {}, "query": "", "method": "PUT"})


def _waits_for_continue(path: Path, head: bytes) -> tuple[int, dict[str, str], object]:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(10)
        client.connect(str(path))
        client.sendall(head)
        assert client.recv(1000).startswith(b"HTTP/1.1 100 ")
        client.sendall(b"{}")
        response = http.client.HTTPResponse(client)
        response.begin()
        return response.status, {}, json.loads(response.read())


async def test_a_request_that_ends_half_way_is_sent_away(path: Path) -> None:
    head = _head("POST", "/echo", "Content-Length: 10")
    status, _, content = await asyncio.to_thread(_raw, path, head, b"{", end=True)
    assert status == HTTPStatus.BAD_REQUEST
    assert isinstance(content, dict)
    assert str(content["error"]).startswith("not a request: ")


def test_two_routes_cannot_clash() -> None:
    with pytest.raises(ValueError, match="two routes for GET /metrics"):
        Routes([*ROUTES, Route("GET", "/metrics", _echo)])

"""One HTTP/1.1 request and its answer on a stream, then the stream is closed.

h11 knows the protocol; here its bytes are carried. A status socket needs no more of a server.
"""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus

import h11

_LARGEST_REQUEST = 16_384
_READ_BYTES = 4096
_PATIENCE_S = 5.0


@dataclass(frozen=True, slots=True)
class Answer:
    """The body of an answer and what it is."""

    body: str
    content_type: str = "application/json; charset=utf-8"


async def answer_one(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    routes: dict[str, Callable[[], Answer]],
) -> None:
    """Answer one GET of a path of `routes`; a client that is slow or wrong is sent away."""
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=_LARGEST_REQUEST)
    try:
        async with asyncio.timeout(_PATIENCE_S):
            status, answer = await _answered(connection, reader, routes)
            writer.write(_encoded(connection, status, answer))
            await writer.drain()
    except (OSError, TimeoutError, h11.RemoteProtocolError):
        pass
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def _answered(
    connection: h11.Connection,
    reader: asyncio.StreamReader,
    routes: dict[str, Callable[[], Answer]],
) -> tuple[HTTPStatus, Answer]:
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await reader.read(_READ_BYTES))
        elif isinstance(event, h11.Request):
            path = event.target.partition(b"?")[0].decode("latin-1")
            if event.method != b"GET":
                return HTTPStatus.METHOD_NOT_ALLOWED, Answer("only GET\n", "text/plain")
            if path not in routes:
                return HTTPStatus.NOT_FOUND, Answer("no such path\n", "text/plain")
            try:
                return HTTPStatus.OK, routes[path]()
            except Exception as error:  # noqa: BLE001 - the one who asked is told
                return HTTPStatus.INTERNAL_SERVER_ERROR, Answer(f"{error!r}\n", "text/plain")
        else:
            raise h11.RemoteProtocolError("no request")


def _encoded(connection: h11.Connection, status: HTTPStatus, answer: Answer) -> bytes:
    body = answer.body.encode()
    headers = [
        ("Content-Type", answer.content_type),
        ("Content-Length", str(len(body))),
        ("Connection", "close"),
    ]
    parts = (
        connection.send(h11.Response(status_code=status, reason=status.phrase, headers=headers)),
        connection.send(h11.Data(data=body)),
        connection.send(h11.EndOfMessage()),
    )
    return b"".join(part or b"" for part in parts)

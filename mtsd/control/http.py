"""One HTTP/1.1 request and its answer on a stream, which is then closed.

h11 implements the protocol; this module moves the bytes. A control socket needs no more than that.
"""

import asyncio
import contextlib
from http import HTTPStatus

import h11

from mtsd.control.routes import Answer, Request, RequestRefusedError, Routes

LARGEST_BODY = 65_536
_LARGEST_HEAD = 16_384
_READ_BYTES = 4096
_MAX_DISCARDED = 1 << 20
_TIMEOUT_S = 5.0
"""For receiving the request, and again for sending the answer; not for the time between."""


async def answer_one(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, routes: Routes
) -> None:
    """Answer one request by its route; a slow client, or one that is not HTTP, is disconnected."""
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=_LARGEST_HEAD)
    try:
        answer = await _answer(connection, reader, writer, routes)
        async with asyncio.timeout(_TIMEOUT_S):
            writer.write(_encoded(connection, answer))
            await writer.drain()
            await _discard(connection, reader, writer)
    except (OSError, TimeoutError, h11.ProtocolError):
        pass
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def _answer(
    connection: h11.Connection,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    routes: Routes,
) -> Answer:
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            head = await _head(connection, reader)
            path, _, query = head.target.decode("latin-1").partition("?")
            route = routes.find(head.method.decode("ascii"), path)
            body = await _body(connection, reader, writer)
    except RequestRefusedError as refused:
        return refused.answer
    except h11.RemoteProtocolError as error:
        if connection.our_state not in {h11.IDLE, h11.SEND_RESPONSE}:
            raise
        return RequestRefusedError(
            HTTPStatus(error.error_status_hint), f"not a request: {error}"
        ).answer
    try:
        return await route.answer(Request(route.method, path, query, body))
    except RequestRefusedError as refused:
        return refused.answer
    except Exception as error:  # noqa: BLE001 - the client is told
        return RequestRefusedError(HTTPStatus.INTERNAL_SERVER_ERROR, repr(error)).answer


async def _head(connection: h11.Connection, reader: asyncio.StreamReader) -> h11.Request:
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await reader.read(_READ_BYTES))
        elif isinstance(event, h11.Request):
            return event
        else:
            raise h11.RemoteProtocolError("the connection was closed before a request arrived")


async def _body(
    connection: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> bytes:
    body = b""
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            if connection.they_are_waiting_for_100_continue:
                go_on = h11.InformationalResponse(status_code=HTTPStatus.CONTINUE, headers=[])
                writer.write(connection.send(go_on) or b"")
            connection.receive_data(await reader.read(_READ_BYTES))
        elif isinstance(event, h11.Data):
            body += event.data
            if len(body) > LARGEST_BODY:
                raise RequestRefusedError(
                    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                    f"the body is larger than {LARGEST_BODY} bytes",
                )
        else:
            return body


async def _discard(
    connection: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Read the rest of a request that was refused.

    If a socket is closed with unread data, its client loses the answer too.
    """
    if connection.their_state in {h11.DONE, h11.MUST_CLOSE, h11.CLOSED}:
        return
    writer.write_eof()
    left = _MAX_DISCARDED
    while left > 0 and (data := await reader.read(_READ_BYTES)):
        left -= len(data)


def _encoded(connection: h11.Connection, answer: Answer) -> bytes:
    body = answer.body.encode("utf-8", "replace")
    headers = [
        ("Content-Type", answer.content_type),
        ("Content-Length", str(len(body))),
        ("Connection", "close"),
        *answer.headers,
    ]
    status = answer.status
    parts = (
        connection.send(h11.Response(status_code=status, reason=status.phrase, headers=headers)),
        connection.send(h11.Data(data=body)),
        connection.send(h11.EndOfMessage()),
    )
    return b"".join(part or b"" for part in parts)

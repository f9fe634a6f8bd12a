"""The server on `[status] listen`: HTTP over TCP, for whoever can connect.

It is given routes that change nothing; the commands of a daemon are on its Unix socket only.
"""

import asyncio
import errno
from collections.abc import Iterable
from typing import Final

from mtsd.control.http import answer_one
from mtsd.control.routes import Route, Routes
from mtsd.model.errors import NeedsPersonError, system_reason

_MAX_CLIENTS: Final = 32
"""At once: what is more is disconnected, so that no client uses up the process's descriptors."""


class ListenError(NeedsPersonError):
    """The address cannot be listened on."""


def host_and_port(address: str) -> tuple[str, int]:
    """Return the parts of "HOST:PORT"; an IPv6 host stands in brackets."""
    host, _, port = address.rpartition(":")
    return host.removeprefix("[").removesuffix("]"), int(port)


class Listener:
    """Answers `routes` on `address`, HOST:PORT. Raises ValueError if two of them clash."""

    def __init__(self, address: str, routes: Iterable[Route]) -> None:
        self._address = address
        self._routes = Routes(routes)
        self._server: asyncio.Server | None = None
        self._clients = 0

    async def start(self) -> None:
        """Start answering. Raises ListenError."""
        host, port = host_and_port(self._address)
        try:
            self._server = await asyncio.start_server(self._answer, host, port)
        except OSError as error:
            reason = system_reason(error)
            if error.errno == errno.EADDRINUSE:
                reason += ": if another daemon is there, give this one an address of its own"
            raise ListenError(
                f"cannot listen on {self._address} ([status] listen): {reason}"
            ) from error

    def stop(self) -> None:
        """Stop answering; does nothing if it has not been started."""
        if self._server is not None:
            self._server.close()
            self._server = None

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._clients >= _MAX_CLIENTS:
            writer.close()
            return
        self._clients += 1
        try:
            await answer_one(reader, writer, self._routes)
        finally:
            self._clients -= 1

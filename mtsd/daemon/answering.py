"""The servers of a daemon: its status socket, and the address that monitoring asks."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from mtsd.config.settings import StatusSettings
from mtsd.control.listener import Listener
from mtsd.control.routes import Route
from mtsd.control.server import ControlServer


@asynccontextmanager
async def answering(
    settings: StatusSettings, commands: Sequence[Route], probes: Sequence[Route]
) -> AsyncIterator[None]:
    """Answer as long as the context lasts: over TCP only `probes`, which change nothing.

    Raises NeedsPersonError if a server cannot be started.
    """
    async with AsyncExitStack() as running:
        if settings.socket is not None:
            server = ControlServer(settings.socket, [*commands, *probes])
            running.push_async_callback(server.stop)
            await server.start()
        if settings.listen:
            listener = Listener(settings.listen, probes)
            running.callback(listener.stop)
            await listener.start()
        yield

"""What a switch asks of a daemon: `POST /stop`, and `POST /wake` of one that stands by.

The answer comes at once. A daemon has ended when nothing answers on the socket any more.
"""

import asyncio
from collections.abc import Callable
from http import HTTPStatus

from mtsd.control.routes import Answer, Request, RequestRefusedError, Route


def stop_route(stop: Callable[[], None], stops: Callable[[], bool]) -> Route:
    """Return what stops it gracefully, as SIGTERM does.

    `stops` tells whether it stops already: a second `stop` would hurry it.
    """

    async def answer(_: Request) -> Answer:
        if stops():
            raise RequestRefusedError(HTTPStatus.CONFLICT, "the daemon is stopping")
        stop()
        return Answer.of({"stopping": True})

    return Route("POST", "/stop", answer)


def wake_route(woken: asyncio.Event) -> Route:
    """Return what lets one that stands by look at once whether it may begin."""

    async def answer(_: Request) -> Answer:
        woken.set()
        return Answer.of({"woken": True})

    return Route("POST", "/wake", answer)

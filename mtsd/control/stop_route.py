"""`POST /stop`: stop gracefully, as SIGTERM does.

The answer comes at once; the daemon has ended when nothing answers on the socket any more.
"""

from collections.abc import Callable
from http import HTTPStatus

from mtsd.control.routes import Answer, Request, RequestRefusedError, Route


def stop_route(stop: Callable[[], None], stops: Callable[[], bool]) -> Route:
    """Return the route; `stops` tells whether it stops already: a second `stop` would hurry it."""

    async def answer(_: Request) -> Answer:
        if stops():
            raise RequestRefusedError(HTTPStatus.CONFLICT, "the daemon is stopping")
        stop()
        return Answer.of({"stopping": True})

    return Route("POST", "/stop", answer)

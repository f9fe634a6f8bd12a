"""`GET /status`: what `mtsd status` shows."""

from collections.abc import Callable

from mtsd.control.routes import Answer, Request, Route
from mtsd.control.status import Status


def status_route(provider: Callable[[], Status]) -> Route:
    """Return the route that answers with the current result of `provider`."""

    async def answer(_: Request) -> Answer:
        return Answer(provider().to_json())

    return Route("GET", "/status", answer)

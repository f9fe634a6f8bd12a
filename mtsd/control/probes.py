"""`GET /metrics`, `/healthz` and `/readyz`: what monitoring asks, and all that TCP answers.

What they say fits anybody who can connect: no text of an error, and no address unless it is asked
for with the names of mysqld_exporter.
"""

from collections.abc import Callable
from http import HTTPStatus
from typing import Final

import structlog

from mtsd.control.routes import Answer, Request, RequestRefusedError, Route
from mtsd.control.status import Status

_PLAIN: Final = "text/plain; charset=utf-8"

log = structlog.get_logger(__name__)


def not_ready(status: Status) -> str:
    """Return why a replica does not apply what its source has, in words; "" if it does."""
    if status.state not in {"running", "delayed"}:
        return status.state
    connections = status.connections
    if not connections.source.connected:
        return "not connected to the source"
    return "" if connections.target.connected else "not connected to the target"


def _worded(text: Callable[[], str]) -> str:
    """Return what it returns.

    Raises RequestRefusedError: what an error says may be for few eyes.
    """
    try:
        return text()
    except Exception:
        log.exception("the status cannot be told")
        message = "the status cannot be told: the log of mtsd says why"
        raise RequestRefusedError(HTTPStatus.INTERNAL_SERVER_ERROR, message) from None


def probes(provider: Callable[[], Status], *, exporter_names: bool = False) -> tuple[Route, ...]:
    """Return the routes; none of them changes anything. `exporter_names`: see `metrics_text`."""

    async def metrics(_: Request) -> Answer:
        # With the Prometheus client come some forty modules, a tenth of the daemon's start.
        from mtsd.control.exposition import CONTENT_TYPE, metrics_text  # noqa: PLC0415

        text = _worded(lambda: metrics_text(provider(), exporter_names=exporter_names))
        return Answer(text, content_type=CONTENT_TYPE)

    async def healthz(_: Request) -> Answer:
        # Whoever is asked answers: that the event loop runs is all there is to know.
        return Answer("ok\n", content_type=_PLAIN)

    async def readyz(_: Request) -> Answer:
        why = _worded(lambda: not_ready(provider()))
        if why:
            return Answer(f"{why}\n", HTTPStatus.SERVICE_UNAVAILABLE, _PLAIN)
        return Answer("ok\n", content_type=_PLAIN)

    return (
        Route("GET", "/metrics", metrics),
        Route("GET", "/healthz", healthz),
        Route("GET", "/readyz", readyz),
    )

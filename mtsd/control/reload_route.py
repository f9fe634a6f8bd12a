"""`POST /reload`: reload the configuration, as SIGHUP does, and return the outcome."""

from collections.abc import Callable
from http import HTTPStatus

from mtsd.config import ConfigurationError
from mtsd.config.reloading import Reloaded
from mtsd.control.routes import Answer, Request, RequestRefusedError, Route


class NotNowError(Exception):
    """The daemon is not in a state to do what was requested."""


def reload_route(reload: Callable[[], Reloaded]) -> Route:
    """Return the route; `reload` may raise ConfigurationError and NotNowError."""

    async def answer(_: Request) -> Answer:
        try:
            change = reload()
        except ConfigurationError as error:
            problems = [str(problem) for problem in error.problems]
            raise RequestRefusedError(
                HTTPStatus.UNPROCESSABLE_ENTITY,
                f"configuration refused, nothing has changed: {'; '.join(problems)}",
                more={"problems": problems},
            ) from error
        except NotNowError as error:
            raise RequestRefusedError(HTTPStatus.CONFLICT, str(error)) from error
        return Answer.of(
            {
                "applied": change.applied,
                "for_next_connection": change.for_next_connection,
                "need_restart": change.need_restart,
            }
        )

    return Route("POST", "/reload", answer)

"""`POST /distribute`: change the distribution of databases over workers, or freeze a worker.

The body is one change, as `Change` describes it; the answer is the distribution that results.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from http import HTTPStatus
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from mtsd.control.reload_route import NotNowError
from mtsd.control.routes import Answer, Request, RequestRefusedError, Route
from mtsd.control.status import DistributionStatus
from mtsd.model.distribution import NotPossibleError

Verb = Literal["bind", "unbind", "pin", "unpin", "weigh", "freeze", "unfreeze"]


@dataclass(frozen=True, slots=True)
class Change:
    """What a person wants: `databases` for all but freeze and unfreeze.

    `worker` is the Id, from 1, for pin, freeze and unfreeze; `weight` is for weigh.
    """

    do: Verb
    databases: tuple[str, ...] = ()
    worker: int = 0
    weight: int = 0

    @property
    def given(self) -> dict[str, object]:
        """What was given, for the log."""
        return {name: value for name, value in asdict(self).items() if value}


@cache
def _of_change() -> TypeAdapter[Change]:
    return TypeAdapter(Change)


def distribute_route(distribute: Callable[[Change], DistributionStatus]) -> Route:
    """Return the route; `distribute` may raise NotPossibleError and NotNowError."""

    async def answer(request: Request) -> Answer:
        try:
            change = _of_change().validate_python(request.object())
        except ValidationError as error:
            wrong = "; ".join(
                f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()
            )
            raise RequestRefusedError(HTTPStatus.BAD_REQUEST, f"not a change: {wrong}") from error
        try:
            result = distribute(change)
        except NotPossibleError as error:
            raise RequestRefusedError(HTTPStatus.UNPROCESSABLE_ENTITY, str(error)) from error
        except NotNowError as error:
            raise RequestRefusedError(HTTPStatus.CONFLICT, str(error)) from error
        return Answer.of(asdict(result))

    return Route("POST", "/distribute", answer)

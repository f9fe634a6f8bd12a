"""Answers that are well-formed and not what was asked, as a hostile or broken server gives them."""

import functools
from collections.abc import Callable, Coroutine
from typing import Any, Final, ParamSpec, TypeVar

from mtsd.model.errors import ConnectionLostError

NOT_UNDERSTOOD: Final = (LookupError, ValueError, TypeError, AttributeError, ArithmeticError)
"""What parsing rows raises on a NULL, a text for a number, or a row or column too many or few."""

P = ParamSpec("P")
T = TypeVar("T")
Asking = Callable[P, Coroutine[Any, Any, T]]


def understood(role: str) -> Callable[[Asking[P, T]], Asking[P, T]]:
    """Let a coroutine function that asks the `role` and parses raise ConnectionLostError for these.

    Connecting again may help, and `role` is the server to look at. Only for functions that do
    little else: a mistake of mtsd inside would look the same.
    """

    def decorate(asking: Asking[P, T]) -> Asking[P, T]:
        @functools.wraps(asking)
        async def asked(*args: P.args, **kwargs: P.kwargs) -> T:
            try:
                return await asking(*args, **kwargs)
            except NOT_UNDERSTOOD as error:
                what = f"{asking.__name__.strip('_')}: {type(error).__name__}"
                raise ConnectionLostError(
                    role, f"it has answered something else than it was asked ({what})"
                ) from error

        return asked

    return decorate

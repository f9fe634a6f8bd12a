"""What a daemon answers on its socket: a table of routes, each a method and a path.

A command of a daemon is one `Route` in the table; the transport knows none of them. Every answer is
a JSON object unless the route says otherwise; a refusal is {"error": "…"}.
"""

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus

JSON = "application/json; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Request:
    """A client's request: `path` without the query, which is the text after the question mark."""

    method: str
    path: str
    query: str = ""
    body: bytes = b""

    def object(self) -> dict[str, object]:
        """Return the JSON object of the body; empty if there is no body.

        Raises RequestRefusedError if it is anything else.
        """
        if not self.body:
            return {}
        try:
            document = json.loads(self.body)
        except ValueError as error:
            raise RequestRefusedError(
                HTTPStatus.BAD_REQUEST, f"the body is not JSON: {error}"
            ) from None
        if not isinstance(document, dict):
            raise RequestRefusedError(HTTPStatus.BAD_REQUEST, "the body is not a JSON object")
        return document


@dataclass(frozen=True, slots=True)
class Answer:
    """The body of an answer and its content type."""

    body: str
    status: HTTPStatus = HTTPStatus.OK
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, content: Mapping[str, object], status: HTTPStatus = HTTPStatus.OK) -> "Answer":
        """Return the answer for a JSON object."""
        return cls(json.dumps(content, ensure_ascii=False), status)


class RequestRefusedError(Exception):
    """A request is refused with an HTTP status; `more` is added to the answer's object."""

    def __init__(
        self,
        status: HTTPStatus,
        message: str,
        *,
        more: Mapping[str, object] | None = None,
        headers: tuple[tuple[str, str], ...] = (),
    ) -> None:
        super().__init__(message)
        self.status = status
        self.more = more or {}
        self.headers = headers

    @property
    def answer(self) -> Answer:
        """The answer for the client."""
        content = json.dumps({"error": str(self), **self.more}, ensure_ascii=False)
        return Answer(content, self.status, headers=self.headers)


@dataclass(frozen=True, slots=True)
class Route:
    """What answers one method on one path; it may raise RequestRefusedError."""

    method: str
    path: str
    answer: Callable[[Request], Awaitable[Answer]]


class Routes:
    """The table. Raises ValueError if two routes have the same method and path."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._by_path: dict[str, dict[str, Route]] = {}
        for route in routes:
            methods = self._by_path.setdefault(route.path, {})
            if methods.setdefault(route.method, route) is not route:
                raise ValueError(f"two routes for {route.method} {route.path}")

    def find(self, method: str, path: str) -> Route:
        """Return the route of a request. Raises RequestRefusedError if there is none."""
        methods = self._by_path.get(path)
        if methods is None:
            known = ", ".join(sorted(self._by_path))
            raise RequestRefusedError(
                HTTPStatus.NOT_FOUND, f"there is nothing at {path}, only: {known}"
            )
        route = methods.get(method)
        if route is None:
            allowed = ", ".join(sorted(methods))
            raise RequestRefusedError(
                HTTPStatus.METHOD_NOT_ALLOWED,
                f"{path} takes {allowed}, not {method}",
                headers=(("Allow", allowed),),
            )
        return route

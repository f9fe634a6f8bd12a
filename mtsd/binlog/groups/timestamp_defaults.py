"""Under which explicit_defaults_for_timestamp a MySQL source ran what does not say it.

Only definitions of TIMESTAMP columns log it (status variable 16 of a Query event). Under OFF, NULL
stores the current time in a `TIMESTAMP NOT NULL` column; under ON it is an error, or the zero date
outside of strict mode. So the value matters to statements that change rows too.
"""

from dataclasses import replace
from typing import Final

from mtsd.model.session import SessionContext
from mtsd.model.step import QueryEvent

_MAX_SESSIONS: Final = 65536
_MAX_CONTEXTS: Final = 1024


class TimestampDefaults:
    """What the sessions of a source are known to have, as its statements are read in order.

    A session has what its last definition said, otherwise `usual`, the source's global value.
    None: every statement says it, or nothing is known.
    """

    __slots__ = ("_unusual", "usual")

    def __init__(self, usual: bool | None) -> None:
        self.usual: Final = usual
        self._unusual: dict[int, None] = {}
        """The threads whose sessions have the other value, the one of longest ago first."""

    def forget_sessions(self) -> None:
        """Forget the sessions: the source was restarted, and numbers its threads anew."""
        self._unusual.clear()

    def learn(self, query: QueryEvent) -> bool:
        """Note what a statement says; return whether its session had another value before."""
        logged = query.context.explicit_defaults_for_timestamp
        if self.usual is None or logged is None:
            return False
        was_unusual = query.thread_id in self._unusual
        self._unusual.pop(query.thread_id, None)
        if logged is not self.usual:
            if len(self._unusual) >= _MAX_SESSIONS:
                del self._unusual[next(iter(self._unusual))]
            self._unusual[query.thread_id] = None
        return was_unusual is (logged is self.usual)

    def completed(self, query: QueryEvent) -> QueryEvent:
        """Return the statement with the value of its session, if it does not say one."""
        if self.usual is None or query.context.explicit_defaults_for_timestamp is not None:
            return query
        value = self.usual is not (query.thread_id in self._unusual)
        return under(query, value)


def under(query: QueryEvent, value: bool | None) -> QueryEvent:
    """Return the statement as one that ran with this explicit_defaults_for_timestamp."""
    return query.in_session(_with(query.context, value))


_remembered: dict[tuple[int, bool | None], tuple[SessionContext, SessionContext]] = {}
"""By the identity of a context, which is kept beside the result: to hash one takes longer."""


def _with(context: SessionContext, value: bool | None) -> SessionContext:
    remembered = _remembered.get((id(context), value))
    if remembered is None:
        if len(_remembered) >= _MAX_CONTEXTS:
            _remembered.clear()
        remembered = context, replace(context, explicit_defaults_for_timestamp=value)
        _remembered[id(context), value] = remembered
    return remembered[1]

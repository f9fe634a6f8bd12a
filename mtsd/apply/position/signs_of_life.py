"""Whether the daemon that holds a channel is alive, judging by its sessions; without I/O.

A server continues the statements of a client that has died, and the session ends when the server
next waits for that client. So a session that was seen waiting (command Sleep) and has begun a
statement after that has a living client. Nothing else proves it: a statement that ends and the next
one in the same packet look like work too. A session that is stuck in a statement proves nothing
either way: it has to be waited for.
"""

from collections.abc import Iterable
from dataclasses import dataclass

_PROOFS = 2
"""One may be a step of the server's clock, or data of a dead client delayed by a network."""
_SLEEP = "Sleep"


@dataclass(frozen=True, slots=True)
class Session:
    """A row of SHOW PROCESSLIST.

    `seconds`: how long ago its statement began, or its last one if it sleeps; whole seconds.
    """

    id: int
    command: str
    seconds: int
    state: str
    statement: str
    user: str = ""
    host: str = ""

    @property
    def sleeps(self) -> bool:
        """Whether the server is waiting for its client."""
        return self.command == _SLEEP


class SignsOfLife:
    """Collects observations of one channel's sessions."""

    def __init__(self) -> None:
        self._seen_asleep: dict[int, float] = {}
        """When a session was first seen asleep since it last provided proof."""
        self._proofs = 0

    @property
    def alive(self) -> bool:
        """Whether a client is known to be alive."""
        return self._proofs >= _PROOFS

    def observe(self, sessions: Iterable[Session], before: float, after: float) -> None:
        """Process an observation made between two moments of a monotonic clock, in seconds."""
        proven = False
        asleep: dict[int, float] = {}
        for session in sessions:
            # The server truncates fractions of a second.
            began_at_the_earliest = before - session.seconds - 1
            since = self._seen_asleep.get(session.id)
            if since is not None and began_at_the_earliest > since:
                proven = True
                since = None
            if since is None and session.sleeps:
                # After a step of its clock a server may report a time in the future.
                since = max(after, after - session.seconds)
            if since is not None:
                asleep[session.id] = since
        # Another session holding a lock may belong to another daemon.
        self._seen_asleep = asleep
        self._proofs += proven

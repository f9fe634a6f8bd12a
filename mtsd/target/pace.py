"""How long the transactions of one packet take, learned from the packets before it.

Each answer of the server would wake the daemon, on the cores that the server works on: while
several transactions are on their way in a packet, the connection is left alone until most of them
should be done.
"""

_SHARE = 0.8
"""Of the time expected: what is left is waited for, so that a packet that was faster is seen."""
_LONGEST_S = 0.02
"""Commits are noticed so much later, by what waits for them too."""
_WEIGHT = 0.5


class Pace:
    """An estimate that follows a server that gets faster or slower, in seconds."""

    __slots__ = ("_each",)

    def __init__(self) -> None:
        self._each = 0.0

    def rest(self, transactions: int) -> float:
        """Return how long to leave a packet alone that the server has just begun with."""
        return min(_SHARE * self._each * (transactions - 1), _LONGEST_S)

    def learn(self, transactions: int, seconds: float) -> None:
        """Take in how long a packet took."""
        self._each += _WEIGHT * (seconds / transactions - self._each)

"""How long the transactions of one packet take, learned from earlier packets.

Each of the server's answers would wake the daemon, on the cores that the server is using: while
several transactions of a packet are in flight, the connection is left alone until most of them
should be done.
"""

_SHARE = 0.8
"""Of the expected time: the rest is spent waiting, so that a faster packet is noticed."""
_LONGEST_S = 0.02
"""The maximum delay in noticing a commit, including for whatever waits for it."""
_WEIGHT = 0.5


class Pace:
    """An estimate in seconds that follows a server as it gets faster or slower."""

    __slots__ = ("_each",)

    def __init__(self) -> None:
        self._each = 0.0

    def rest(self, transactions: int) -> float:
        """Return how long to leave alone a packet that the server has just begun."""
        return min(_SHARE * self._each * (transactions - 1), _LONGEST_S)

    def learn(self, transactions: int, seconds: float) -> None:
        """Update the estimate with the time that a packet took."""
        self._each += _WEIGHT * (seconds / transactions - self._each)

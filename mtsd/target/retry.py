"""Which errors of the target pass by themselves."""

_TRANSIENT = frozenset({1205, 1213})
"""Lock wait timeout, deadlock: the only ones that the servers retry too."""
_LONGEST_PAUSE = 5.0


def worth_a_retry(number: int) -> bool:
    """Tell whether the same group may go through at the next attempt."""
    return number in _TRANSIENT


def pause_before(attempt: int) -> float:
    """Return the seconds to wait before attempt `attempt`, the first retry being 1."""
    return min(0.05 * 2.0 ** (attempt - 1), _LONGEST_PAUSE)

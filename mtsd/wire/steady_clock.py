"""A clock that nobody sets, and that goes on while the machine sleeps."""

from time import CLOCK_BOOTTIME, clock_gettime


def steady() -> float:
    """Return the seconds since the machine was started."""
    return clock_gettime(CLOCK_BOOTTIME)

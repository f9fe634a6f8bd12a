"""What is bound, pinned, weighed and frozen by hand, for people."""

from collections.abc import Iterator

from mtsd.control.status import DistributionStatus


def described(distribution: DistributionStatus) -> list[tuple[str, str]]:
    """Return what is bound, pinned, weighed and frozen, as names and values of lines."""
    return [
        (name, f"{value}{_held(distribution, key)}")
        for key, name, value in _parts(distribution)
        if value
    ]


def _parts(distribution: DistributionStatus) -> Iterator[tuple[str, str, str]]:
    yield "bind", "bound", ", ".join("+".join(each) for each in distribution.bind)
    pinned = (f"{name} to worker {worker}" for name, worker in distribution.pin)
    yield "pin", "pinned", ", ".join(pinned)
    weighed = (f"{name} as {weight}" for name, weight in distribution.weigh)
    yield "weigh", "weighed", ", ".join(weighed)
    frozen = (f"worker {worker}" for worker in distribution.frozen)
    yield "frozen", "frozen", ", ".join(frozen)


def _held(distribution: DistributionStatus, key: str) -> str:
    return " (until the daemon ends)" if key in distribution.until_the_daemon_ends else ""

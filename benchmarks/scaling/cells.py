"""What the table of throughput consists of: loads, and the ways to apply each of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

ANY_POLICY: Final = "any"
"""Without workers there is one queue, whatever the policy."""


@dataclass(frozen=True, slots=True, order=True)
class Backlog:
    """What a source has to be applied: small transactions over so many databases."""

    engine: str
    format: str
    databases: int


@dataclass(frozen=True, slots=True, order=True)
class Cell:
    """One way to apply a backlog, on so many processors."""

    backlog: Backlog
    cores: int
    policy: str
    workers: int


@dataclass(frozen=True, slots=True)
class Measured:
    """What was found for a cell: transactions of the source a second, and CPU seconds for each.

    `others` is the share of the machine's processors that other processes have used.
    """

    cell: Cell
    rate: float
    daemon_cpu: float
    target_cpu: float
    others: float


def counted(number: int, what: str) -> str:
    """Return a number of things, as "4 databases"."""
    return f"{number} {what}{'s' if number > 1 else ''}"


def cells(
    backlog: Backlog, cores: Sequence[int], policies: Sequence[str], workers: Sequence[int]
) -> Iterator[Cell]:
    """Yield all ways to apply a backlog."""
    for count in cores:
        for number in workers:
            for policy in policies if number else [ANY_POLICY]:
                yield Cell(backlog, count, policy, number)


def efficiency(one: Measured, found: Sequence[Measured]) -> float | None:
    """Return the rate for each worker, relative to a single worker of the same policy.

    None if that was not measured, or without workers.
    """
    cell = one.cell
    for single in found:
        other = single.cell
        same = (other.backlog, other.cores, other.policy) == (
            cell.backlog, cell.cores, cell.policy,
        )  # fmt: skip
        if same and other.workers == 1 and single.rate and cell.workers:
            return one.rate / (cell.workers * single.rate)
    return None

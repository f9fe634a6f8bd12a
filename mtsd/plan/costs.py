"""What each stage of replicating a transaction costs, as needed by a simulation."""

from dataclasses import dataclass
from typing import Final

COLD_GROUPS: Final = 32
COLD_SHARE: Final = 0.5
"""The first groups of a transaction cost this much more, in the daemon and in the target, whose
caches other work has filled; measured with batches of 8, 32 and 512."""


def warm(groups: float) -> float:
    """Return how many groups, without such an addition, cost as much as a transaction of these."""
    return groups + COLD_SHARE * min(groups, COLD_GROUPS)


@dataclass(frozen=True, slots=True)
class Costs:
    """Costs in processor seconds unless stated otherwise.

    `read_group` is what the daemon spends on a group, from the socket to a worker's statement, and
    `send` what it spends in addition on each transaction of the target. `source_group` is what the
    source spends on sending a group. `transaction` is the target's fixed cost of a transaction;
    `group` and `row` are the costs of its contents. `sync` is how long a sync of the target's logs
    takes, which all transactions waiting for it share; each of their groups makes it longer by
    `written`. `serial` is the part of a transaction that keeps others from committing. `delay` is
    how long a transaction waits in addition while nothing is busy with it; and `definition` is how
    long a DDL statement takes.
    `background` is how many threads of other programs always want a processor of the target's
    machine. `contention` is how much longer everything takes while all other processors are busy,
    because they share caches or are threads of one core.
    """

    read_group: float
    send: float
    source_group: float
    transaction: float
    group: float
    row: float
    sync: float
    written: float = 0.0
    serial: float = 0.0
    delay: float = 0.0
    definition: float = 0.02
    background: int = 0
    contention: float = 0.0


@dataclass(frozen=True, slots=True)
class Machines:
    """The processors of the daemon, and those of the target; None if they are the same."""

    daemon: int
    target: int | None = None
    source_is_here: bool = False

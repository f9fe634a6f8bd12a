"""What each stage of replicating a transaction costs, as needed by a simulation."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Costs:
    """Costs in processor seconds unless stated otherwise.

    `read_group` is what the daemon spends on a group, from the socket to a worker's statement, and
    `send` what it spends in addition on each transaction of the target. `source_group` is what the
    source spends on sending a group. `transaction` is the target's fixed cost of a transaction;
    `group` and `row` are the costs of its contents. `sync` is how long a sync of the target's logs
    takes, which all transactions waiting for it share; `delay` is how long a transaction waits in
    addition while nothing is busy with it; and `definition` is how long a DDL statement takes.
    `background` is how many threads of other programs always want a processor of the target's
    machine.
    """

    read_group: float
    send: float
    source_group: float
    transaction: float
    group: float
    row: float
    sync: float
    delay: float = 0.0
    definition: float = 0.02
    background: int = 0


@dataclass(frozen=True, slots=True)
class Machines:
    """The processors of the daemon, and those of the target; None if they are the same."""

    daemon: int
    target: int | None = None
    source_is_here: bool = False

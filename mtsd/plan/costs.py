"""What the stages of a transaction's way cost, as far as a simulation needs to know."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Costs:
    """Seconds of a processor unless stated otherwise.

    `read_group` is what the daemon spends on a group, from the socket to a worker's statement, and
    `send` what it spends on a transaction of the target besides. `source_group` is what the source
    spends on sending a group. `transaction` is what the target spends on a transaction however
    small, `group` and `row` on what is in it. `sync` is how long a sync of the target's logs takes,
    which the transactions that wait for it share, `delay` how long a transaction waits besides,
    without keeping anything busy, and `definition` how long a DDL statement takes. `background` is
    how many threads of other programs always want a processor of the target's machine.
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
    """Processors: those of the daemon, and those of the target; None where they are the same."""

    daemon: int
    target: int | None = None
    source_is_here: bool = False

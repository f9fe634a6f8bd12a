"""What a restart does with a transaction that was split into branches (method P3 of WL#4648).

All branches are prepared before the decision to commit is recorded, and that is recorded before the
first of them commits. So without a decision nothing has been committed, and everything is rolled
back; with it, every branch is committed already or can be.
"""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settlement:
    """What is to be done with the branches, by number from 0; with `lost` ones, nothing is.

    `applied`: the transaction counts as applied then. `lost` are those that should be prepared, or
    should not have been committed, and nobody knows why.
    """

    commit: tuple[int, ...]
    roll_back: tuple[int, ...]
    applied: bool
    lost: tuple[int, ...] = ()


def settle(
    branches: int, *, decided: bool, prepared: AbstractSet[int], committed: AbstractSet[int]
) -> Settlement:
    """Decide by what was recorded and by what the target shows, once nothing else changes that."""
    if not decided:
        return Settlement((), tuple(sorted(prepared)), applied=False, lost=tuple(sorted(committed)))
    lost = tuple(sorted(set(range(branches)) - prepared - committed))
    return Settlement(tuple(sorted(prepared)), (), applied=True, lost=lost)

"""Small worlds, gone through whole on the compiled modules, and a sample of them on the pure ones.

Both are made of one source, and each run of the suite goes through the compiled ones
(`tests/packaging/test_compiled.py`). The sample is the same each time, and has every kind of item
at every place that the whole has it at.
"""

from collections.abc import Callable, Hashable, Iterable
from random import Random
from typing import Final, TypeVar

from mtsd.model.build import COMPILED

ONE_IN: Final = 8
"""How many worlds there are for one of the sample."""

World = TypeVar("World")


def some(
    worlds: Iterable[World],
    kinds: Callable[[World], Iterable[Hashable]] = enumerate,  # type: ignore[assignment]
    *,
    whole: bool = COMPILED,
) -> list[World]:
    """Return the worlds to go through, in their order.

    `kinds` says what a world has that the sample has to have as well; as it is, each of its items
    with its place.
    """
    every = list(worlds)
    if whole:
        return every
    order = list(range(len(every)))
    Random(len(every)).shuffle(order)
    chosen: set[int] = set()
    met: set[Hashable] = set()
    for number, at in enumerate(order):
        new = set(kinds(every[at])) - met
        if new or number * ONE_IN < len(every):
            chosen.add(at)
            met |= new
    return [every[at] for at in sorted(chosen)]

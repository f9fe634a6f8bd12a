"""Small worlds: all of them on the compiled modules, a sample of them on the pure ones.

Both are made of one source, and each run of the suite goes through both
(`tests/packaging/test_compiled.py`); the compiled ones are quicker. In the long form of the suite
the pure ones go through all worlds too. A sample is the same each time, and has every kind of item
at every place that the whole has it at.
"""

import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from random import Random
from typing import Final, TypeVar

from mtsd.model.build import COMPILED

WHOLE: Final = "WHOLE_WORLDS" in os.environ
"""`scripts/test --long` sets it."""
ONE_IN: Final = 1 if WHOLE or COMPILED else 12
"""How many worlds there are for one of the sample."""

World = TypeVar("World")
Item = TypeVar("Item", bound=Hashable)


def leading(cases: Sequence[World], count: int, *, whole: bool = WHOLE or COMPILED) -> list[World]:
    """Return the cases of a test that each are many worlds; of the pure modules the first ones."""
    return list(cases if whole else cases[:count])


def distinct(
    kinds: Sequence[Item], length: int, mirror: Mapping[Item, Item]
) -> Iterator[tuple[Item, ...]]:
    """Yield the streams of a length that differ by more than names.

    `mirror` says what an item is with the names exchanged: of "a b a" and "b a b" one is enough.
    A stream with an item that is not in it has no mirror image.
    """
    place = kinds.index
    for items in product(kinds, repeat=length):
        mirrored = [mirror[item] for item in items if item in mirror]
        if len(mirrored) < length or [*map(place, items)] <= [*map(place, mirrored)]:
            yield items


def some(
    worlds: Iterable[World],
    kinds: Callable[[World], Iterable[Hashable]] = enumerate,  # type: ignore[assignment]
    *,
    one_in: int = ONE_IN,
) -> list[World]:
    """Return the worlds to go through, in their order.

    `kinds` says what a world has that the sample has to have as well; as it is, each of its items
    with its place.
    """
    every = list(worlds)
    order = list(range(len(every)))
    Random(len(every)).shuffle(order)
    chosen: set[int] = set()
    met: set[Hashable] = set()
    for number, at in enumerate(order):
        new = set(kinds(every[at])) - met
        if new or number * one_in < len(every):
            chosen.add(at)
            met |= new
    return [every[at] for at in sorted(chosen)]

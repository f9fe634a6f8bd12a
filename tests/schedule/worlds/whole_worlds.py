"""Small worlds, gone through whole on the compiled modules, and a sample of them on the pure ones.

Both are made of one source, and each run of the suite goes through the compiled ones
(`tests/packaging/test_compiled.py`). The sample is the same each time, and has every kind of item
at every place that the whole has it at.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from random import Random
from typing import Final, TypeVar

from mtsd.model.build import COMPILED

ONE_IN: Final = 8
"""How many worlds there are for one of the sample."""

World = TypeVar("World")
Item = TypeVar("Item", bound=Hashable)


def leading(cases: Sequence[World], count: int, *, whole: bool = COMPILED) -> list[World]:
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

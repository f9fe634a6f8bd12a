"""Streams whose groups have the times that a source gives them."""

from collections.abc import Iterator, Sequence
from itertools import product

from mtsd.model.group import GroupKind
from tests.schedule.worlds.streams import Marker, Shape

NEW_FILE = Marker(new_file=True)


def timed(last_committed: int, sequence_number: int, kind: GroupKind = GroupKind.ROWS) -> Shape:
    return Shape(("a",), kind=kind, clock=(last_committed, sequence_number))


def clocks(length: int) -> Iterator[tuple[Shape, ...]]:
    """Yield every time that a source may give to some groups in a file, and no time to some."""
    yield from product(
        *(
            [timed(0, 0), *[timed(parent, number) for parent in range(number)]]
            for number in range(1, length + 1)
        )
    )


def name_of_times(items: Sequence[Shape | Marker]) -> str:
    return " ".join(
        "rotate" if isinstance(item, Marker) else "{}-{}".format(*item.clock) for item in items
    )

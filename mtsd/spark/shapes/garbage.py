"""How often Python's cyclic garbage collector runs in a process that reads transactions."""

import gc
from typing import Final

_NEW_OBJECTS: Final = 10_000


def collect_seldom() -> None:
    """Make the cyclic garbage collector of this process run less often than by default.

    Thousands of transactions are kept until they are decoded together, and their objects form no
    cycles. With Python's default threshold, scanning them took a third of the CPU time of a read.
    """
    first, *others = gc.get_threshold()
    if 0 < first < _NEW_OBJECTS:
        gc.set_threshold(_NEW_OBJECTS, *others)

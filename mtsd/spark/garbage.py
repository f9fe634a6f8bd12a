"""How often Python looks for cycles of garbage in a process that reads transactions."""

import gc
from typing import Final

_NEW_OBJECTS: Final = 10_000


def collect_seldom() -> None:
    """Look for cycles after more new objects than by default, in this process from now on.

    Thousands of transactions are kept until they are decoded at once, and none of their objects is
    in a cycle: with Python's default, looking through them was a third of the CPU of a read.
    """
    first, *others = gc.get_threshold()
    if 0 < first < _NEW_OBJECTS:
        gc.set_threshold(_NEW_OBJECTS, *others)

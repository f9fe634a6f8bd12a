"""Loads that run on a source while a test does something to the replica."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

from tests.load.mixed import Mix, MixedLoad
from tests.servers.pair import Pair

MIX = Mix(statement_format=True, create_select=True, over_max=False)


@contextmanager
def live_load(pair: Pair, seed: int, rate: float, mix: Mix = MIX) -> Iterator[MixedLoad]:
    """Run a mixed load on the source for the time of the block."""
    load = MixedLoad(pair.source, seed=seed, databases=2, mix=mix)
    load.prepare()
    stopping = Event()
    thread = Thread(target=lambda: load.run(until=stopping, rate=rate))
    thread.start()
    try:
        yield load
    finally:
        stopping.set()
        thread.join()

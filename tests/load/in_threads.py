"""Sessions of a load, each in a thread of its own, for as long as a test does something else."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import Event, Thread


@contextmanager
def in_threads(works: Iterable[Callable[[Event], object]]) -> Iterator[None]:
    """Run these, each until the event that it is given is set; raise the first error of one."""
    stopping = Event()
    failed: list[BaseException] = []

    def run(work: Callable[[Event], object]) -> None:
        try:
            work(stopping)
        except BaseException as error:
            failed.append(error)
            raise

    threads = [Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stopping.set()
        for thread in threads:
            thread.join()
    if failed:
        raise failed[0]

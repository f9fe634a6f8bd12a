"""One transaction that is larger than any memory it should take."""

from benchmarks import backlog, servers
from benchmarks.backlog import Pair
from tests.load import small


def run(size: int, workers: int, *, native_first: bool) -> Pair:
    """Let both replicas apply one transaction of about `size` bytes of binlog, durably."""
    with servers.source() as source:
        backlog.prepare(source, 1)
        small.large(source, size)
        return backlog.pair(source, 1, 1, workers, durable=True, native_first=native_first)

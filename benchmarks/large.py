"""One transaction that is larger than any memory it should take."""

from benchmarks import backlog, servers
from benchmarks.backlog import Applied
from tests.load import small


def run(size: int, workers: int) -> list[Applied]:
    """Let both replicas apply one transaction of about `size` bytes of binlog, durably."""
    with servers.source() as source:
        backlog.prepare(source, 1)
        small.large(source, size)
        return [
            backlog.native(source, 1, 1, workers, durable=True),
            backlog.external(source, 1, 1, workers, durable=True),
        ]

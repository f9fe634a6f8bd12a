"""One transaction that is larger than any memory it should take."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from benchmarks.parts import backlog
from benchmarks.replicas import servers
from benchmarks.replicas.runs import Pair
from tests.load import small
from tests.replica.daemon_process import Value

SPLIT: Final[Mapping[str, Value]] = MappingProxyType(
    {
        "replica.consistency": "eventual",
        "replica.exec_mode": "strict",
        "replica.split_transactions": "row",
    }
)
"""Settings with which it is split."""
_AS_IT_IS: Final[Mapping[str, Value]] = MappingProxyType({})


def run(
    size: int, workers: int, *, native_first: bool, settings: Mapping[str, Value] = _AS_IT_IS
) -> Pair:
    """Let both replicas apply one transaction of about `size` bytes of binlog, durably.

    `settings` are mtsd's.
    """
    with servers.source() as source:
        backlog.prepare(source, 1)
        small.large(source, size)
        return backlog.pair(
            source, 1, 1, workers, durable=True, native_first=native_first, settings=settings
        )

"""One server for all tests of decoders."""

from collections.abc import Iterator

import pytest

from tests.binlog.recording import OPTIONS, Recording, record
from tests.servers.mysqld import Server


@pytest.fixture(scope="package")
def recording() -> Iterator[Recording]:
    with Server(OPTIONS) as server:
        yield record(server)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "recording" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.servers)

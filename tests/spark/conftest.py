"""One server for all tests of the data pipeline."""

from collections.abc import Iterator

import pytest

from tests.binlog.recording import OPTIONS
from tests.servers.mysqld import Server


@pytest.fixture(scope="package")
def server() -> Iterator[Server]:
    with Server(OPTIONS) as server:
        yield server


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "server" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.servers)

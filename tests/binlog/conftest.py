"""One server for all tests of decoders."""

from collections.abc import Iterator

import pytest

from tests.binlog.damage import Binlog
from tests.binlog.recording import OPTIONS, Recording, play, record
from tests.servers.mysqld import Server


@pytest.fixture(scope="package")
def recording() -> Iterator[Recording]:
    with Server(OPTIONS) as server:
        yield record(server)


@pytest.fixture(scope="package")
def binlogs(recording: Recording) -> list[Binlog]:
    """Return the same small binlog with checksums and without, as files and as dumps."""
    found = Binlog.of(recording.server, recording.files)
    with Server({**OPTIONS, "binlog_checksum": "NONE"}) as server:
        return [*found, *Binlog.of(server, play(server))]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if {"recording", "binlogs"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.servers)
